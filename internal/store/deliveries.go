package store

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"sync/atomic"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/queue"
	"routemaster/internal/rdb"
	"routemaster/internal/wire"
)

// Delivery is a batch, closed to new events, with the data needed to deliver it.
type Delivery struct {
	Batch      bus.BatchID
	Subscriber bus.Token
	// Client is the subscriber's public name.
	Client   bus.ClientName
	Callback string
	UUID     string
	// Health is the subscriber's, before this attempt.
	Health    int
	CreatedAt time.Time
	// DueAt is when the batch came due; zero if unknown: after the first attempt, and if it was full
	// before.
	DueAt time.Time
	// Attempts counts this one.
	Attempts int
	Events   []wire.PackedEvent
	// Standing is the subscriber's, before this attempt.
	Standing bus.Standing
	// Refusals is how often the endpoint has refused a batch since it last acknowledged one,
	// RefusedSince since when; zero if it has not.
	Refusals     int
	RefusedSince time.Time
	// Traceparents come from a few of the requests that brought the events, if
	// [BatchOptions].Traceparents asks for them.
	Traceparents []string
	// Basis is further data for the batch of a subscriber with options, else nil.
	Basis *Basis
	// Ahead is how many batches of the subscriber may be taken ahead: see [queue.AheadKind].
	Ahead int
}

// IsTest reports whether the batch is a test event.
func (d *Delivery) IsTest() bool { return d.Basis != nil && d.Basis.Test }

// LaneStanding is part of [queue.Payload].
func (d *Delivery) LaneStanding() bus.Standing { return d.Standing }

// Owners is part of [queue.Payload]: the subscriber, and the host of its callback.
func (d *Delivery) Owners() []queue.Owner {
	return []queue.Owner{queue.Owner(d.Subscriber), queue.HostOwner(d.Callback)}
}

// LogAttrs is part of [queue.Payload].
func (d *Delivery) LogAttrs() []slog.Attr {
	return []slog.Attr{
		slog.String("subscriber", string(d.Client)), slog.String("batch", string(d.Batch)), slog.Int("attempt", d.Attempts),
	}
}

// DeliveryResult is the result of a delivery: the [queue.Result].Detail of its task.
type DeliveryResult struct {
	// Failure is the cause of a failed delivery; zero if it succeeded, or failed for another reason.
	Failure bus.Failure
	// ThrottledUntil, if set, is when deliveries to the subscriber resume, unless one in flight
	// succeeds before.
	ThrottledUntil time.Time
	// Health is added to the subscriber's health points.
	Health int
	// Delivered is the number of events that the subscriber acknowledged.
	Delivered int
	// Works says that the endpoint works though it may have acknowledged nothing.
	Works bool
	// Ahead, unless nil, is how many batches of the subscriber may be taken ahead from now on.
	Ahead *int
	// Attempt, unless empty, is recorded: see [wire.PackAttempt]. The last AttemptsKept are kept.
	Attempt      []byte
	AttemptsKept int
	// Slice, if given, is the result for the batch of a subscriber with options.
	Slice *SliceResult
}

// BatchOptions say how batches are taken from the queue.
type BatchOptions struct {
	// MaxInFlight is how many batches of one subscriber may be delivered at once, at least 1. With
	// 1 its batches are delivered in order.
	MaxInFlight int
	// Traceparents makes [Delivery].Traceparents be read.
	Traceparents bool
	// MaxAhead is how many batches may be taken ahead: see [queue.AheadKind].
	MaxAhead int
}

// batches is the kind of queue entries that deliver a batch. Their payload is a [*Delivery]. A
// discarded entry yields a [DroppedBatch] if its subscriber is gone, or an [ExpiredBatch].
type batches struct {
	store   *Store
	options BatchOptions

	// migrating is whether the Ruby original may run too, as of the last look-up (ms).
	migrating  atomic.Bool
	lookedUpAt atomic.Int64
}

