package store

import (
	"context"
	"slices"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/rdb"
)

// DroppedBatch is a batch that will not be delivered. Its events do not include the events that a
// gap notice reports, which were lost before.
type DroppedBatch struct {
	Subscriber bus.Token
	Events     int
}

// ExpiredBatch is a batch that came up and was older than its subscriber keeps batches.
type ExpiredBatch struct {
	Client bus.ClientName
	Events int
}

// The limits of one call, so that it does not block Redis for long, nor drop much more than needed.
const (
	batchesPerLook = 500
	batchesPerDrop = 100
	eventsPerDrop  = 1000
)

// OldestBatches are the batches of some subscribers, or of all, from the oldest on.
type OldestBatches struct {
	store *Store
	of    []bus.Token
	// last is the last batch that was looked at and stayed, lastCreated its time (ms).
	last, lastCreated string
	ended             bool
	// former has batches stay whose token is a subscriber by now.
	former bool
}

// OldestBatches returns the oldest batches of some subscribers, or of all if none is given.
func (s *Store) OldestBatches(of ...bus.Token) *OldestBatches {
	return &OldestBatches{store: s, of: of}
}

// AreOf reports whether the batches are of exactly these subscribers, in this order.
func (b *OldestBatches) AreOf(tokens []bus.Token) bool { return slices.Equal(b.of, tokens) }

// Ended reports whether all batches were looked at.
func (b *OldestBatches) Ended() bool { return b.ended }

// dropArgs are the first arguments of lua/batch_drop.lua, under the same names there.
type dropArgs struct {
	// MaxBatches is how many batches are dropped at most; none is, once MaxEvents events were.
	MaxBatches, MaxEvents int
	Now                   int64  // ms
	Seed                  string // of the UIDs of gap notices
	// Last is the last batch that was looked at and stayed, empty to begin, LastCreated its time (ms).
	Last, LastCreated string
	MaxLooks          int
	Former            bool // see OldestBatches
}

func (a dropArgs) list() []any {
	return []any{a.MaxBatches, a.MaxEvents, a.Now, a.Seed, a.Last, a.LastCreated, a.MaxLooks, a.Former}
}

// Drop looks at the next of the batches, drops some, with their jobs and all that points to them,
// and returns them, oldest first. Batches that are being delivered stay, and so do gap notices that
// were never tried. It goes on until one was dropped, all were looked at, or goesOn, if given, says
// no.
func (b *OldestBatches) Drop(ctx context.Context, now time.Time, goesOn func() bool) (dropped []DroppedBatch, err error) {
	for first := true; !b.ended && len(dropped) == 0 && (first || goesOn == nil || goesOn()); first = false {
		args := dropArgs{
			MaxBatches: batchesPerDrop, MaxEvents: eventsPerDrop, Now: now.UnixMilli(), Seed: bus.NewBatchSeed(),
			Last: b.last, LastCreated: b.lastCreated, MaxLooks: batchesPerLook, Former: b.former,
		}.list()
		for _, token := range b.of {
			args = append(args, string(token))
		}
		reply, err := b.store.redis.Run(ctx, scriptBatchDrop, args...).List()
		if err != nil {
			return nil, rdb.Wrap("drop batches", err)
		}
		b.ended, b.last, b.lastCreated = reply[0] == int64(1), rdb.Text(reply[1]), rdb.Text(reply[2])
		for i := 3; i+1 < len(reply); i += 2 {
			dropped = append(dropped, DroppedBatch{bus.Token(rdb.Text(reply[i])), int(reply[i+1].(int64))})
		}
	}
	return dropped, nil
}

// QueueSizes returns about how many bytes of Redis each subscriber's queue takes, for some
// subscribers or for all, in one round trip: see [bus.QueueSize].
func (s *Store) QueueSizes(ctx context.Context, of ...bus.Token) (map[bus.Token]int64, error) {
	var read [3]func() map[string]string
	err := s.redis.Pipelined(ctx, "read sizes of queues", func(pipe rdb.Commands) {
		for i, gauge := range []string{s.keys.BatchGauge(), s.keys.EventGauge(), s.keys.BytesGauge()} {
			read[i] = readGauge(ctx, pipe, gauge, of)
		}
	})
	if err != nil {
		return nil, err
	}
	batches, events, bytes := read[0](), read[1](), read[2]()
	sizes := make(map[bus.Token]int64, len(batches))
	for token, n := range batches {
		sizes[bus.Token(token)] = bus.QueueSize(
			rdb.Integer(n, 0), rdb.Integer(events[token], 0), rdb.Integer(bytes[token], 0))
	}
	return sizes, nil
}

// readGauge asks for a gauge of all subscribers, or of some. It returns a function that reads the
// reply.
func readGauge(ctx context.Context, pipe rdb.Commands, gauge string, of []bus.Token) (read func() map[string]string) {
	if len(of) == 0 {
		return pipe.HGetAll(ctx, gauge).Val
	}
	fields := make([]string, len(of))
	for i, token := range of {
		fields[i] = string(token)
	}
	values := pipe.HMGet(ctx, gauge, fields...)
	return func() map[string]string {
		found := map[string]string{}
		for i, value := range values.Val() {
			if value != nil {
				found[fields[i]] = rdb.Text(value)
			}
		}
		return found
	}
}
