package inspect

import (
	"context"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/rdb"
	"routemaster/internal/store/lanes"
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
	places, err := in.places(ctx, heads, queues)
	if err != nil {
		return nil, err
	}
	replies, next := map[bus.BatchID]batchReplies{}, map[bus.BatchID]time.Time{}
	err = in.redis.Reads(ctx, "read batches", func(pipe rdb.Commands) {
		for id, head := range heads {
			replies[id] = in.ask(ctx, pipe, head.Token, id, places[id])
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

// queues reads the queues of the subscribers that some batches are of.
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

// places returns where batches stand in the lanes of their subscribers.
func (in *Inspector) places(
	ctx context.Context, heads map[bus.BatchID]Head, queues map[bus.Token]subscriberQueue,
) (map[bus.BatchID]lanes.Place, error) {
	of, places := map[bus.Token][]bus.BatchID{}, map[bus.BatchID]lanes.Place{}
	for id, head := range heads {
		of[head.Token] = append(of[head.Token], id)
	}
	for token, ids := range of {
		found, err := queues[token].lanes.Places(ctx, in.redis, ids)
		if err != nil {
			return nil, err
		}
		for at, id := range ids {
			places[id] = found[at]
		}
	}
	return places, nil
}
