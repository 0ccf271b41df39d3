package telemetry

import (
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"routemaster/internal/bus"
	"routemaster/internal/store"
)

// Recorder takes note of what happens in a process. It is safe for concurrent use, and its methods
// neither block nor fail. A nil Recorder does nothing.
type Recorder struct {
	metrics *instruments
	counts  *counts
}

// NewRecorder makes a recorder. It registers its Prometheus metrics, and counts in the store once
// [Recorder.Run] runs.
func NewRecorder(registry prometheus.Registerer, st *store.Store, log *slog.Logger) *Recorder {
	return &Recorder{metrics: newInstruments(registry), counts: newCounts(st, log)}
}

// Published notes that events of one topic were stored for some receivers. Bytes is the size of the
// packed events.
func (r *Recorder) Published(topic bus.TopicName, publisher bus.Token, events, bytes int, receivers bus.Tokens) {
	if r == nil {
		return
	}
	r.metrics.topics.of(string(topic)).Add(float64(events))
	r.metrics.publishedBytes.Add(float64(bytes))
	r.metrics.enqueued.Add(float64(events * receivers.Len()))
	tags := []bus.Tag{{Name: "topic", Value: string(topic)}, publisherTag(publisher)}
	r.counts.mu.Lock()
	defer r.counts.mu.Unlock()
	r.counts.add(bus.NewCounter("events.published", tags...), int64(events))
	r.counts.add(bus.NewCounter("events.bytes", tags...), int64(bytes))
	r.counts.addFor("events.added", receivers, int64(events))
}

// Relayed notes how many events subscribers got from another partition.
func (r *Recorder) Relayed(received map[bus.Token]int) {
	if r == nil {
		return
	}
	r.counts.mu.Lock()
	defer r.counts.mu.Unlock()
	for token, events := range received {
		r.metrics.enqueued.Add(float64(events))
		r.counts.addFor("events.added", bus.Tokens(token), int64(events))
	}
}

// PublishTook notes how long a successful publish took, from its call to its answer.
func (r *Recorder) PublishTook(took time.Duration) {
	if r != nil {
		r.metrics.publishTime.Observe(took.Seconds())
	}
}

// Committed notes how many events one round trip to Redis stored.
func (r *Recorder) Committed(events int) {
	if r != nil {
		r.metrics.commitEvents.Observe(float64(events))
	}
}

// Taken notes that a batch is about to be delivered.
func (r *Recorder) Taken(batch *store.Delivery, now time.Time) {
	if r == nil || batch.Attempts != 1 {
		return
	}
	if !batch.DueAt.IsZero() {
		r.metrics.startLatency.Observe(max(now.Sub(batch.DueAt), 0).Seconds())
	}
	queue := QueueTag(batch.Client)
	r.counts.mu.Lock()
	defer r.counts.mu.Unlock()
	r.counts.add(bus.NewCounter("latency.batches.count", queue), 1)
	r.counts.add(bus.NewCounter("latency.batches.first_attempt", queue), latency(batch, now).Milliseconds())
}

// latency returns the time from when a batch's oldest event was stored.
func latency(batch *store.Delivery, now time.Time) time.Duration {
	return max(now.Sub(batch.CreatedAt), 0)
}

// Unreadable notes how many events of a batch cannot be read. Only the first attempt counts.
func (r *Recorder) Unreadable(batch *store.Delivery, events int) {
	if r != nil && batch.Attempts == 1 {
		r.metrics.unreadable.Add(float64(events))
		r.counts.addOne(bus.NewCounter(UnreadableEventsCounter), int64(events))
	}
}

