package metrics

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"routemaster/internal/bus"
	"routemaster/internal/store/stats"
	"routemaster/internal/telemetry"
)

// These metrics are read from Redis by a scrape. They are the same in every process of a bus.
var (
	redisUp = describe("redis_up",
		"1 if the scrape has read Redis, else 0: then the metrics of queues and memory are missing.")
	queuedEvents  = describe("subscriber_queued_events", "Events that wait to be delivered.", "subscriber")
	queuedBatches = describe("subscriber_queued_batches", "Batches that wait to be delivered.", "subscriber")
	deadEvents    = describe("subscriber_dead_letter_events", "Events in dead letters.", "subscriber")
	healthPoints  = describe("subscriber_health_points", "A subscriber's health, from 0 to 100.", "subscriber")
	oldestAge     = describe("subscriber_oldest_event_age_seconds",
		"Age of the oldest queued event, 0 if none is queued; missing if it is not in the 2,000 oldest batches.", "subscriber")
	laneCount    = describe("subscriber_lanes", "Lanes of a subscriber.", "subscriber")
	lanesBlocked = describe("lane_blocked",
		"Lanes that a failed batch holds up, of a subscriber with strict_order.", "subscriber")
	fenceBatches = describe("subscriber_fence_batches",
		"Batches that are delivered before those opened since a subscriber's lanes were changed.", "subscriber")
	isPaused    = describe("subscriber_paused", "1 while a subscriber is paused, else 0.", "subscriber")
	paceWait    = describe("subscriber_pace_wait_seconds", "Time until a subscriber's pace allows a delivery.", "subscriber")
	failureWait = describe("subscriber_throttle_wait_seconds",
		"Time until a subscriber whose deliveries have failed gets another one.", "subscriber")
	historyEvents = describe("history_events", "Events in the history of a topic.", "topic")
	historyBytes  = describe("history_bytes", "Bytes of the events in the history of a topic, as stored.", "topic")
	jobsNow       = describe("jobs",
		"Jobs, by queue and status: instant ones are ready to run, scheduled ones are not due yet.", "queue", "status")
	jobsDue = describe("jobs_due",
		"Deliveries due within ROUTEMASTER_SCALING_DEADLINE. /pulse/scaling compares this with its threshold.")
	replaysRunning = describe("replays_running", "Replays that copy, or whose events are still queued.")
	memoryUsed     = describe("redis_memory_used_bytes", "Memory that Redis uses.")
	memoryMax      = describe("redis_memory_max_bytes", "Limit of the memory that Redis may use.")
	memoryHigh     = describe("redis_memory_high_mark_bytes", "Above this the oldest batches are dropped.")
	memoryLow      = describe("redis_memory_low_mark_bytes", "The oldest batches are dropped until this is reached.")
	busDeliveries  = describe("bus_deliveries_total",
		"Deliveries of the whole bus that ended, by subscriber and status.", "subscriber", "status")
	busDelivered = describe("bus_delivered_events_total",
		"Events in deliveries of the whole bus that ended, by subscriber and status.", "subscriber", "status")
	busDropped = describe("bus_autodropped_events_total",
		"Events that the whole bus dropped because Redis was about to be full, by subscriber.", "subscriber")

	allScraped = []*prometheus.Desc{
		redisUp, queuedEvents, queuedBatches, deadEvents, healthPoints, oldestAge, laneCount, lanesBlocked, fenceBatches,
		isPaused, paceWait, failureWait,
		historyEvents, historyBytes, jobsNow, jobsDue, replaysRunning,
		memoryUsed, memoryMax, memoryHigh, memoryLow, busDeliveries, busDelivered, busDropped,
	}
)

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(prometheus.BuildFQName(telemetry.Namespace, "", name), help, labels, nil)
}

// BusOptions say what a scrape compares the bus with.
type BusOptions struct {
	// Memory gives the marks of autodrop.
	Memory bus.MemoryLimits
	// ScalingDeadline is how soon a delivery must be due to count as due.
	ScalingDeadline time.Duration
}

// scrape collects what waits in the bus.
type scrape struct {
	stats   *stats.Stats
	options BusOptions
	now     func() time.Time
	shared  shared[reading]
}

// reading is what was read from Redis at one time.
type reading struct {
	stats.Snapshot
	subscribers map[bus.ClientName]stats.Backlog
	counts      map[bus.Counter]int64
}

// Describe is part of [prometheus.Collector].
func (s *scrape) Describe(descs chan<- *prometheus.Desc) {
	for _, desc := range allScraped {
		descs <- desc
	}
}

