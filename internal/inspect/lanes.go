package inspect

import (
	"context"
	"slices"

	"routemaster/internal/bus"
	"routemaster/internal/overview"
	"routemaster/internal/rdb"
	"routemaster/internal/store"
	"routemaster/internal/wire"
)

// LaneOptions are the lanes of a subscriber as its options have them.
type LaneOptions struct {
	lanes laneCounts
	// IsStrict is whether a failed batch holds up the batches behind it.
	IsStrict bool
}

// laneCounts are how many lanes a subscriber has now, and in how many its batches may be: in more
// while batches of its earlier, more numerous lanes remain.
type laneCounts struct{ now, all int }

// laneFields are the fields of a subscriber's options that [readLaneCounts] reads.
var laneFields = []string{"lanes", "past_lanes"}

// readLaneCounts reads the values of [laneFields], which may be followed by others.
func readLaneCounts(stored []any) laneCounts {
	now := store.LaneCount(rdb.Text(stored[0]))
	return laneCounts{now, max(now, store.LaneCount(rdb.Text(stored[1])))}
}

// lanesOf reads the lanes that some batches of a subscriber are in, from 0 on, without a round trip
// if there is one only. It fails with [bus.ErrUnavailable].
func (in *Inspector) lanesOf(ctx context.Context, c laneCounts, batches []bus.BatchID) ([]int, error) {
	lanes, stored := make([]int, len(batches)), make([]rdb.Reply[string], len(batches))
	if c.all == 1 || len(batches) == 0 {
		return lanes, nil
	}
	err := in.redis.Reads(ctx, "read lanes", func(pipe rdb.Commands) {
		for i, batch := range batches {
			stored[i] = pipe.HGet(ctx, in.keys.BatchState(batch), "lane")
		}
	})
	if err != nil {
		return nil, err
	}
	for i, reply := range stored {
		lanes[i] = int(rdb.Integer(reply.Val(), 0))
	}
	return lanes, nil
}

// LaneOptions reads the lanes of subscribers. It leaves out subscribers with unreadable options. It
// fails with [bus.ErrUnavailable].
func (in *Inspector) LaneOptions(ctx context.Context, tokens []bus.Token) (map[bus.Token]LaneOptions, error) {
	found := make(map[bus.Token]LaneOptions, len(tokens))
	fields := slices.Concat(laneFields, []string{"strict_order"})
	err := in.readFields(ctx, tokens, in.keys.Options, fields, func(i int, stored []any) {
		if stored != nil {
			found[tokens[i]] = LaneOptions{readLaneCounts(stored), rdb.Text(stored[len(laneFields)]) == "true"}
		}
	})
	return found, err
}

// CountBlocked counts the lanes that a failed batch holds up, for subscribers with strict order. It
// fails with [bus.ErrUnavailable].
func (in *Inspector) CountBlocked(ctx context.Context, options map[bus.Token]LaneOptions) (map[bus.Token]int, error) {
	var strict []bus.Token
	for token, o := range options {
		if o.IsStrict {
			strict = append(strict, token)
		}
	}
	heads := make(map[bus.Token][]rdb.Reply[[]string], len(strict))
	for some := range slices.Chunk(strict, batchesPerTrip) {
		err := in.redis.Reads(ctx, "read lanes", func(pipe rdb.Commands) {
			for _, token := range some {
				heads[token] = in.askHeads(ctx, pipe, token, options[token].lanes.all)
			}
		})
		if err != nil {
			return nil, err
		}
	}
	return in.countBlocked(ctx, heads)
}

// AddLanes fills in the lanes of subscribed backlogs. It fails with [bus.ErrUnavailable].
func (in *Inspector) AddLanes(ctx context.Context, backlogs []Backlog) error {
	var tokens []bus.Token
	for _, b := range backlogs {
		if b.Subscribed {
			tokens = append(tokens, b.Token)
		}
	}
	options, err := in.LaneOptions(ctx, tokens)
	if err != nil {
		return err
	}
	blocked, err := in.CountBlocked(ctx, options)
	for i := range backlogs {
		b := &backlogs[i]
		if o, known := options[b.Token]; known {
			b.Lanes = overview.Lanes{Count: o.lanes.now, IsStrict: o.IsStrict, Blocked: blocked[b.Token]}
		}
	}
	return err
}

// lane is the key of a lane of a subscriber, from 0 on.
func (in *Inspector) lane(token bus.Token, lane int) string {
	return in.keys.Lane(bus.JobBatch, store.LaneName(token, lane))
}

// askHeads asks for the heads of a subscriber's lanes.
func (in *Inspector) askHeads(ctx context.Context, pipe rdb.Commands, token bus.Token, lanes int) (heads []rdb.Reply[[]string]) {
	for lane := range lanes {
		heads = append(heads, pipe.ZRange(ctx, in.lane(token, lane), 0, 0))
	}
	return heads
}

// askFailed asks which heads of lanes have failed: these have a score.
func (in *Inspector) askFailed(ctx context.Context, pipe rdb.Commands, token bus.Token, heads []rdb.Reply[[]string]) (scores []rdb.Reply[float64]) {
	for _, head := range heads {
		for _, packed := range head.Val() {
			if job, err := wire.UnpackJob(packed); err == nil && len(job.Args) == 1 {
				scores = append(scores, pipe.ZScore(ctx, in.keys.Failed(token), job.Args[0]))
			}
		}
	}
	return scores
}

// countBlocked counts the lanes whose heads have failed, by token.
func (in *Inspector) countBlocked(ctx context.Context, heads map[bus.Token][]rdb.Reply[[]string]) (map[bus.Token]int, error) {
	failed := make(map[bus.Token][]rdb.Reply[float64], len(heads))
	err := in.redis.Reads(ctx, "read lanes", func(pipe rdb.Commands) {
		for token, all := range heads {
			failed[token] = in.askFailed(ctx, pipe, token, all)
		}
	})
	blocked := make(map[bus.Token]int, len(failed))
	for token, scores := range failed {
		blocked[token] = countFound(scores)
	}
	return blocked, err
}

func countFound(scores []rdb.Reply[float64]) (found int) {
	for _, score := range scores {
		if score.Err() == nil {
			found++
		}
	}
	return found
}