// Delivered notes that a delivery of events ended. It began at start and took as long as took says;
// err is nil if it succeeded.
func (r *Recorder) Delivered(batch *store.Delivery, events int, start time.Time, took time.Duration, err error) {
	if r == nil {
		return
	}
	status := Success
	if err != nil {
		status = Failure
	}
	to := r.metrics.subscribers.of(string(batch.Client))
	to.batches[status].Inc()
	to.events[status].Add(float64(events))
	r.metrics.deliveryTime[status].Observe(took.Seconds())
	if err == nil {
		r.metrics.endToEndLatency.Observe(latency(batch, start.Add(took)).Seconds())
	}

	queue, ms := QueueTag(batch.Client), took.Milliseconds()
	tags := []bus.Tag{queue, StatusTag(status)}
	r.counts.mu.Lock()
	defer r.counts.mu.Unlock()
	r.counts.add(bus.NewCounter(DeliveredEventsCounter, tags...), int64(events))
	r.counts.add(bus.NewCounter(DeliveriesCounter, tags...), 1)
	r.counts.add(bus.NewCounter(DeliveryTimeCounter, tags...), ms)
	r.counts.add(bus.NewCounter("delivery.time2", tags...), ms*ms)
	if err == nil {
		r.counts.add(bus.NewCounter(LatencyCounter, queue), latency(batch, start).Milliseconds())
	}
}

// Connected notes that a delivery got a connection, and whether it is a reused one.
func (r *Recorder) Connected(reused bool) {
	if r != nil {
		r.metrics.connections[reused].Inc()
	}
}

// Removed notes that a subscriber's events left its queue.
func (r *Recorder) Removed(subscriber bus.ClientName, events int) {
	if r != nil && events > 0 {
		r.counts.addOne(bus.NewCounter("events.removed", QueueTag(subscriber)), int64(events))
	}
}

// Gone notes that a batch was dropped because its subscriber no longer exists.
func (r *Recorder) Gone(batch store.DroppedBatch) {
	if r == nil {
		return
	}
	r.counts.mu.Lock()
	defer r.counts.mu.Unlock()
	r.counts.addFor("events.removed", bus.Tokens(batch.Subscriber), int64(batch.Events))
}

// Dropped notes that a subscriber's events were dropped because Redis was about to be full.
func (r *Recorder) Dropped(subscriber bus.ClientName, events int) {
	if r == nil {
		return
	}
	r.metrics.dropped.of(string(subscriber)).Add(float64(events))
	r.counts.addOne(bus.NewCounter(DroppedEventsCounter, QueueTag(subscriber)), int64(events))
	r.Removed(subscriber, events)
	r.Lost(subscriber, bus.LostToAutodrop, events)
}

// Expired notes that a subscriber's events were dropped because they were older, or more, than it
// keeps.
func (r *Recorder) Expired(subscriber bus.ClientName, events int) {
	r.Removed(subscriber, events)
	r.Lost(subscriber, bus.LostToRetention, events)
}

// Lost notes that events will never reach a subscriber, and why.
func (r *Recorder) Lost(subscriber bus.ClientName, reason bus.LossReason, events int) {
	if r != nil && events > 0 {
		r.metrics.lost.of(string(subscriber))[reason].Add(float64(events))
	}
}

// Subscriber notes that there is a subscriber. What it loses, and what becomes dead letters, is 0
// from then on: the increase of a series that begins with 1 is not seen.
func (r *Recorder) Subscriber(subscriber bus.ClientName) {
	if r != nil {
		r.metrics.lost.of(string(subscriber))
		r.metrics.deadLettered.of(string(subscriber))
		r.metrics.droppedDeadLetters.of(string(subscriber))
	}
}

// DroppedBatches notes how many batches one run of autodrop dropped.
func (r *Recorder) DroppedBatches(batches int) {
	if r != nil {
		r.metrics.droppedBatches.Add(float64(batches))
	}
}

// DeadLettered notes that a subscriber's events have become a dead letter.
func (r *Recorder) DeadLettered(subscriber bus.ClientName, reason bus.DeathReason, events int) {
	if r != nil {
		r.metrics.deadLettered.of(string(subscriber))[reason].Add(float64(events))
	}
}

