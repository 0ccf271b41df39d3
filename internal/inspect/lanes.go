package inspect

import (
	"context"
	"slices"

	"routemaster/internal/bus"
	"routemaster/internal/rdb"
	"routemaster/internal/store/lanes"
	"routemaster/internal/wire"
)

// Lanes are how far the lanes of a subscriber hold its batches up.
type Lanes struct {
	// Count is the number of lanes.
	Count int
	// Fence is how many batches have to be delivered before those that were opened since the lanes
	// were changed.
	Fence int64
	// IsStrict is whether a batch that has failed holds up those behind it, Blocked in how many
	// lanes one does.
	IsStrict bool
	Blocked  int
}

// LaneOptions are the lanes of a subscriber as its options have them.
type LaneOptions struct {
	Generations lanes.Generations
	// IsStrict is whether a batch that has failed holds up those behind it.
	IsStrict bool
}

// LaneOptions reads the lanes of subscribers. Those whose options cannot be read are missing. It
// fails with [bus.ErrUnavailable].
func (in *Inspector) LaneOptions(ctx context.Context, tokens []bus.Token) (map[bus.Token]LaneOptions, error) {
	found := make(map[bus.Token]LaneOptions, len(tokens))
	fields := slices.Concat(lanes.Fields, []string{"strict_order"})
	err := in.readFields(ctx, tokens, in.keys.Options, fields, func(i int, stored []any) {
		if stored != nil {
			found[tokens[i]] = LaneOptions{lanes.Parse(stored), rdb.Text(stored[len(lanes.Fields)]) == "true"}
		}
	})
	return found, err
}

// CountBlocked counts the lanes that a failed batch holds up, of those subscribers whose order is
// strict. It fails with [bus.ErrUnavailable].
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
				heads[token] = in.askHeads(ctx, pipe, token, options[token].Generations)
			}
		})
		if err != nil {
			return nil, err
		}
	}
	return in.countBlocked(ctx, heads)
}

// addLanes fills in the lanes of those that are subscribed.
func (in *Inspector) addLanes(ctx context.Context, backlogs []Backlog) error {
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
			b.Lanes = Lanes{o.Generations.Last().Lanes, o.Generations.Fence(), o.IsStrict, blocked[b.Token]}
		}
	}
	return err
}

// askHeads asks for the head of each lane of a subscriber.
func (in *Inspector) askHeads(ctx context.Context, pipe rdb.Commands, token bus.Token, all lanes.Generations) (heads []rdb.Reply[[]string]) {
	for _, generation := range all {
		for lane := range generation.Lanes {
			heads = append(heads, pipe.ZRange(ctx, in.jobs.Lane(bus.JobBatch, generation.Lane(token, lane)), 0, 0))
		}
	}
	return heads
}

// askFailed asks which heads of lanes have failed: those that have a score.
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
		for token, lanes := range heads {
			failed[token] = in.askFailed(ctx, pipe, token, lanes)
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
