package telemetry

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"routemaster/internal/bus"
)

// instruments are the Prometheus metrics that a [Recorder] feeds. docs/metrics-and-alerts.md
// explains each.
type instruments struct {
	topics         children[prometheus.Counter]
	publishedBytes prometheus.Counter
	enqueued       prometheus.Counter
	publishTime    prometheus.Histogram
	commitEvents   prometheus.Histogram

	subscribers     children[deliveryCounters]
	deliveryTime    [2]prometheus.Observer // by [Status]
	startLatency    prometheus.Histogram
	endToEndLatency prometheus.Histogram
	unreadable      prometheus.Counter

	partBatches, partial, rejected, unreadableReceipts, bisections children[prometheus.Counter]
	slices                                                         prometheus.Counter
	signatures                                                     children[prometheus.Counter]

	connections map[bool]prometheus.Counter // by whether the connection was reused

	deadLettered                    children[map[bus.DeathReason]prometheus.Counter]
	redelivered, droppedDeadLetters children[prometheus.Counter]

	replayed children[prometheus.Counter]

	lost                          children[map[bus.LossReason]prometheus.Counter]
	dropped, droppedHistory       children[prometheus.Counter]
	droppedBatches                prometheus.Counter
	droppedArchivedJobs           prometheus.Counter
	droppedKeys                   map[DropReason]prometheus.Counter
	scrubbedJobs, scrubbedWorkers prometheus.Counter
	threads, busy                 *prometheus.GaugeVec

	http     httpInstruments
	jobs     jobInstruments
	machines machineInstruments
}

// deliveryCounters count the deliveries to one subscriber, by [Status].
type deliveryCounters struct{ batches, events [2]prometheus.Counter }

// Buckets of histograms, in seconds. Durations span 0.5 ms to 16 s. End-to-end latency spans 5 ms
// to 6 h: it grows while a subscriber is down.
var (
	durationBuckets = prometheus.ExponentialBuckets(0.0005, 2, 16)
	endToEndBuckets = prometheus.ExponentialBuckets(0.005, 4, 12)
)

func newInstruments(registry prometheus.Registerer) *instruments {
	m := &instruments{}
	register := promauto.With(registry)
	m.registerPublishing(register)
	m.registerDelivery(register)
	m.registerDeadLetters(register)
	m.registerHousekeeping(register)
	m.http.register(register)
	m.jobs.register(register)
	m.machines.register(register)
	return m
}

func (m *instruments) registerPublishing(register promauto.Factory) {
	topics := register.NewCounterVec(counter("published_events_total", "Events stored, by topic."), []string{"topic"})
	m.topics.make = func(topic string) prometheus.Counter { return topics.WithLabelValues(topic) }
	m.publishedBytes = register.NewCounter(counter("published_bytes_total", "Bytes of the events stored, packed."))
	m.enqueued = register.NewCounter(counter("enqueued_events_total",
		"Events put into subscribers' queues, counted once for each subscriber."))
	m.publishTime = register.NewHistogram(histogram("publish_duration_seconds",
		"Time from the call of a publish to its answer.", durationBuckets))
	m.commitEvents = register.NewHistogram(histogram("commit_events",
		"Events stored by one round trip to Redis.", prometheus.ExponentialBuckets(1, 2, 12)))
}

func (m *instruments) registerDelivery(register promauto.Factory) {
	m.registerDeliveries(register)
	m.registerSlices(register)
	m.startLatency = register.NewHistogram(histogram("delivery_start_latency_seconds",
		"Time from when a batch was due to the start of its first attempt. Batches filled before they were due are left out.",
		durationBuckets))
	m.endToEndLatency = register.NewHistogram(histogram("end_to_end_latency_seconds",
		"Time from when a batch's oldest event was stored to the end of its successful delivery.", endToEndBuckets))
	m.unreadable = register.NewCounter(counter("events_unreadable_total",
		"Events left out of deliveries because they cannot be read."))
	connections := register.NewCounterVec(counter("delivery_connections_total",
		"Connections of deliveries, by whether they were used before."), []string{"reused"})
	m.connections = map[bool]prometheus.Counter{}
	for _, reused := range []bool{false, true} {
		m.connections[reused] = connections.WithLabelValues(strconv.FormatBool(reused))
	}
}

// registerDeliveries registers what is counted by status.
func (m *instruments) registerDeliveries(register promauto.Factory) {
	batches := register.NewCounterVec(counter("deliveries_total",
		"Deliveries that ended, by subscriber and status."), []string{"subscriber", "status"})
	events := register.NewCounterVec(counter("delivered_events_total",
		"Events in deliveries that ended, by subscriber and status."), []string{"subscriber", "status"})
	times := register.NewHistogramVec(histogram("delivery_duration_seconds",
		"Duration of a delivery, by status.", durationBuckets), []string{"status"})
	m.partBatches.make = func(subscriber string) prometheus.Counter {
		return batches.WithLabelValues(subscriber, partial)
	}
	m.subscribers.make = func(subscriber string) (c deliveryCounters) {
		for _, s := range Statuses {
			c.batches[s] = batches.WithLabelValues(subscriber, s.String())
			c.events[s] = events.WithLabelValues(subscriber, s.String())
		}
		return c
	}
	for _, s := range Statuses {
		m.deliveryTime[s] = times.WithLabelValues(s.String())
	}
}

