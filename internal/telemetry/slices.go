package telemetry

import (
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/store"
)

// partial is the status of a delivery of which only a part was acknowledged or rejected.
const partial = "partial"

// PartlyDelivered notes a delivery whose receipt has acknowledged or rejected some events.
func (r *Recorder) PartlyDelivered(batch *store.Delivery, acknowledged, rejected int, took time.Duration) {
	if r == nil {
		return
	}
	subscriber := string(batch.Client)
	r.metrics.partBatches.of(subscriber).Inc()
	r.metrics.partial.of(subscriber).Inc()
	r.metrics.rejected.of(subscriber).Add(float64(rejected))
	r.metrics.subscribers.of(subscriber).events[Success].Add(float64(acknowledged))
	r.metrics.deliveryTime[Success].Observe(took.Seconds())

	queue := QueueTag(batch.Client)
	r.counts.mu.Lock()
	defer r.counts.mu.Unlock()
	r.counts.add(bus.NewCounter(DeliveredEventsCounter, queue, StatusTag(Success)), int64(acknowledged))
	r.counts.add(bus.NewCounter(DeliveriesCounter, queue, bus.Tag{Name: "status", Value: partial}), 1)
}

// UnreadableReceipt notes an answer of 207 that cannot be read.
func (r *Recorder) UnreadableReceipt(subscriber bus.ClientName) {
	if r != nil {
		r.metrics.unreadableReceipts.of(string(subscriber)).Inc()
	}
}

// Bisecting notes that a search for the event that an endpoint refuses has begun.
func (r *Recorder) Bisecting(subscriber bus.ClientName) {
	if r != nil {
		r.metrics.bisections.of(string(subscriber)).Inc()
	}
}

// Signed notes a signature of a delivery, by the type of the secret.
func (r *Recorder) Signed(kind string) {
	if r != nil {
		r.metrics.signatures.of(kind).Inc()
	}
}

// Sliced notes a delivery that carried a part of its batch.
func (r *Recorder) Sliced() {
	if r != nil {
		r.metrics.slices.Inc()
	}
}