// Batches are the batches as a kind of the queue's entries.
func (s *Store) Batches(o BatchOptions) queue.Kind {
	o.MaxInFlight = max(o.MaxInFlight, 1)
	return &batches{store: s, options: o}
}

// Name is part of [queue.Kind].
func (b *batches) Name() bus.JobName { return bus.JobBatch }

// Library is part of [queue.Kind].
func (b *batches) Library() rdb.Library { return library }

// MaxInFlight is part of [queue.Kind].
func (b *batches) MaxInFlight() int { return b.options.MaxInFlight }

// MaxAhead is part of [queue.AheadKind].
func (b *batches) MaxAhead() int { return min(b.options.MaxAhead, queue.MaxAhead) }

// Settings is part of [queue.Kind].
func (b *batches) Settings(ctx context.Context) []any {
	return []any{b.options.MaxInFlight, b.options.Traceparents, b.isMigrating(ctx)}
}

// migratingInterval is how long it may take to notice that a migration begins.
const migratingInterval = 5 * time.Second

// isMigrating reports whether a migration from or to the Ruby original is announced. It asks Redis
// once an interval; until it answers, the last reply holds.
func (b *batches) isMigrating(ctx context.Context) bool {
	now, before := time.Now().UnixMilli(), b.lookedUpAt.Load()
	if now-before < migratingInterval.Milliseconds() || !b.lookedUpAt.CompareAndSwap(before, now) {
		return b.migrating.Load()
	}
	found, err := b.store.redis.Exists(ctx, b.store.keys.Migration()).Result()
	if err != nil {
		b.lookedUpAt.Store(before)
		return true // it is cheap to look for data of the Ruby original
	}
	b.migrating.Store(found > 0)
	return found > 0
}

// Result is part of [queue.Kind]: see lua/lib/deliveries.lua. A batch of a subscriber with options
// keeps its turn if it did not come to a delivery.
func (b *batches) Result(p queue.Payload, detail any) []any {
	d, r := p.(*Delivery), DeliveryResult{}
	if detail != nil {
		r = detail.(DeliveryResult)
	} else if d.Basis != nil {
		r.Slice = &SliceResult{KeepTurn: true}
	}
	var throttledUntil int64
	if !r.ThrottledUntil.IsZero() {
		throttledUntil = r.ThrottledUntil.UnixMilli()
	}
	health := r.Health
	if d.Health == bus.MaxHealth {
		health = min(health, 0) // a health that was full is not even read
	}
	failure := failures[r.Failure]
	if r.Works {
		failure = "none"
	}
	ahead := ""
	if r.Ahead != nil {
		ahead = strconv.Itoa(*r.Ahead)
	}
	return append([]any{
		d.Total() - r.Slice.removed(), r.Delivered, health, throttledUntil, failure, string(d.Subscriber), ahead, d.bytesLeft(r.Slice),
	}, r.sliceArgs()...)
}

// failures are the scripts' words for each failure.
var failures = map[bus.Failure]string{bus.EndpointFailure: "endpoint", bus.BatchFailure: "batch"}

// Discarded is part of [queue.Kind].
func (b *batches) Discarded(values []any) any {
	token, events := bus.Token(rdb.Text(values[0])), int(values[1].(int64))
	if len(values) == 2 {
		return DroppedBatch{token, events}
	}
	return ExpiredBatch{bus.PublicName(token, bus.ClientName(rdb.Text(values[2]))), events}
}

// BatchHeader is how many values a batch's list has before its events: the subscriber's token, the
// creation time (ms) and the number of attempts before this one.
const BatchHeader = 3

// batchReply is the reply of BATCH.take in lua/lib/deliveries.lua, before the beginning of the
// batch's list.
type batchReply struct {
	Client any // its name, or nil
	// Refusals counts refusals since the last success; RefusedSince is when they began (ms).
	Standing, Refusals, RefusedSince           any
	Traceparents                               any // or nil
	Adopted                                    any // 1 if the Ruby original had something of the batch
	Callback, UUID, Health, Timeout, MaxEvents any
	Rest                                       any // the end of the batch's list if that is long, or nil
	Basis                                      any // see basisReply; or nil
	Ahead                                      any
}

