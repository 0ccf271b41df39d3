// Package ingest publishes: it stores packed events, those of several requests at a time.
//
// Requests that arrive during a round trip to Redis are queued, and the next round trip stores them
// all (group commit, as databases do with their log). There is no timer: a single request is stored
// at once.
package ingest

import (
	"context"
	"errors"
	"slices"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/groupcommit"
	"routemaster/internal/store"
	"routemaster/internal/telemetry"
	"routemaster/internal/telemetry/tracing"
	"routemaster/internal/wire"
)

// Ingest publishes events. It is safe for concurrent use.
type Ingest struct {
	store   *store.Store
	options Options
	queue   *groupcommit.Queue[*request]
}

// Options say how to publish.
type Options struct {
	// Recorder counts what is published. It may be nil.
	Recorder *telemetry.Recorder
	// Tracer makes spans of the group commits. It may be nil.
	Tracer *tracing.Tracer
	// Now is the clock; [time.Now] if nil.
	Now func() time.Time
}

// New makes an ingest that publishes to a store.
func New(st *store.Store, options Options) *Ingest {
	if options.Now == nil {
		options.Now = time.Now
	}
	i := &Ingest{store: st, options: options}
	i.queue = groupcommit.New(limits, i.commit)
	return i
}

// Publish stores events of one topic, oldest first, for every subscriber of the topic. When it
// returns nil they will be delivered. Key may be nil. It fails with [bus.ErrTopicClaimed],
// [bus.ErrIdempotencyKeyReused], [bus.ErrTooManyBatches], [bus.ErrTokenUnknown], a
// [bus.TopicLimitError], [bus.ErrOverloaded], [bus.ErrUnavailable], or the context's cause. After
// [bus.ErrUnavailable] the events may have been stored all the same. A call whose context is done
// while it is queued stores nothing. Once its group commit has begun, it returns its result.
func (i *Ingest) Publish(ctx context.Context, publisher bus.Token, topic bus.TopicName, events []wire.PackedEvent, key *bus.IdempotencyKey) error {
	start := i.options.Now()
	r := newRequest(store.Publication{
		Topic:          topic,
		Publisher:      publisher,
		Events:         events,
		ReceivedAt:     start.UnixMilli(),
		IdempotencyKey: key,
	})
	if i.options.Tracer != nil {
		r.traceparent = tracing.Traceparent(ctx)
	}
	if err := i.queue.Do(ctx, r, r.size); errors.Is(err, groupcommit.ErrFull) {
		return bus.ErrOverloaded
	} else if err != nil {
		return err
	}
	if r.err == nil {
		i.options.Recorder.PublishTook(i.options.Now().Sub(start))
	}
	return r.err
}

// commit stores requests, and leaves each its result. It returns nil.
func (i *Ingest) commit(ctx context.Context, requests []*request) error {
	groups := groupRequests(requests)
	span := i.startSpan(groups)
	panicked := true
	defer func() { // even if the store panics
		for _, g := range groups {
			for _, r := range g.requests {
				r.err = g.receipt.Err
			}
		}
		endSpan(span, groups, panicked)
	}()
	i.publish(ctx, groups)
	groups = i.divide(ctx, groups)
	i.record(groups)
	panicked = false
	return nil
}

// publish stores groups in one round trip, and keeps their receipts.
func (i *Ingest) publish(ctx context.Context, groups []*group) {
	publications := make([]store.Publication, len(groups))
	for n, g := range groups {
		publications[n] = g.publication
	}
	for n, receipt := range i.store.PublishAll(ctx, publications...) {
		groups[n].receipt = receipt
	}
}

// divide stores the requests of a group one by one, if together they would open too many batches.
// It returns the resulting groups.
func (i *Ingest) divide(ctx context.Context, groups []*group) []*group {
	tooLarge := func(g *group) bool { return len(g.requests) > 1 && errors.Is(g.receipt.Err, bus.ErrTooManyBatches) }
	if !slices.ContainsFunc(groups, tooLarge) {
		return groups
	}
	var divided []*group
	for _, g := range groups {
		if !tooLarge(g) {
			divided = append(divided, g)
			continue
		}
		singles := make([]*group, len(g.requests))
		for n, r := range g.requests {
			singles[n] = newGroup(r.publication, g.requests[n:n+1])
			singles[n].publication.Traceparents = g.publication.Traceparents
		}
		i.publish(ctx, singles)
		divided = append(divided, singles...)
	}
	return divided
}

// record counts what was stored.
func (i *Ingest) record(groups []*group) {
	recorder, total := i.options.Recorder, 0
	for _, g := range groups {
		recorder.DroppedKeys(telemetry.OverLimit, g.receipt.DroppedKeys)
		if !g.receipt.Stored {
			continue
		}
		p, bytes := g.publication, 0
		for _, r := range g.requests {
			bytes += r.size.Bytes
		}
		total += len(p.Events)
		recorder.Published(p.Topic, p.Publisher, len(p.Events), bytes, g.receipt.Receivers)
	}
	if total > 0 {
		recorder.Committed(total)
	}
}
