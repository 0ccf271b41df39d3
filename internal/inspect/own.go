package inspect

import (
	"context"
	"slices"

	"routemaster/internal/bus"
	"routemaster/internal/rdb"
	"routemaster/internal/wire"
)

// ownSearched is the maximum number of batches for which a subscriber's queue is read: if there are
// more, the index of the whole bus soon has some.
const ownSearched = 1000

// standing is the batches that stand in lanes of a subscriber, take in events there or have failed.
type standing struct {
	jobs, batches []rdb.Reply[[]string]
}

// askStanding asks for the batches in a number of lanes of a subscriber.
func (in *Inspector) askStanding(ctx context.Context, pipe rdb.Commands, token bus.Token, lanes int) (s standing) {
	for lane := range lanes {
		s.jobs = append(s.jobs, pipe.ZRange(ctx, in.lane(token, lane), 0, ownSearched))
		s.batches = append(s.batches, pipe.SMembers(ctx, in.keys.CurrentOfLane(token, lane)))
	}
	s.batches = append(s.batches, pipe.ZRange(ctx, in.keys.Failed(token), 0, ownSearched))
	return s
}

// ids are the batches that stand there, each once. Some may be gone.
func (s standing) ids() (ids []string) {
	for _, lane := range s.jobs {
		for _, packed := range lane.Val() {
			if job, err := wire.UnpackJob(packed); err == nil && len(job.Args) == 1 {
				ids = append(ids, job.Args[0])
			}
		}
	}
	for _, some := range s.batches {
		ids = append(ids, some.Val()...)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// ownReplies are how much a subscriber has queued, and the part of it in the first lane: for nearly
// all subscribers that is all.
type ownReplies struct {
	batches, events rdb.Reply[string]
	standing        standing
}

func (in *Inspector) askOwn(ctx context.Context, pipe rdb.Commands, token bus.Token) ownReplies {
	return ownReplies{
		batches:  pipe.HGet(ctx, in.keys.BatchGauge(), string(token)),
		events:   pipe.HGet(ctx, in.keys.EventGauge(), string(token)),
		standing: in.askStanding(ctx, pipe, token, 1),
	}
}

// own returns the index entries of all batches of a subscriber, in order, from its own keys, so its
// cost does not depend on other subscribers. It is not ok if these do not have all of them, for
// example when one is due and no worker has seen it.
func (in *Inspector) own(
	ctx context.Context, token bus.Token, r ownReplies, options rdb.Reply[[]any],
) (all []rdb.Scored, ok bool, err error) {
	// There are no fields where none is queued, but neither may there be where gauges were lost.
	count, queued := rdb.Integer(r.batches.Val(), 0), rdb.Integer(r.events.Val(), 0)
	if options.Err() != nil || count > ownSearched || count == 0 && queued != 0 || rdb.IsWrongType(r.batches.Err()) {
		return nil, false, nil
	}
	if lanes := readLaneCounts(options.Val()).all; lanes > 1 {
		err = in.redis.Reads(ctx, "list batches", func(pipe rdb.Commands) {
			r.standing = in.askStanding(ctx, pipe, token, lanes)
		})
		if err != nil {
			return nil, false, err
		}
	}
	ids := r.standing.ids()
	scores := make([]rdb.Reply[float64], len(ids))
	err = in.redis.Reads(ctx, "list batches", func(pipe rdb.Commands) {
		for at, id := range ids {
			scores[at] = pipe.ZScore(ctx, in.keys.BatchesIndex(), id)
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