// registerSlices registers what is counted of deliveries that did not just go through. Their
// series begin when that first happens.
func (m *instruments) registerSlices(register promauto.Factory) {
	m.partial.make = bySubscriber(register, "partial_deliveries_total",
		"Deliveries of which the subscriber has acknowledged or rejected a part, by subscriber.")
	m.rejected.make = bySubscriber(register, "rejected_events_total",
		"Events that receipts have rejected, by subscriber.")
	m.unreadableReceipts.make = bySubscriber(register, "receipts_unreadable_total",
		"Answers of 207 whose receipt cannot be read, by subscriber.")
	m.bisections.make = bySubscriber(register, "bisections_total",
		"Searches for the event that an endpoint refuses, by subscriber.")
	m.slices = register.NewCounter(counter("slices_total", "Deliveries that carried a part of their batch."))
	signatures := register.NewCounterVec(counter("signatures_total", "Signatures of deliveries, by the type of secret."), []string{"type"})
	m.signatures.make = func(kind string) prometheus.Counter { return signatures.WithLabelValues(kind) }
}

func (m *instruments) registerDeadLetters(register promauto.Factory) {
	dead := register.NewCounterVec(counter("dead_letter_events_total",
		"Events that have become dead letters, by subscriber and reason."), []string{"subscriber", "reason"})
	m.deadLettered.make = func(subscriber string) map[bus.DeathReason]prometheus.Counter {
		counters := map[bus.DeathReason]prometheus.Counter{}
		for _, reason := range bus.DeathReasons {
			counters[reason] = dead.WithLabelValues(subscriber, string(reason))
		}
		return counters
	}
	m.redelivered.make = bySubscriber(register, "redelivered_events_total",
		"Events of dead letters that were put back into queues, by subscriber.")
	m.droppedDeadLetters.make = bySubscriber(register, "dead_letters_dropped_events_total",
		"Events of dead letters that were dropped because these were too many or too old, or Redis was about to be full, by subscriber.")
}

// bySubscriber registers a counter for each subscriber.
func bySubscriber(register promauto.Factory, name, help string) func(subscriber string) prometheus.Counter {
	counters := register.NewCounterVec(counter(name, help), []string{"subscriber"})
	return func(subscriber string) prometheus.Counter { return counters.WithLabelValues(subscriber) }
}

func (m *instruments) registerHousekeeping(register promauto.Factory) {
	m.replayed.make = bySubscriber(register, "replayed_events_total",
		"Events of topics' histories that were put into queues again, by subscriber.")
	lost := register.NewCounterVec(counter("gap_events_total",
		"Events that will never reach their subscriber, by subscriber and reason."), []string{"subscriber", "reason"})
	m.lost.make = func(subscriber string) map[bus.LossReason]prometheus.Counter {
		counters := map[bus.LossReason]prometheus.Counter{}
		for _, reason := range bus.LossReasons {
			counters[reason] = lost.WithLabelValues(subscriber, string(reason))
		}
		return counters
	}
	m.dropped.make = bySubscriber(register, "autodropped_events_total",
		"Events dropped because Redis was about to be full, by subscriber.")
	history := register.NewCounterVec(counter("history_dropped_events_total",
		"Events of histories dropped because Redis was about to be full, by topic."), []string{"topic"})
	m.droppedHistory.make = func(topic string) prometheus.Counter { return history.WithLabelValues(topic) }
	m.droppedBatches = register.NewCounter(counter("autodropped_batches_total",
		"Batches dropped because Redis was about to be full."))
	m.droppedArchivedJobs = register.NewCounter(counter("archived_jobs_dropped_total",
		"Archived jobs dropped because Redis was about to be full."))
	keys := register.NewCounterVec(counter("idempotency_keys_dropped_total",
		"Idempotency keys dropped before they expired, by reason: limit (of one client), or memory (Redis was about to be full)."),
		[]string{"reason"})
	m.droppedKeys = map[DropReason]prometheus.Counter{}
	for _, reason := range []DropReason{OverLimit, OutOfMemory} {
		m.droppedKeys[reason] = keys.WithLabelValues(string(reason))
	}
	m.scrubbedJobs = register.NewCounter(counter("scrubbed_jobs_total", "Requeued jobs of dead workers."))
	m.scrubbedWorkers = register.NewCounter(counter("scrubbed_workers_total", "Dead workers removed."))
	m.threads = register.NewGaugeVec(gauge("worker_threads", "Threads of this process, by queue; 0 in web."), []string{"queue"})
	m.busy = register.NewGaugeVec(gauge("worker_threads_busy", "Threads of this process that run a job, by queue."), []string{"queue"})
	for _, q := range bus.Queues { // every process shows them
		m.threads.WithLabelValues(string(q))
		m.busy.WithLabelValues(string(q))
	}
}

func counter(name, help string) prometheus.CounterOpts {
	return prometheus.CounterOpts{Namespace: Namespace, Name: name, Help: help}
}

func gauge(name, help string) prometheus.GaugeOpts {
	return prometheus.GaugeOpts{Namespace: Namespace, Name: name, Help: help}
}

func histogram(name, help string, buckets []float64) prometheus.HistogramOpts {
	return prometheus.HistogramOpts{Namespace: Namespace, Name: name, Help: help, Buckets: buckets}
}
