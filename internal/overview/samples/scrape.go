package samples

import (
	"context"
	"sync/atomic"
	"time"

	"routemaster/internal/account"
	"routemaster/internal/bus"
	"routemaster/internal/inspect"
	"routemaster/internal/jobs"
	"routemaster/internal/rdb"
	"routemaster/internal/telemetry"
)

// The metrics that a scrape reads from Redis. They are the same in every process of a bus.
var (
	queuedEvents  = telemetry.ReadGauge("subscriber_queued_events", "Events that wait to be delivered.", "subscriber")
	queuedBatches = telemetry.ReadGauge("subscriber_queued_batches", "Batches that wait to be delivered.", "subscriber")
	deadEvents    = telemetry.ReadGauge("subscriber_dead_letter_events", "Events in dead letters.", "subscriber")
	healthPoints  = telemetry.ReadGauge("subscriber_health_points", "A subscriber's health, from 0 to 100.", "subscriber")
	oldestAge     = telemetry.ReadGauge("subscriber_oldest_event_age_seconds",
		"Age of the oldest queued event, 0 if none is queued; missing if it is not in the 2,000 oldest batches.", "subscriber")
	laneCount    = telemetry.ReadGauge("subscriber_lanes", "Lanes of a subscriber.", "subscriber")
	lanesBlocked = telemetry.ReadGauge("lane_blocked",
		"Lanes that a failed batch holds up, of a subscriber with strict_order.", "subscriber")
	isPaused    = telemetry.ReadGauge("subscriber_paused", "1 while a subscriber is paused, else 0.", "subscriber")
	paceWait    = telemetry.ReadGauge("subscriber_pace_wait_seconds", "Time until a subscriber's pace allows a delivery.", "subscriber")
	failureWait = telemetry.ReadGauge("subscriber_throttle_wait_seconds",
		"Time until a subscriber whose deliveries have failed gets another one.", "subscriber")
	historyEvents = telemetry.ReadGauge("history_events", "Events in the history of a topic.", "topic")
	historyBytes  = telemetry.ReadGauge("history_bytes", "Bytes of the events in the history of a topic, as stored.", "topic")
	jobsNow       = telemetry.ReadGauge("jobs",
		"Jobs, by queue and status: instant ones are ready to run, scheduled ones are not due yet.", "queue", "status")
	jobsDue = telemetry.ReadGauge("jobs_due",
		"Deliveries due within ROUTEMASTER_SCALING_DEADLINE. /pulse/scaling compares this with its threshold.")
	replaysRunning = telemetry.ReadGauge("replays_running", "Replays that copy, or whose events are still queued.")
	busDeliveries  = telemetry.ReadCounter("bus_deliveries_total",
		"Deliveries of the whole bus that ended, by subscriber and status.", "subscriber", "status")
	busDelivered = telemetry.ReadCounter("bus_delivered_events_total",
		"Events in deliveries of the whole bus that ended, by subscriber and status.", "subscriber", "status")
	busDropped = telemetry.ReadCounter("bus_autodropped_events_total",
		"Events that the whole bus dropped because Redis was about to be full, by subscriber.", "subscriber")

	// These are there if the bus has several partitions.
	partitionUp = telemetry.ReadGauge("partition_up",
		"1 if the scrape has read a partition of the bus, and it is not held. What waits in one that was not read is not counted.", "partition")
	relayEvents  = telemetry.ReadGauge("relay_events", "Events on their way to a partition from others.", "partition")
	relaySeconds = telemetry.ReadGauge("relay_oldest_seconds",
		"For how long a partition has not taken the oldest events on their way, 0 if it takes them at once.", "partition")

	// These are by node if the bus has several partitions.
	redisUp = telemetry.ReadGauge("redis_up",
		"1 if the scrape has read Redis, else 0: then the metrics of queues and memory are missing.", "node")
	memoryUsed = telemetry.ReadGauge("redis_memory_used_bytes", "Memory that Redis uses.", "node")
	memoryMax  = telemetry.ReadGauge("redis_memory_max_bytes", "Limit of the memory that Redis may use.", "node")
	memoryHigh = telemetry.ReadGauge("redis_memory_high_mark_bytes", "Above this the oldest batches are dropped.", "node")
	memoryLow  = telemetry.ReadGauge("redis_memory_low_mark_bytes", "The oldest batches are dropped until this is reached.", "node")
	kept       = telemetry.ReadGauge("client_kept_bytes", "What the jobs, job types and labels of a client take, about.", "client", "node")
	keptLimit  = telemetry.ReadGauge("client_kept_limit_bytes",
		"What the jobs, job types and labels of a client may take; missing if it is any number.", "client", "node")

	typeQueued = telemetry.ReadGauge("job_type_queued",
		"Jobs that wait: for their time, their turn, or another attempt.", telemetry.JobType)
	typeWaiting = telemetry.ReadGauge("job_type_waiting",
		"Jobs that are due, and wait because their type has enough in progress, or is paused.", telemetry.JobType)
	typeInProgress = telemetry.ReadGauge("job_type_in_progress",
		"Jobs that are with their service, or on the way to it.", telemetry.JobType)
	typeConcurrency = telemetry.ReadGauge("job_type_concurrency",
		"How many jobs may be in progress at once.", telemetry.JobType)
	typePaused = telemetry.ReadGauge("job_type_paused", "1 while a job type is paused, else 0.", telemetry.JobType)
	typeOldest = telemetry.ReadGauge("job_type_oldest_age_seconds",
		"Time since the oldest job was enqueued that is due and not in progress, 0 if there is none.", telemetry.JobType)
	busJobsEnded = telemetry.ReadCounter("bus_jobs_ended_total",
		"Jobs of the whole bus that ended, by job type and status.", telemetry.JobType, "status")

	labelsInState = telemetry.ReadGauge("labels", "Labels in a state.", "machine", "state")
	labelsErrored = telemetry.ReadGauge("labels_errored", "Labels whose action is not tried again.", "machine")
	movesWaiting  = telemetry.ReadGauge("machine_moves_unpublished", "Moves of labels that are still to be published.", "machine")
	busLabelSteps = telemetry.ReadCounter("bus_label_steps_total",
		"What workers of the whole bus have done for labels, by machine and outcome.", "machine", "outcome")
)