// batchReplyLen is the number of its fields.
const batchReplyLen = 14

// Payload is part of [queue.Kind].
func (b *batches) Payload(job bus.Job, values []any) (queue.Payload, error) {
	if len(values) < batchReplyLen+BatchHeader {
		return nil, fmt.Errorf("take batch: %d values", len(values))
	}
	reply := batchReply{
		values[0], values[1], values[2], values[3], values[4], values[5], values[6], values[7], values[8], values[9],
		values[10], values[11], values[12], values[13],
	}
	batch := values[batchReplyLen:]
	rest, _ := reply.Rest.([]any)
	d := &Delivery{
		Batch:      bus.BatchID(job.Args[0]),
		Subscriber: bus.Token(rdb.Text(batch[0])),
		Callback:   rdb.Text(reply.Callback),
		UUID:       rdb.Text(reply.UUID),
		Health:     int(rdb.Integer(rdb.Text(reply.Health), bus.MaxHealth)),
		CreatedAt:  time.UnixMilli(rdb.Integer(rdb.Text(batch[1]), 0)),
		Attempts:   int(rdb.Integer(rdb.Text(batch[2]), 0)) + 1,
		Standing:   bus.Standing(reply.Standing.(int64)),
		Refusals:   int(reply.Refusals.(int64)),
		Ahead:      int(min(max(reply.Ahead.(int64), 0), queue.MaxAhead)), // it may have come from elsewhere
	}
	d.Client = bus.PublicName(d.Subscriber, bus.ClientName(rdb.Text(reply.Client)))
	if basis, ok := reply.Basis.([]any); ok {
		d.Basis = readBasis(basis)
	}
	if since := reply.RefusedSince.(int64); since > 0 {
		d.RefusedSince = time.UnixMilli(since)
	}
	d.Traceparents = texts(reply.Traceparents)
	if reply.Adopted == int64(1) { // others see it when they look it up
		b.migrating.Store(true)
	}
	d.Events = packedEvents(batch[BatchHeader:], rest)
	timeout, maxEvents := rdb.Integer(rdb.Text(reply.Timeout), -1), rdb.Integer(rdb.Text(reply.MaxEvents), -1)
	if d.Attempts == 1 && timeout >= 0 && int64(len(d.Events)) < maxEvents {
		d.DueAt = d.CreatedAt.Add(time.Duration(timeout) * time.Millisecond)
	}
	return d, nil
}

// PayloadAhead is part of [queue.AheadKind]: it reads the values that BATCH.take_ahead in
// lua/lib/deliveries.lua returns for a batch, which was full.
func (b *batches) PayloadAhead(job bus.Job, first queue.Payload, values []any) (queue.Payload, error) {
	if len(values) < 1+BatchHeader {
		return nil, fmt.Errorf("take batch ahead: %d values", len(values))
	}
	d, batch := *first.(*Delivery), values[1:]
	d.Batch, d.Attempts, d.DueAt = bus.BatchID(job.Args[0]), 1, time.Time{}
	d.CreatedAt = time.UnixMilli(rdb.Integer(rdb.Text(batch[1]), 0))
	d.Traceparents, d.Events = texts(values[0]), packedEvents(batch[BatchHeader:])
	return &d, nil
}

// texts are the strings of a list that a script returned; nil if it returned none.
func texts(list any) (all []string) {
	values, _ := list.([]any)
	for _, value := range values {
		all = append(all, rdb.Text(value))
	}
	return all
}

// packedEvents are the events of a batch's list, in parts.
func packedEvents(parts ...[]any) []wire.PackedEvent {
	total := 0
	for _, part := range parts {
		total += len(part)
	}
	events := make([]wire.PackedEvent, 0, total)
	for _, part := range parts {
		for _, packed := range part {
			events = append(events, wire.PackedEvent(rdb.Text(packed)))
		}
	}
	return events
}
