package inspect

import (
	"cmp"
	"context"
	"slices"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/rdb"
	"routemaster/internal/store"
	"routemaster/internal/wire"
)

// look reads batches of a subscriber, in order, given its queue. It leaves out batches that are
// gone or another's.
func (in *Inspector) look(ctx context.Context, token bus.Token, asked queueReplies, ids []bus.BatchID, now time.Time) ([]Batch, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	queue, err := asked.read()
	if err != nil {
		return nil, err
	}
	lanes, err := in.lanesOf(ctx, queue.lanes, ids)
	if err != nil {
		return nil, err
	}
	replies, lists := make([]batchReplies, len(ids)), make([]rdb.Reply[[]string], len(queue.workers))
	err = in.redis.Reads(ctx, "read batches", func(pipe rdb.Commands) {
		for at, worker := range queue.workers {
			lists[at] = pipe.LRange(ctx, in.keys.Pending(bus.QueueMain, bus.WorkerID(worker)), 0, -1)
		}
		for at, id := range ids {
			replies[at] = in.ask(ctx, pipe, token, id, lanes[at])
		}
	})
	if err != nil {
		return nil, err
	}
	pending := map[string]bool{} // packed jobs
	for _, list := range lists {
		for _, job := range list.Val() {
			pending[job] = true
		}
	}
	batches := make([]Batch, 0, len(ids))
	for at, id := range ids {
		if batch, ok := replies[at].read(id, token); ok {
			replies[at].follow(&batch, queue, pending[packedJob(id)], now)
			batches = append(batches, batch)
		}
	}
	return batches, nil
}

func packedJob(id bus.BatchID) string {
	return wire.PackJob(bus.Job{Name: bus.JobBatch, Args: []string{string(id)}})
}

// subscriberQueue is the state of a subscriber's queue, and the workers that may be delivering.
type subscriberQueue struct {
	workers      []string
	blockedUntil int64 // ms
	maxInFlight  int64 // if there is one lane
	lanes        laneCounts
	strict       bool
}

// queueReplies are the replies about a subscriber's queue, and the workers that may be delivering.
type queueReplies struct {
	times, options rdb.Reply[[]any]
	maxInFlight    rdb.Reply[string]
	workers        rdb.Reply[[]string]
}

func (in *Inspector) askQueue(ctx context.Context, pipe rdb.Commands, token bus.Token) queueReplies {
	return in.askHolds(ctx, pipe, token, in.askWorkers(ctx, pipe))
}

// askWorkers asks for the state that all subscribers share.
func (in *Inspector) askWorkers(ctx context.Context, pipe rdb.Commands) queueReplies {
	return queueReplies{
		maxInFlight: pipe.HGet(ctx, in.keys.MaxInFlight(), string(bus.JobBatch)),
		workers:     pipe.SMembers(ctx, in.keys.PendingIndex(bus.QueueMain)),
	}
}

// askHolds asks for the holds of one subscriber, in addition to the shared replies.
func (in *Inspector) askHolds(ctx context.Context, pipe rdb.Commands, token bus.Token, all queueReplies) queueReplies {
	all.times = pipe.HMGet(ctx, in.keys.Delivery(token), HoldFields...)
	all.options = pipe.HMGet(ctx, in.keys.Options(token), slices.Concat(laneFields, []string{"strict_order"})...)
	return all
}

func (r queueReplies) read() (q subscriberQueue, err error) {
	if err := cmp.Or(r.options.Err(), r.workers.Err()); err != nil { // these concern all batches
		return q, rdb.Wrap("read batches", err)
	}
	options := r.options.Val()
	return subscriberQueue{
		workers:      r.workers.Val(),
		blockedUntil: ParseHolds(r.times.Val()).Until().UnixMilli(),
		maxInFlight:  max(rdb.Integer(r.maxInFlight.Val(), 1), 1),
		lanes:        readLaneCounts(options),
		strict:       rdb.Text(options[len(laneFields)]) == "true",
	}, nil
}

// othersFirst reports whether other batches are delivered before one of a lane, given its place
// there if it has one.
func (q subscriberQueue) othersFirst(lane int, turn rdb.Reply[int64]) bool {
	maxInFlight := q.maxInFlight
	if q.strict || q.lanes.now > 1 || lane > 0 {
		maxInFlight = 1
	}
	return turn.Err() == nil && turn.Val() >= maxInFlight
}

// batchReplies are the replies about a batch: its list, and the place of its job.
type batchReplies struct {
	header    rdb.Reply[[]string]
	length    rdb.Reply[int64]
	current   rdb.Reply[bool]
	scheduled rdb.Reply[float64]
	turn      rdb.Reply[int64]
	replay    rdb.Reply[string]
	lane      int
}

func (in *Inspector) ask(ctx context.Context, pipe rdb.Commands, token bus.Token, id bus.BatchID, lane int) batchReplies {
	job := packedJob(id)
	return batchReplies{
		header:    pipe.LRange(ctx, in.keys.Batch(id), 0, store.BatchHeader-1),
		length:    pipe.LLen(ctx, in.keys.Batch(id)),
		current:   pipe.SIsMember(ctx, in.keys.CurrentOfLane(token, lane), string(id)),
		scheduled: pipe.ZScore(ctx, in.keys.Scheduled(bus.QueueMain), job),
		turn:      pipe.ZRank(ctx, in.lane(token, lane), job),
		replay:    pipe.HGet(ctx, in.keys.BatchState(id), "replay"),
		lane:      lane,
	}
}

// read makes a batch of its list. It reports whether the list exists and is the subscriber's.
func (r batchReplies) read(id bus.BatchID, token bus.Token) (batch Batch, ok bool) {
	head, ok := readHead(r.header.Val(), r.length.Val())
	if !ok || head.Token != token {
		return batch, false
	}
	return Batch{
		ID: id, CreatedAt: head.CreatedAt, Attempts: head.Attempts, Events: head.Events, Lane: r.lane, Replay: bus.ReplayID(r.replay.Val()),
	}, true
}

// follow says where a batch is on its way, and when it goes on.
func (r batchReplies) follow(batch *Batch, q subscriberQueue, pending bool, now time.Time) {
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
	if q.othersFirst(r.lane, r.turn) {
		return
	}
	next := max(int64(r.scheduled.Val()), now.UnixMilli(), q.blockedUntil)
	if at := time.UnixMilli(next); at.Before(bus.Forever) {
		batch.NextAt = at
	}
}