// Scraper has Prometheus read the state of a bus, once the process has opened it. Until then a
// scrape shows that Redis was not read.
type Scraper struct{ bus atomic.Pointer[scrape] }

// NewScraper makes a scraper, and adds what it reads to the metrics of a process.
func NewScraper(registry *telemetry.Registry) *Scraper {
	s := &Scraper{}
	registry.AddReader(func(ctx context.Context, send telemetry.Send) {
		if of := s.bus.Load(); of != nil {
			of.readBus(ctx, send)
		} else {
			send(redisUp, 0)
		}
	})
	for _, read := range []func(*scrape, context.Context, telemetry.Send){
		(*scrape).readJobTypes, (*scrape).readMachines, (*scrape).readAccounts,
	} {
		registry.AddReader(func(ctx context.Context, send telemetry.Send) {
			if of := s.bus.Load(); of != nil {
				read(of, ctx, send)
			}
		})
	}
	return s
}

// Open has it read a bus.
func (s *Scraper) Open(config Config, now func() time.Time) {
	s.bus.Store(&scrape{
		Config: config, now: now, all: inspect.OfBus(config.Stores), inspector: inspect.Of(config.Stores.First()),
		several: len(config.Stores.All()) > 1,
	})
}

// partitionTimeout is how long a scrape waits for one of several partitions: less than for all of
// it, so that there is time for the rest.
const partitionTimeout = 400 * time.Millisecond

// scrape reads a bus.
type scrape struct {
	Config
	now       func() time.Time
	all       *inspect.Bus
	inspector *inspect.Inspector // counters
	several   bool               // partitions
}

// readBus reads what waits in the bus, and what it has counted.
func (s *scrape) readBus(ctx context.Context, send telemetry.Send) {
	waiting, cancel := ctx, context.CancelFunc(func() {})
	if s.several {
		waiting, cancel = context.WithTimeout(ctx, partitionTimeout)
	}
	now, err := s.all.Snapshot(waiting, s.now().Add(s.ScalingDeadline))
	cancel()
	var counts map[bus.Counter]int64
	if err == nil {
		if counts, err = s.readCounters(ctx, now.Backlogs); s.several {
			err = nil // what else was read is worth to be shown
		}
	}
	s.sendRedis(send, now, err == nil)
	if err != nil {
		return
	}
	for b := range inspect.ByClient(now.Backlogs) {
		s.sendBacklog(send, string(b.Client), b)
		for _, c := range countersOf(b.Client) {
			if n, ok := counts[c.Counter]; ok {
				send(c.metric, float64(n), c.values...)
			}
		}
	}
	for topic, h := range byTopic(now.Histories) {
		send(historyEvents, float64(h.Events), topic)
		send(historyBytes, float64(h.Bytes), topic)
	}
	for queue, counts := range now.Jobs {
		send(jobsNow, float64(counts.Instant), string(queue), "instant")
		send(jobsNow, float64(counts.Scheduled), string(queue), "scheduled")
	}
	send(jobsDue, float64(now.Due))
	send(replaysRunning, float64(now.RunningReplays))
}

// readCounters reads the counters of subscribers.
func (s *scrape) readCounters(ctx context.Context, backlogs []inspect.Backlog) (map[bus.Counter]int64, error) {
	var counters []bus.Counter
	for b := range inspect.ByClient(backlogs) {
		for _, c := range countersOf(b.Client) {
			counters = append(counters, c.Counter)
		}
	}
	return s.inspector.ReadCounters(ctx, counters)
}

