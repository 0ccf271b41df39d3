// Package ingest takes events in: it validates and packs them, and hands them to the store, those of
// several requests at a time.
package ingest

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/store"
	"routemaster/internal/telemetry"
	"routemaster/internal/telemetry/tracing"
	"routemaster/internal/wire"
)

// Ingest takes events in. It is safe for concurrent use.
type Ingest struct {
	store        *store.Store
	maxEventData int
	recorder     *telemetry.Recorder
	now          func() time.Time
	commits      commits
	// Tracer, if set before the first call, makes spans of the commits.
	Tracer *tracing.Tracer
}

// New makes an ingest whose events may have at most maxEventData bytes of packed data. The recorder may be nil.
func New(st *store.Store, maxEventData int, recorder *telemetry.Recorder, now func() time.Time) *Ingest {
	return &Ingest{store: st, maxEventData: maxEventData, recorder: recorder, now: now}
}

// MaxEventData is how many bytes the packed data of an event may have.
func (i *Ingest) MaxEventData() int { return i.maxEventData }

// Pack validates an event and packs it. The error is a [bus.Invalid].
func (i *Ingest) Pack(e *bus.Event) (wire.PackedEvent, error) {
	if err := e.Validate(); err != nil {
		return "", err
	}
	return wire.PackEvent(e, i.maxEventData)
}

// Publish stores events of one topic, oldest first, for every subscriber of the topic. When it returns
// nil they will be delivered. Key may be nil. It fails with [bus.ErrTopicClaimed], [bus.ErrIdempotencyKeyReused], [bus.ErrTooManyBatches],
// [bus.ErrTokenUnknown], [bus.ErrOverloaded], [bus.ErrUnavailable], or the context's error. After the last two the
// events may have been stored all the same.
//
// Calls do not queue for round trips: while one commit is under way, those that come in wait, and the next commit takes
// them all. There is no timer: a call that comes alone is committed at once.
func (i *Ingest) Publish(ctx context.Context, publisher bus.Token, topic bus.TopicName, events []wire.PackedEvent, key *store.IdempotencyKey) (err error) {
	start := i.now()
	defer func() {
		if err == nil {
			i.recorder.PublishTook(i.now().Sub(start))
		}
	}()
	r := newRequest(store.Publication{
		Topic:          topic,
		Publisher:      publisher,
		Events:         events,
		ReceivedAt:     start.UnixMilli(),
		IdempotencyKey: key,
	})
	if i.Tracer != nil {
		r.origin = tracing.Traceparent(ctx)
	}
	leads, err := i.commits.join(r)
	if err != nil {
		return err
	}
	if !leads {
		select {
		case <-r.woken:
		case <-ctx.Done():
			if i.commits.leave(r) {
				return context.Cause(ctx)
			}
			<-r.woken // it leads, or is being committed, which is not undone
		}
		if !r.leads {
			return r.err
		}
	}
	// Others depend on this commit too, so it does not end with this call.
	i.commit(context.WithoutCancel(ctx), r)
	return r.err
}

// commit stores what is waiting, and hands over to the next.
func (i *Ingest) commit(ctx context.Context, leader *request) {
	runtime.Gosched() // those who are about to join may: it makes commits larger when there are many, and costs nothing when there is nobody
	groups := group(i.commits.take())
	var receipts []store.Receipt
	if i.Tracer != nil {
		span := i.trace(groups)
		defer func() { endCommit(span, groups, receipts) }()
	}
	defer func() { // also when the store panics: nobody may wait for ever
		i.commits.handOver()
		for n, g := range groups {
			for _, r := range g.requests {
				if r.err = bus.ErrUnavailable; receipts != nil {
					r.err = receipts[n].Err
				}
				if r != leader {
					r.woken <- struct{}{}
				}
			}
		}
	}()
	publications := make([]store.Publication, len(groups))
	for n, g := range groups {
		publications[n] = g.publication
	}
	receipts = i.store.PublishAll(ctx, publications...)
	groups, receipts = i.divide(ctx, groups, receipts)
	i.record(groups, receipts)
}

// divide stores requests one by one that were refused only because together they would open too many batches.
func (i *Ingest) divide(ctx context.Context, groups []*grouped, receipts []store.Receipt) (all []*grouped, of []store.Receipt) {
	tooMany := func(r store.Receipt) bool { return errors.Is(r.Err, bus.ErrTooManyBatches) }
	if !slices.ContainsFunc(receipts, tooMany) {
		return groups, receipts
	}
	for n, g := range groups {
		if len(g.requests) == 1 || !tooMany(receipts[n]) {
			all, of = append(all, g), append(of, receipts[n])
			continue
		}
		single := make([]store.Publication, len(g.requests))
		for k, r := range g.requests {
			single[k] = r.publication
			single[k].Origins = g.publication.Origins
			all = append(all, &grouped{r.publication, g.requests[k : k+1]})
		}
		of = append(of, i.store.PublishAll(ctx, single...)...)
	}
	return all, of
}

// record notes what was stored.
func (i *Ingest) record(groups []*grouped, receipts []store.Receipt) {
	total := 0
	for n, g := range groups {
		i.recorder.DroppedKeys(telemetry.OverLimit, receipts[n].DroppedKeys)
		if !receipts[n].Stored {
			continue
		}
		p, bytes := g.publication, 0
		for _, r := range g.requests {
			bytes += r.bytes
		}
		total += len(p.Events)
		i.recorder.Published(p.Topic, p.Publisher, len(p.Events), bytes, receipts[n].Receivers)
	}
	if total > 0 {
		i.recorder.Committed(total)
	}
}
