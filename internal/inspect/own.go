package inspect

import (
	"context"
	"slices"

	"routemaster/internal/bus"
	"routemaster/internal/rdb"
	"routemaster/internal/store/lanes"
	"routemaster/internal/wire"
)

// ownSearched is how many batches a subscriber may have to be asked for all of them: of more, the
// index of the whole bus soon has some.
const ownSearched = 1000

// own returns the index entries of all batches of a subscriber, in order, by where its own batches
// stand: what that takes does not depend on what waits for others. It is not ok if not all of them
// are found there, as when one is due and no worker has seen it.
func (i *Inspector) own(ctx context.Context, token bus.Token) (all []rdb.Scored, ok bool, err error) {
	var batches, events rdb.Reply[string]
	var options rdb.Reply[[]any]
	err = i.redis.Reads(ctx, "list batches", func(pipe rdb.Commands) {
		batches = pipe.HGet(ctx, i.keys.BatchGauge(), string(token))
		events = pipe.HGet(ctx, i.keys.EventGauge(), string(token))
		options = pipe.HMGet(ctx, i.keys.Options(token), lanes.Fields...)
	})
	// There are no fields where none is queued, but neither may there be where gauges were lost.
	count, queued := rdb.Integer(batches.Val(), 0), rdb.Integer(events.Val(), 0)
	if err != nil || options.Err() != nil || count > ownSearched || count == 0 && queued != 0 ||
		rdb.IsWrongType(batches.Err()) {
		return nil, false, err
	}
	ids, err := i.standing(ctx, token, lanes.Parse(options.Val()))
	if err != nil {
		return nil, false, err
	}
	scores := make([]rdb.Reply[float64], len(ids))
	err = i.redis.Reads(ctx, "list batches", func(pipe rdb.Commands) {
		for at, id := range ids {
			scores[at] = pipe.ZScore(ctx, i.keys.BatchesIndex(), id)
		}
	})
	for at, id := range ids {
		if scores[at].Err() == nil {
			all = append(all, rdb.Scored{Member: id, Score: scores[at].Val()})
		}
	}
	slices.SortFunc(all, rdb.Scored.Compare)
	return all, int64(len(all)) == count, err
}

// standing returns the batches that stand in a subscriber's lanes, take in events or have failed,
// each once. Some may be gone.
func (i *Inspector) standing(ctx context.Context, token bus.Token, all lanes.Generations) ([]string, error) {
	var jobs, batches []rdb.Reply[[]string]
	err := i.redis.Reads(ctx, "list batches", func(pipe rdb.Commands) {
		for _, generation := range all {
			for lane := range generation.Lanes {
				jobs = append(jobs, pipe.ZRange(ctx, i.jobs.Lane(bus.JobBatch, generation.Lane(token, lane)), 0, ownSearched))
			}
		}
		for lane := range all.Last().Lanes {
			batches = append(batches, pipe.SMembers(ctx, i.keys.CurrentOfLane(token, lane)))
		}
		batches = append(batches, pipe.ZRange(ctx, i.keys.Failed(token), 0, ownSearched))
	})
	var ids []string
	for _, lane := range jobs {
		for _, packed := range lane.Val() {
			if job, err := wire.UnpackJob(packed); err == nil && len(job.Args) == 1 {
				ids = append(ids, job.Args[0])
			}
		}
	}
	for _, some := range batches {
		ids = append(ids, some.Val()...)
	}
	slices.Sort(ids)
	return slices.Compact(ids), err
}
