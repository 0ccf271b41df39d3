// Package ingest takes events in: it validates and packs them, and hands them to the store.
package ingest

import (
	"context"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/store"
)

// Ingest takes events in. It is safe for concurrent use.
type Ingest struct {
	store        *store.Store
	maxEventData int
	now          func() time.Time
}

// New makes an ingest whose events may have at most maxEventData bytes of packed data.
func New(st *store.Store, maxEventData int, now func() time.Time) *Ingest {
	return &Ingest{store: st, maxEventData: maxEventData, now: now}
}

// Pack validates an event and packs it. The error is a [bus.Invalid].
func (i *Ingest) Pack(e *bus.Event) (store.PackedEvent, error) {
	if err := e.Validate(); err != nil {
		return nil, err
	}
	return store.PackEvent(e, i.maxEventData)
}

// Publish stores events of one topic, oldest first, for every subscriber of the topic. When it returns
// nil they will be delivered. Once may be nil. It fails with [bus.ErrTopicClaimed], [bus.ErrKeyReused] or
// [bus.ErrUnavailable].
func (i *Ingest) Publish(ctx context.Context, publisher bus.Token, topic bus.TopicName, events []store.PackedEvent, once *store.Once) error {
	return i.store.Publish(ctx, store.Publication{
		Topic:      topic,
		Publisher:  publisher,
		Events:     events,
		ReceivedAt: i.now().UnixMilli(),
		Once:       once,
	})
}