// Redelivered notes that a subscriber's events were taken from dead letters back to its queue.
func (r *Recorder) Redelivered(subscriber bus.ClientName, events int) {
	if r != nil {
		r.metrics.redelivered.of(string(subscriber)).Add(float64(events))
		r.counts.addOne(bus.NewCounter("events.added", QueueTag(subscriber)), int64(events))
	}
}

// Replayed notes that events of a topic's history were put into a subscriber's queue.
func (r *Recorder) Replayed(subscriber bus.ClientName, events int) {
	if r != nil {
		r.metrics.replayed.of(string(subscriber)).Add(float64(events))
		r.counts.addOne(bus.NewCounter("events.added", QueueTag(subscriber)), int64(events))
	}
}

// DroppedDeadLetters notes how many events of a subscriber's dead letters were removed without its
// asking: they were too many or too old, or Redis was about to be full.
func (r *Recorder) DroppedDeadLetters(subscriber bus.ClientName, events int) {
	if r != nil {
		r.metrics.droppedDeadLetters.of(string(subscriber)).Add(float64(events))
		r.Lost(subscriber, bus.LostDeadLetters, events)
	}
}

// DroppedHistory notes how many events of a topic's history were dropped because Redis was about to
// be full.
func (r *Recorder) DroppedHistory(topic bus.TopicName, events int) {
	if r != nil {
		r.metrics.droppedHistory.of(string(topic)).Add(float64(events))
	}
}

// DroppedArchivedJobs notes how many archived jobs were dropped because Redis was about to be full.
func (r *Recorder) DroppedArchivedJobs(jobs int) {
	if r != nil {
		r.metrics.droppedArchivedJobs.Add(float64(jobs))
	}
}

// DropReason is why idempotency keys were dropped before they expired.
type DropReason string

// The reasons: one client had too many, or Redis was about to be full.
const (
	OverLimit   DropReason = "limit"
	OutOfMemory DropReason = "memory"
)

// DroppedKeys notes how many idempotency keys were dropped before they expired.
func (r *Recorder) DroppedKeys(reason DropReason, keys int) {
	if r == nil || keys == 0 {
		return
	}
	r.metrics.droppedKeys[reason].Add(float64(keys))
	tag := bus.Tag{Name: "reason", Value: string(reason)}
	r.counts.addOne(bus.NewCounter("idempotency_keys.dropped", tag), int64(keys))
}

// Scrubbed notes that jobs of dead workers were requeued, and that dead workers were removed.
func (r *Recorder) Scrubbed(jobs, workers int) {
	if r == nil {
		return
	}
	r.metrics.scrubbedJobs.Add(float64(jobs))
	r.metrics.scrubbedWorkers.Add(float64(workers))
	r.counts.addOne(bus.NewCounter(ScrubbedJobsCounter), int64(jobs))
	r.counts.addOne(bus.NewCounter(ScrubbedWorkersCounter), int64(workers))
}

// Threads notes how many threads of this process run jobs of a queue.
func (r *Recorder) Threads(q bus.Queue, threads int) {
	if r != nil {
		r.metrics.threads.WithLabelValues(string(q)).Set(float64(threads))
		r.metrics.busy.WithLabelValues(string(q)).Set(0)
	}
}

// Busy notes that the number of busy threads of a queue changed by delta.
func (r *Recorder) Busy(q bus.Queue, delta int) {
	if r != nil {
		r.metrics.busy.WithLabelValues(string(q)).Add(float64(delta))
	}
}

// Started notes that a process has started: "web" or "worker".
func (r *Recorder) Started(process string) { r.process(process, "start") }

// Stopped notes that a process is about to stop.
func (r *Recorder) Stopped(process string) { r.process(process, "stop") }

func (r *Recorder) process(process, status string) {
	if r != nil {
		tags := []bus.Tag{{Name: "type", Value: process}, {Name: "status", Value: status}}
		r.counts.addOne(bus.NewCounter("process", tags...), 1)
	}
}
