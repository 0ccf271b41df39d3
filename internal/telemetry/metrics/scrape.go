package metrics

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"routemaster/internal/bus"
	"routemaster/internal/rdb"
	"routemaster/internal/store/stats"
	"routemaster/internal/store/stores"
	"routemaster/internal/telemetry"
)

// These metrics are read from Redis by a scrape. They are the same in every process of a bus.
var (
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
	busDeliveries  = describe("bus_deliveries_total",
		"Deliveries of the whole bus that ended, by subscriber and status.", "subscriber", "status")
	busDelivered = describe("bus_delivered_events_total",
		"Events in deliveries of the whole bus that ended, by subscriber and status.", "subscriber", "status")
	busDropped = describe("bus_autodropped_events_total",
		"Events that the whole bus dropped because Redis was about to be full, by subscriber.", "subscriber")

	// These are there if the bus has several partitions.
	partitionUp = describe("partition_up",
		"1 if the scrape has read a partition of the bus, and it is not held. What waits in one that was not read is not counted.", "partition")
	relayEvents  = describe("relay_events", "Events on their way to a partition from others.", "partition")
	relaySeconds = describe("relay_oldest_seconds",
		"For how long a partition has not taken the oldest events on their way, 0 if it takes them at once.", "partition")
)

// redisDescs are the metrics of a Redis server.
type redisDescs struct{ up, used, max, high, low *prometheus.Desc }

func describeRedis(labels ...string) redisDescs {
	return redisDescs{
		up: describe("redis_up",
			"1 if the scrape has read Redis, else 0: then the metrics of queues and memory are missing.", labels...),
		used: describe("redis_memory_used_bytes", "Memory that Redis uses.", labels...),
		max:  describe("redis_memory_max_bytes", "Limit of the memory that Redis may use.", labels...),
		high: describe("redis_memory_high_mark_bytes", "Above this the oldest batches are dropped.", labels...),
		low:  describe("redis_memory_low_mark_bytes", "The oldest batches are dropped until this is reached.", labels...),
	}
}

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
	stores  *stores.Stores
	stats   *stats.Stats // counters
	options BusOptions
	now     func() time.Time
	shared  shared[reading]
	redis   redisDescs
}

func newScrape(all *stores.Stores, o BusOptions, now func() time.Time) *scrape {
	s := &scrape{stores: all, stats: stats.Of(all.First()), options: o, now: now, redis: describeRedis()}
	if len(all.All()) > 1 {
		s.redis = describeRedis("node")
	}
	return s
}

// busCollector collects the metrics of the bus, once the process has opened it.
type busCollector struct{ scrape atomic.Pointer[scrape] }

// Describe is part of [prometheus.Collector]. It describes nothing, since the labels of metrics
// depend on whether the bus has several partitions.
func (c *busCollector) Describe(chan<- *prometheus.Desc) {}

// Collect is part of [prometheus.Collector].
func (c *busCollector) Collect(metrics chan<- prometheus.Metric) {
	if s := c.scrape.Load(); s != nil {
		s.collect(metrics)
		return
	}
	metrics <- prometheus.MustNewConstMetric(describeRedis().up, prometheus.GaugeValue, 0)
}

// reading is what was read from Redis at one time.
type reading struct {
	stores.Snapshot
	counts map[bus.Counter]int64
}

// collect reads Redis, and sends what it has read.
func (s *scrape) collect(metrics chan<- prometheus.Metric) {
	now, err := s.shared.read(s.readStore)
	send := func(desc *prometheus.Desc, value float64, labels ...string) {
		metrics <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
	}
	s.sendRedis(send, now, err == nil)
	if err != nil {
		return
	}
	for b := range telemetry.ByClient(now.Backlogs) {
		s.sendBacklog(send, string(b.Client), b)
		for _, c := range countersOf(b.Client) {
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
}

// sendRedis sends what is known of Redis, of each of its nodes if there are several, and of the
// partitions there.
func (s *scrape) sendRedis(send func(*prometheus.Desc, float64, ...string), now reading, isUp bool) {
	if len(s.stores.All()) == 1 {
		s.sendNode(send, isUp, now.Memory)
	}
	for _, node := range now.Nodes {
		s.sendNode(send, node.IsUp, node.Memory, node.Address)
	}
	for i, p := range now.Partitions {
		number := rdb.Number(i).String()
		send(partitionUp, asNumber(p.IsUp), number)
		send(relayEvents, float64(p.Events), number)
		waiting := 0.0
		if !p.Since.IsZero() {
			waiting = max(s.now().Sub(p.Since), 0).Seconds()
		}
		send(relaySeconds, waiting, number)
	}
}

func (s *scrape) sendNode(send func(*prometheus.Desc, float64, ...string), isUp bool, memory *rdb.Memory, labels ...string) {
	send(s.redis.up, asNumber(isUp), labels...)
	if memory != nil {
		limit, high, low := s.options.Memory.Marks(memory.Max)
		send(s.redis.used, float64(memory.Used), labels...)
		send(s.redis.max, float64(limit), labels...)
		send(s.redis.high, float64(high), labels...)
		send(s.redis.low, float64(low), labels...)
	}
}

func asNumber(is bool) float64 {
	if is {
		return 1
	}
	return 0
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
	several, limit := len(s.stores.All()) > 1, scrapeTimeout
	if several {
		limit = snapshotTimeout
	}
	waiting, cancel := context.WithTimeout(ctx, limit)
	snapshot, err := s.stores.Snapshot(waiting, s.now().Add(s.options.ScalingDeadline))
	cancel()
	now := reading{Snapshot: snapshot}
	if err != nil {
		return now, err
	}
	var counters []bus.Counter
	for b := range telemetry.ByClient(now.Backlogs) {
		for _, c := range countersOf(b.Client) {
			counters = append(counters, c.Counter)
		}
	}
	if now.counts, err = s.stats.ReadCounters(ctx, counters); several {
		err = nil // what else was read is worth to be shown
	}
	return now, err
}
