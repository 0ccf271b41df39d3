package inspect

import (
	"context"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/rdb"
)

// NextAt returns when the next delivery of scheduled batches may begin, given their heads, as
// [Batch.NextAt] says. Their place among the scheduled jobs does not say it: a batch that waits
// behind others stands there only in case it is not woken. It takes two round trips, and one more
// for each subscriber with lanes, and fails with [bus.ErrUnavailable].
func (in *Inspector) NextAt(ctx context.Context, heads map[bus.BatchID]Head, now time.Time) (map[bus.BatchID]time.Time, error) {
	if len(heads) == 0 {
		return nil, nil
	}
	queues, err := in.queues(ctx, heads)
	if err != nil {
		return nil, err
	}
	lanes, err := in.lanesOfHeads(ctx, heads, queues)
	if err != nil {
		return nil, err
	}
	replies, next := map[bus.BatchID]batchReplies{}, map[bus.BatchID]time.Time{}
	err = in.redis.Reads(ctx, "read batches", func(pipe rdb.Commands) {
		for id, head := range heads {
			replies[id] = in.ask(ctx, pipe, head.Token, id, lanes[id])
		}
	})
	if err != nil {
		return nil, err
	}
	for id, head := range heads {
		batch := Batch{Attempts: head.Attempts}
		replies[id].follow(&batch, queues[head.Token], false, now)
		next[id] = batch.NextAt
	}
	return next, nil
}

// queues reads the queues of the subscribers of some batches.
func (in *Inspector) queues(ctx context.Context, heads map[bus.BatchID]Head) (map[bus.Token]subscriberQueue, error) {
	asked := map[bus.Token]queueReplies{}
	err := in.redis.Reads(ctx, "read batches", func(pipe rdb.Commands) {
		all := in.askWorkers(ctx, pipe)
		for _, head := range heads {
			if _, is := asked[head.Token]; !is {
				asked[head.Token] = in.askHolds(ctx, pipe, head.Token, all)
			}
		}
	})
	if err != nil {
		return nil, err
	}
	queues := map[bus.Token]subscriberQueue{}
	for token, replies := range asked {
		if queues[token], err = replies.read(); err != nil {
			return nil, err
		}
	}
	return queues, nil
}

// lanesOfHeads returns the lanes of their subscribers that batches are in.
func (in *Inspector) lanesOfHeads(
	ctx context.Context, heads map[bus.BatchID]Head, queues map[bus.Token]subscriberQueue,
) (map[bus.BatchID]int, error) {
	of, lanes := map[bus.Token][]bus.BatchID{}, map[bus.BatchID]int{}
	for id, head := range heads {
		of[head.Token] = append(of[head.Token], id)
	}
	for token, ids := range of {
		found, err := in.lanesOf(ctx, queues[token].lanes, ids)
		if err != nil {
			return nil, err
		}
		for at, id := range ids {
			lanes[id] = found[at]
		}
	}
	return lanes, nil
}
