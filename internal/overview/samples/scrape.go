package samples

import (
	"context"
	"sync/atomic"
	"time"

	"routemaster/internal/jobs"
	"routemaster/internal/overview"
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

// Scraper shows Prometheus the samples of a bus, once the process has opened it. Until then a
// scrape shows that Redis was not read.
type Scraper struct{ collector atomic.Pointer[Collector] }

// NewScraper makes a scraper, and adds its series to the metrics of a process.
func NewScraper(registry *telemetry.Registry) *Scraper {
	s := &Scraper{}
	registry.AddReader(func(send telemetry.Send) {
		if c := s.collector.Load(); c != nil {
			page{send, c.now(), len(c.partitions) > 1}.show(c.scraped(context.Background()))
		} else {
			send(redisUp, 0)
		}
	})
	return s
}

// Open has it show the samples of a collector.
func (s *Scraper) Open(c *Collector) { s.collector.Store(c) }

// page sends the series of a sample to a scrape.
type page struct {
	send    telemetry.Send
	now     time.Time
	several bool // partitions
}

func (p page) show(s overview.Sample) {
	p.showRedis(s)
	p.showOthers(s)
	if s.Redis != "" {
		return
	}
	counted := !s.Lacks(overview.PartCounters)
	for _, sub := range s.Subscribers {
		p.showBacklog(sub, counted)
		p.showSubscriber(sub)
	}
	for _, other := range s.Others {
		p.showBacklog(other, counted)
	}
	for topic, h := range byTopic(s.Histories) {
		p.send(historyEvents, float64(h.Events), topic)
		p.send(historyBytes, float64(h.Bytes), topic)
	}
	for _, q := range s.Queues {
		p.send(jobsNow, float64(q.Instant), q.Name, "instant")
		p.send(jobsNow, float64(q.Scheduled), q.Name, "scheduled")
	}
	p.send(jobsDue, float64(s.Due))
	p.send(replaysRunning, float64(s.RunningReplays))
}

// showOthers shows the metrics that need no key of queues and subscribers, as far as they are read.
func (p page) showOthers(s overview.Sample) {
	for _, t := range s.JobTypes {
		p.showType(t)
	}
	for _, m := range s.Machines {
		p.showMachine(m)
	}
	for _, a := range s.Accounts {
		p.showAccount(a)
	}
}

// showRedis shows Redis, each of its nodes if there are several, and the partitions there.
func (p page) showRedis(s overview.Sample) {
	if !p.several {
		p.showNode(s.Redis == "", s.Memory)
	}
	for _, node := range s.Nodes {
		p.showNode(node.IsUp, node.Memory, node.Address)
	}
	for i, partition := range s.Partitions {
		number := rdb.Number(i).String()
		p.send(partitionUp, asNumber(partition.IsUp), number)
		p.send(relayEvents, float64(partition.Relayed), number)
		p.send(relaySeconds, p.since(partition.RelayedSince), number)
	}
}

func (p page) showNode(isUp bool, memory *overview.Memory, labels ...string) {
	p.send(redisUp, asNumber(isUp), labels...)
	if memory != nil {
		p.send(memoryUsed, float64(memory.Used), labels...)
		p.send(memoryMax, float64(memory.Max), labels...)
		p.send(memoryHigh, float64(memory.High), labels...)
		p.send(memoryLow, float64(memory.Low), labels...)
	}
}

// showBacklog shows a client's backlog, and the bus's counters of it. They are shown as 0 before
// they first count, because Prometheus sees no increase in a series that begins at 1.
func (p page) showBacklog(sub overview.SubscriberState, counted bool) {
	p.send(queuedEvents, float64(sub.Queued), sub.Name)
	p.send(queuedBatches, float64(sub.Batches), sub.Name)
	p.send(deadEvents, float64(sub.Dead), sub.Name)
	if !sub.OldestAt.IsZero() || sub.Queued == 0 {
		p.send(oldestAge, p.since(sub.OldestAt), sub.Name)
	}
	count := func(m *telemetry.Metric, n int64, values ...string) {
		if counted && n != overview.Uncounted {
			p.send(m, float64(n), values...)
		}
	}
	count(busDropped, sub.Counts.Dropped, sub.Name)
	count(busDeliveries, sub.Counts.Succeeded, sub.Name, telemetry.Success)
	count(busDeliveries, sub.Counts.Failed, sub.Name, telemetry.Failure)
	count(busDelivered, sub.SentEvents, sub.Name, telemetry.Success)
	count(busDelivered, sub.FailedEvents, sub.Name, telemetry.Failure)
}

func (p page) showSubscriber(sub overview.SubscriberState) {
	if sub.Lanes.Count > 0 {
		p.send(laneCount, float64(sub.Lanes.Count), sub.Name)
	}
	if sub.Lanes.IsStrict {
		p.send(lanesBlocked, float64(sub.Lanes.Blocked), sub.Name)
	}
	p.send(healthPoints, float64(sub.Health), sub.Name)
	p.send(isPaused, asNumber(sub.Paused.After(p.now)), sub.Name)
	p.send(paceWait, max(sub.Paced.Sub(p.now), 0).Seconds(), sub.Name)
	p.send(failureWait, max(sub.Throttled.Sub(p.now), 0).Seconds(), sub.Name)
}

// since is the time in seconds since a time, 0 if that is zero.
func (p page) since(at time.Time) float64 {
	if at.IsZero() {
		return 0
	}
	return max(p.now.Sub(at), 0).Seconds()
}

func asNumber(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// byTopic returns the sizes of topics' histories by name, with all beyond the first 2,000 together.
func byTopic(histories []overview.HistoryState) map[string]overview.HistoryState {
	named := make(map[string]overview.HistoryState, min(len(histories), telemetry.MaxValues+1))
	for i, h := range histories {
		name := h.Topic
		if i >= telemetry.MaxValues {
			name = telemetry.Other
		}
		sum := named[name]
		named[name] = overview.HistoryState{Topic: name, Events: sum.Events + h.Events, Bytes: sum.Bytes + h.Bytes}
	}
	return named
}

func (p page) showType(t overview.JobTypeState) {
	p.send(typeQueued, float64(t.Queued), t.Name)
	p.send(typeWaiting, float64(t.Waiting), t.Name)
	p.send(typeInProgress, float64(t.InProgress), t.Name)
	p.send(typeConcurrency, float64(t.Concurrency), t.Name)
	p.send(typePaused, asNumber(t.Paused), t.Name)
	p.send(typeOldest, p.since(t.OldestAt), t.Name)
	p.send(busJobsEnded, float64(t.Succeeded), t.Name, string(jobs.Succeeded))
	p.send(busJobsEnded, float64(t.Failed), t.Name, string(jobs.Failed))
	p.send(busJobsEnded, float64(t.Expired), t.Name, string(jobs.Expired))
	p.send(busJobsEnded, float64(t.Cancelled), t.Name, string(jobs.Cancelled))
}

func (p page) showMachine(m overview.MachineState) {
	for _, in := range m.States {
		p.send(labelsInState, float64(in.Labels), m.Name, in.State)
	}
	p.send(labelsErrored, float64(m.Errored), m.Name)
	p.send(movesWaiting, float64(m.Unpublished), m.Name)
	for outcome, n := range m.Steps {
		p.send(busLabelSteps, float64(n), m.Name, outcome)
	}
}

// showAccount shows a client's account on a node.
func (p page) showAccount(a overview.Account) {
	values := []string{a.Client, a.Node}
	if !p.several {
		values = values[:1]
	}
	p.send(kept, float64(a.Kept), values...)
	if a.Limit != nil {
		p.send(keptLimit, float64(*a.Limit), values...)
	}
}
