package inspect

import (
	"context"
	"math"
	"strconv"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/rdb"
	"routemaster/internal/store"
	"routemaster/internal/wire"
)

// look reads batches of a subscriber, in order. It leaves out those that are gone or another's.
func (i *Inspector) look(ctx context.Context, token bus.Token, ids []bus.BatchID, now time.Time) ([]Batch, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	pending, err := i.pending(ctx)
	if err != nil {
		return nil, err
	}
	replies, queue := make([]batchReplies, len(ids)), queueReplies{}
	err = i.redis.Reads(ctx, "read batches", func(pipe rdb.Commands) {
		queue.times = pipe.HMGet(ctx, i.keys.Delivery(token), "throttled_until", "paced_until", "paused_until")
		queue.maxInFlight = pipe.HGet(ctx, i.jobs.MaxInFlight(), string(bus.JobBatch))
		for at, id := range ids {
			replies[at] = i.ask(ctx, pipe, token, id)
		}
	})
	if err != nil {
		return nil, err
	}
	batches := make([]Batch, 0, len(ids))
	for at, id := range ids {
		if batch, ok := replies[at].read(id, token); ok {
			replies[at].place(&batch, queue, pending[packedJob(id)], now)
			batches = append(batches, batch)
		}
	}
	return batches, nil
}

// pending is the set of the packed jobs that workers are running.
func (i *Inspector) pending(ctx context.Context) (map[string]bool, error) {
	workers, err := i.redis.SMembers(ctx, i.jobs.PendingIndex(bus.QueueMain)).Result()
	if err != nil {
		return nil, rdb.Wrap("read pending jobs", err)
	}
	lists := make([]rdb.Reply[[]string], len(workers))
	err = i.redis.Reads(ctx, "read pending jobs", func(pipe rdb.Commands) {
		for at, worker := range workers {
			lists[at] = pipe.LRange(ctx, i.jobs.Pending(bus.QueueMain, bus.WorkerID(worker)), 0, -1)
		}
	})
	pending := map[string]bool{}
	for _, list := range lists {
		if err == nil {
			for _, job := range list.Val() {
				pending[job] = true
			}
		}
	}
	return pending, err
}

func packedJob(id bus.BatchID) string {
	return wire.PackJob(bus.Job{Name: bus.JobBatch, Args: []string{string(id)}})
}

// queueReplies are what Redis has of a subscriber's queue: until when it waits in which way (ms),
// and how many of its batches may be in flight.
type queueReplies struct {
	times       rdb.Reply[[]any]
	maxInFlight rdb.Reply[string]
}

// batchReplies are what Redis has of a batch: its list, and where its job is.
type batchReplies struct {
	header    rdb.Reply[[]string]
	length    rdb.Reply[int64]
	current   rdb.Reply[bool]
	scheduled rdb.Reply[float64]
	turn      rdb.Reply[int64]
	replay    rdb.Reply[string]
}

func (i *Inspector) ask(ctx context.Context, pipe rdb.Commands, token bus.Token, id bus.BatchID) batchReplies {
	job := packedJob(id)
	return batchReplies{
		header:    pipe.LRange(ctx, i.keys.Batch(id), 0, store.BatchHeader-1),
		length:    pipe.LLen(ctx, i.keys.Batch(id)),
		current:   pipe.SIsMember(ctx, i.keys.Current(token), string(id)),
		scheduled: pipe.ZScore(ctx, i.jobs.Scheduled(bus.QueueMain), job),
		turn:      pipe.ZRank(ctx, i.jobs.Lane(bus.JobBatch, string(token)), job),
		replay:    pipe.HGet(ctx, i.keys.BatchState(id), "replay"),
	}
}

// read makes a batch of what its list has. It reports whether it is there, and the subscriber's.
func (r batchReplies) read(id bus.BatchID, token bus.Token) (batch Batch, ok bool) {
	header := r.header.Val()
	if len(header) < store.BatchHeader || bus.Token(header[0]) != token {
		return batch, false
	}
	created, _ := strconv.ParseInt(header[1], 10, 64)
	attempts, _ := strconv.Atoi(header[2])
	return Batch{
		ID: id, CreatedAt: time.UnixMilli(created), Attempts: attempts, Events: max(int(r.length.Val())-store.BatchHeader, 0),
		Replay: bus.ReplayID(r.replay.Val()),
	}, true
}

// place says where a batch is on its way, and when it goes on.
func (r batchReplies) place(batch *Batch, queue queueReplies, pending bool, now time.Time) {
	switch {
	case pending:
		batch.State = Delivering
		return
	case r.current.Val():
		batch.State = Current
	case batch.Attempts > 0:
		batch.State = Retrying
	default:
		batch.State = Waiting
	}
	maxInFlight, _ := strconv.ParseInt(queue.maxInFlight.Val(), 10, 64)
	if r.turn.Err() == nil && r.turn.Val() >= max(maxInFlight, 1) {
		return // others come first
	}
	next := max(int64(r.scheduled.Val()), now.UnixMilli())
	for _, value := range queue.times.Val() {
		text, _ := value.(string)
		until, _ := strconv.ParseFloat(text, 64) // paced_until has fractions
		next = max(next, int64(math.Ceil(until)))
	}
	if at := time.UnixMilli(next); at.Before(bus.Forever) {
		batch.NextAt = at
	}
}