// Collect is part of [prometheus.Collector].
func (s *scrape) Collect(metrics chan<- prometheus.Metric) {
	now, err := s.shared.read(s.readStore)
	send := func(desc *prometheus.Desc, value float64, labels ...string) {
		metrics <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
	}
	if err != nil {
		send(redisUp, 0)
		return
	}
	send(redisUp, 1)
	for name, b := range now.subscribers {
		s.sendBacklog(send, string(name), b)
		for _, c := range countersOf(name) {
			if n, ok := now.counts[c.Counter]; ok {
				metrics <- prometheus.MustNewConstMetric(c.desc, prometheus.CounterValue, float64(n), c.labels...)
			}
		}
	}
	for topic, h := range telemetry.ByTopic(now.Histories) {
		send(historyEvents, float64(h.Events), topic)
		send(historyBytes, float64(h.Bytes), topic)
	}
	for queue, jobs := range now.Jobs {
		send(jobsNow, float64(jobs.Instant), string(queue), "instant")
		send(jobsNow, float64(jobs.Scheduled), string(queue), "scheduled")
	}
	send(jobsDue, float64(now.Due))
	send(replaysRunning, float64(now.RunningReplays))
	if now.Memory != nil {
		limit, high, low := s.options.Memory.Marks(now.Memory.Max)
		send(memoryUsed, float64(now.Memory.Used))
		send(memoryMax, float64(limit))
		send(memoryHigh, float64(high))
		send(memoryLow, float64(low))
	}
}

func (s *scrape) sendBacklog(send func(*prometheus.Desc, float64, ...string), name string, b stats.Backlog) {
	send(queuedEvents, float64(b.Events), name)
	send(queuedBatches, float64(b.Batches), name)
	send(deadEvents, float64(b.DeadLetterEvents), name)
	if b.Lanes.Count > 0 {
		send(laneCount, float64(b.Lanes.Count), name)
		send(fenceBatches, float64(b.Lanes.Fence), name)
	}
	if b.Lanes.IsStrict {
		send(lanesBlocked, float64(b.Lanes.Blocked), name)
	}
	if b.Subscribed {
		send(healthPoints, float64(b.Health), name)
		s.sendHolds(send, name, b.Holds)
	}
	if !b.OldestAt.IsZero() {
		send(oldestAge, max(s.now().Sub(b.OldestAt), 0).Seconds(), name)
	} else if b.Events == 0 {
		send(oldestAge, 0, name)
	}
}

func (s *scrape) sendHolds(send func(*prometheus.Desc, float64, ...string), name string, h stats.Holds) {
	now, paused := s.now(), 0.0
	if h.Paused.After(now) {
		paused = 1
	}
	send(isPaused, paused, name)
	send(paceWait, max(h.Paced.Sub(now), 0).Seconds(), name)
	send(failureWait, max(h.Throttled.Sub(now), 0).Seconds(), name)
}

// busCounter is a counter of the bus, and the metric that shows it.
type busCounter struct {
	bus.Counter
	desc   *prometheus.Desc
	labels []string
}

// countersOf returns a subscriber's counters. They are shown as 0 before they first count, because
// Prometheus sees no increase in a series that begins at 1.
func countersOf(subscriber bus.ClientName) []busCounter {
	queue, name := telemetry.QueueTag(subscriber), string(subscriber)
	counters := []busCounter{{bus.NewCounter(telemetry.DroppedEventsCounter, queue), busDropped, []string{name}}}
	for _, status := range telemetry.Statuses {
		labels, tag := []string{name, status.String()}, telemetry.StatusTag(status)
		counters = append(counters,
			busCounter{bus.NewCounter(telemetry.DeliveriesCounter, queue, tag), busDeliveries, labels},
			busCounter{bus.NewCounter(telemetry.DeliveredEventsCounter, queue, tag), busDelivered, labels})
	}
	return counters
}

func (s *scrape) readStore(ctx context.Context) (reading, error) {
	snapshot, err := s.stats.Snapshot(ctx, s.now().Add(s.options.ScalingDeadline))
	if err != nil {
		return reading{}, err
	}
	now := reading{Snapshot: snapshot, subscribers: telemetry.ByClient(snapshot.Backlogs)}
	var counters []bus.Counter
	for name := range now.subscribers {
		for _, c := range countersOf(name) {
			counters = append(counters, c.Counter)
		}
	}
	now.counts, err = s.stats.ReadCounters(ctx, counters)
	return now, err
}