// sendRedis sends what is known of Redis, of each of its nodes if there are several, and of the
// partitions there.
func (s *scrape) sendRedis(send telemetry.Send, now inspect.BusSnapshot, isUp bool) {
	if !s.several {
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

func (s *scrape) sendNode(send telemetry.Send, isUp bool, memory *rdb.Memory, labels ...string) {
	send(redisUp, asNumber(isUp), labels...)
	if memory != nil {
		limit, high, low := s.Memory.Marks(memory.Max)
		send(memoryUsed, float64(memory.Used), labels...)
		send(memoryMax, float64(limit), labels...)
		send(memoryHigh, float64(high), labels...)
		send(memoryLow, float64(low), labels...)
	}
}

func asNumber(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

func (s *scrape) sendBacklog(send telemetry.Send, name string, b inspect.Backlog) {
	send(queuedEvents, float64(b.Events), name)
	send(queuedBatches, float64(b.Batches), name)
	send(deadEvents, float64(b.DeadLetterEvents), name)
	if b.Lanes.Count > 0 {
		send(laneCount, float64(b.Lanes.Count), name)
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

func (s *scrape) sendHolds(send telemetry.Send, name string, h inspect.Holds) {
	now := s.now()
	send(isPaused, asNumber(h.Paused.After(now)), name)
	send(paceWait, max(h.Paced.Sub(now), 0).Seconds(), name)
	send(failureWait, max(h.Throttled.Sub(now), 0).Seconds(), name)
}

// busCounter is a counter of the bus, and the metric that shows it.
type busCounter struct {
	bus.Counter
	metric *telemetry.Metric
	values []string
}

// countersOf returns a subscriber's counters. They are shown as 0 before they first count, because
// Prometheus sees no increase in a series that begins at 1.
func countersOf(subscriber bus.ClientName) []busCounter {
	name := string(subscriber)
	counters := []busCounter{{telemetry.DroppedEvents.Bus(name), busDropped, []string{name}}}
	for _, status := range []string{telemetry.Success, telemetry.Failure} {
		values := []string{name, status}
		counters = append(counters,
			busCounter{telemetry.Deliveries.Bus(values...), busDeliveries, values},
			busCounter{telemetry.DeliveredEvents.Bus(values...), busDelivered, values})
	}
	return counters
}

// byTopic returns what is stored of the histories of topics, by name, with those beyond the first
// 2,000 together.
func byTopic(histories []inspect.HistorySize) map[string]inspect.HistorySize {
	named := make(map[string]inspect.HistorySize, min(len(histories), telemetry.MaxValues+1))
	for i, h := range histories {
		name := string(h.Topic)
		if i >= telemetry.MaxValues {
			name = telemetry.Other
		}
		sum := named[name]
		named[name] = inspect.HistorySize{Topic: h.Topic, Events: sum.Events + h.Events, Bytes: sum.Bytes + h.Bytes}
	}
	return named
}

// readJobTypes reads what waits for the services that do jobs, and what has ended. It shows nothing
// while Redis cannot be read.
func (s *scrape) readJobTypes(ctx context.Context, send telemetry.Send) {
	types, err := s.JobTypes.Read(ctx)
	if err != nil {
		return
	}
	for _, t := range types {
		s.sendType(send, string(t.Name), t.CountedType)
		for status, n := range t.Ended {
			send(busJobsEnded, float64(n), string(t.Name), string(status))
		}
	}
}

func (s *scrape) sendType(send telemetry.Send, name string, t jobs.CountedType) {
	oldest := 0.0
	if !t.Oldest.IsZero() {
		oldest = max(s.now().Sub(t.Oldest), 0).Seconds()
	}
	send(typeQueued, float64(t.Queued), name)
	send(typeWaiting, float64(t.Waiting), name)
	send(typeInProgress, float64(t.InProgress), name)
	send(typeConcurrency, float64(t.Concurrency), name)
	send(typePaused, asNumber(t.Paused), name)
	send(typeOldest, oldest, name)
}

// readMachines reads where labels are, and what workers did for them. It shows nothing while Redis
// cannot be read.
func (s *scrape) readMachines(ctx context.Context, send telemetry.Send) {
	machines, err := s.Machines.Read(ctx)
	if err != nil {
		return
	}
	for _, m := range machines {
		name := string(m.Machine)
		for _, state := range m.States {
			send(labelsInState, float64(state.Labels), name, string(state.State))
		}
		send(labelsErrored, float64(m.Errored), name)
		send(movesWaiting, float64(m.Unpublished), name)
		for outcome, n := range m.Steps {
			send(busLabelSteps, float64(n), name, outcome)
		}
	}
}

// readAccounts reads what each client keeps that keeps anything: by node, as limits are. It shows
// nothing while Redis cannot be read.
func (s *scrape) readAccounts(ctx context.Context, send telemetry.Send) {
	nodes, err := account.ReadAll(ctx, s.Stores.Partitions())
	if err != nil {
		return
	}
	for node, all := range nodes {
		for client, bytes := range all.Kept {
			values := []string{string(client), node}
			if !s.several {
				values = values[:1]
			}
			send(kept, float64(bytes), values...)
			if limit, ok := all.Limit(client); ok {
				send(keptLimit, float64(limit), values...)
			}
		}
	}
}
