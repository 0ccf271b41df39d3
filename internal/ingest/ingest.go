// Package ingest publishes: it stores packed events, of several requests at a time.
//
// Requests that arrive during a round trip to Redis are queued, and the next round trip stores them
// all (group commit, as databases do with their log). There is no timer: a single request is stored
// at once. On a bus with partitions each has a queue of its own, so that an unreachable partition
// holds up only the topics that it is the home of.
package ingest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/rdb"
	"routemaster/internal/store"
	"routemaster/internal/telemetry"
	"routemaster/internal/wire"
)

// Ingest publishes events. It is safe for concurrent use.
type Ingest struct {
	stores *store.Bus
	homes  []*home // by number of their partitions
}

// home is a store with its queue of requests for a group commit.
type home struct {
	store   *store.Store
	options Options
	queue   *rdb.CommitQueue[*request]
}

// Options say how to publish.
type Options struct {
	// Recorder counts published events. It may be nil.
	Recorder *telemetry.Recorder
	// Tracer makes spans of the group commits. It may be nil.
	Tracer *telemetry.Tracer
	// Now is the clock; [time.Now] if nil.
	Now func() time.Time
}

// New makes an ingest that publishes to the stores of a bus.
func New(all *store.Bus, options Options) *Ingest {
	if options.Now == nil {
		options.Now = time.Now
	}
	i := &Ingest{stores: all}
	for _, st := range all.All() {
		h := &home{store: st, options: options}
		h.queue = rdb.NewCommitQueue(limits, h.commit)
		i.homes = append(i.homes, h)
	}
	return i
}

// Publish stores events of one topic, oldest first, for every subscriber of the topic. When it
// returns nil they will be delivered. Key may be nil. It fails with [bus.ErrTopicClaimed],
// [bus.ErrIdempotencyKeyReused], [bus.ErrTooManyBatches], [bus.ErrTokenUnknown], a
// [bus.TopicLimitError], [bus.ErrOverloaded], [bus.ErrUnavailable], or the context's cause. After
// [bus.ErrUnavailable] the events may have been stored all the same. A call whose context is done
// while it is queued stores nothing. Once its group commit has begun, it returns its result.
func (i *Ingest) Publish(ctx context.Context, publisher bus.Token, topic bus.TopicName, events []wire.PackedEvent, key *bus.IdempotencyKey) error {
	h := i.homes[i.stores.Home(topic).Partition().Number()]
	start := h.options.Now()
	r := newRequest(store.Publication{
		Topic:          topic,
		Publisher:      publisher,
		Events:         events,
		ReceivedAt:     start.UnixMilli(),
		IdempotencyKey: key,
	})
	if h.options.Tracer != nil {
		r.traceparent = telemetry.Traceparent(ctx)
	}
	if err := h.queue.Do(ctx, r, r.size); errors.Is(err, rdb.ErrFull) {
		return bus.ErrOverloaded
	} else if err != nil {
		return err
	}
	if r.err == nil {
		h.options.Recorder.Took(telemetry.PublishDuration, h.options.Now().Sub(start))
	}
	return r.err
}

// commit stores requests, and leaves each its result. It returns nil.
func (h *home) commit(ctx context.Context, requests []*request) error {
	groups := groupRequests(requests)
	span := h.startSpan(groups)
	panicked := true
	defer func() { // even if the store panics
		for _, g := range groups {
			for _, r := range g.requests {
				r.err = g.receipt.Err
			}
		}
		endSpan(span, groups, panicked)
	}()
	h.publish(ctx, groups)
	groups = h.divide(ctx, groups)
	h.record(groups)
	panicked = false
	return nil
}

// publish stores groups in one round trip, and keeps their receipts.
func (h *home) publish(ctx context.Context, groups []*group) {
	publications := make([]store.Publication, len(groups))
	for n, g := range groups {
		publications[n] = g.publication
	}
	for n, receipt := range h.store.PublishAll(ctx, publications...) {
		groups[n].receipt = receipt
	}
}

// divide stores the requests of a group one by one, if together they would open too many batches.
// It returns the resulting groups.
func (h *home) divide(ctx context.Context, groups []*group) []*group {
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
		h.publish(ctx, singles)
		divided = append(divided, singles...)
	}
	return divided
}

// record counts the stored events, and the dropped keys.
func (h *home) record(groups []*group) {
	recorder, total := h.options.Recorder, 0
	for _, g := range groups {
		recorder.Count(telemetry.DroppedKeys, g.receipt.DroppedKeys, telemetry.OverLimit)
		if !g.receipt.Stored {
			continue
		}
		p, bytes := g.publication, 0
		for _, r := range g.requests {
			bytes += r.size.Bytes
		}
		total += len(p.Events)
		topic, publisher := string(p.Topic), publisherOf(p.Publisher)
		recorder.Count(telemetry.PublishedEvents, len(p.Events), topic, publisher)
		recorder.Count(telemetry.PublishedBytes, bytes, topic, publisher)
		recorder.CountFor(telemetry.EnqueuedEvents, len(p.Events), g.receipt.Receivers)
	}
	if total > 0 {
		recorder.Observe(telemetry.CommitEvents, float64(total))
	}
}

// publisherOf returns the publisher's name: the part of the token before "--", which is no secret.
func publisherOf(token bus.Token) string {
	name, _, ok := strings.Cut(string(token), "--")
	switch {
	case token == "":
		name = "null"
	case !ok || name == "":
		name = "malformed"
	}
	return name
}
