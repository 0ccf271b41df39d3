package store

import (
	"context"
	"slices"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/layout"
	"routemaster/internal/rdb"
)

// scriptBatchExpire is described in its header.
var scriptBatchExpire = newScript("batch_expire")

// The limits of one step for a subscriber, so that it does not block Redis for long, and the number
// of subscribers in one round trip.
const (
	batchesPerStep              = 100
	eventsPerStep               = 1000
	subscribersPerRetentionTrip = 20
)

// Retention drops batches that their subscribers' options do not keep: batches that are too old,
// and the oldest of a subscriber with too many events. A batch that comes up meanwhile is dropped
// by the step that takes it: lua/lib/slices.lua. It is safe for concurrent use.
type Retention struct {
	redis *rdb.Partition
	keys  layout.Keys
}

// NewRetention returns the retention of a store.
func NewRetention(st *Store) *Retention {
	return &Retention{st.Partition(), layout.Keys{Namespace: st.Partition().Namespace()}}
}

// DroppedBatches is how many batches of a subscriber were dropped, and how many events were lost.
type DroppedBatches struct{ Batches, Events int }

// Drop drops batches that subscribers do not keep. It reads only subscribers with such options. It
// takes steps while goesOn returns true, and returns what it has dropped, also with an error. It
// skips a subscriber whose keys are not of their type: doctor repairs them.
func (r *Retention) Drop(ctx context.Context, now time.Time, goesOn func() bool) (map[bus.Token]DroppedBatches, error) {
	tokens, err := r.redis.SMembers(ctx, r.keys.Retention()).Result()
	if err != nil {
		return nil, rdb.Wrap("drop expired batches", err)
	}
	dropped := map[bus.Token]DroppedBatches{}
	for some := range slices.Chunk(tokens, subscribersPerRetentionTrip) {
		for len(some) > 0 && err == nil && goesOn() {
			some, err = r.step(ctx, some, now, dropped)
		}
	}
	return dropped, rdb.Wrap("drop expired batches", err)
}

// step takes one step for each subscriber, and returns those that may have more to drop.
func (r *Retention) step(
	ctx context.Context, tokens []string, now time.Time, dropped map[bus.Token]DroppedBatches,
) (more []string, err error) {
	calls := make([]rdb.Call, len(tokens))
	for i, token := range tokens {
		calls[i] = scriptBatchExpire.Call(token, now.UnixMilli(), bus.NewBatchSeed(), batchesPerStep, eventsPerStep)
	}
	for i, result := range r.redis.RunAll(ctx, calls...) {
		reply, err := result.List()
		if !rdb.Answered(err) {
			return nil, err
		}
		if err != nil || reply[0] == int64(0) {
			continue
		}
		token := bus.Token(tokens[i])
		d := dropped[token]
		d.Batches += int(reply[0].(int64))
		d.Events += int(reply[1].(int64))
		dropped[token] = d
		more = append(more, tokens[i])
	}
	return more, nil
}
