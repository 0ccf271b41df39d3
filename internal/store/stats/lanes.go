package stats

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

// readLanes reads the lanes of subscribers, by token. Those whose options cannot be read are
// missing.
func (s *Stats) readLanes(ctx context.Context, tokens []string) (map[string]Lanes, error) {
	found := make(map[string]Lanes, len(tokens))
	heads := map[string][]rdb.Reply[[]string]{} // of the lanes of those whose order is strict
	fields := slices.Concat(lanes.Fields, []string{"strict_order"})
	for some := range slices.Chunk(tokens, batchesPerTrip) {
		options := make([]rdb.Reply[[]any], len(some))
		err := s.redis.Reads(ctx, "read lanes", func(pipe rdb.Commands) {
			for i, token := range some {
				options[i] = pipe.HMGet(ctx, s.keys.Options(bus.Token(token)), fields...)
			}
		})
		if err != nil {
			return nil, err
		}
		err = s.redis.Reads(ctx, "read lanes", func(pipe rdb.Commands) {
			for i, token := range some {
				if options[i].Err() != nil {
					continue
				}
				stored := options[i].Val()
				all := lanes.Parse(stored)
				l := Lanes{Count: all.Last().Lanes, Fence: all.Fence(), IsStrict: rdb.Text(stored[len(lanes.Fields)]) == "true"}
				if found[token] = l; l.IsStrict {
					heads[token] = s.readHeads(ctx, pipe, bus.Token(token), all)
				}
			}
		})
		if err != nil {
			return nil, err
		}
	}
	blocked, err := s.countBlocked(ctx, heads)
	for token, n := range blocked {
		l := found[token]
		l.Blocked = n
		found[token] = l
	}
	return found, err
}

// readBlocked counts the lanes of one subscriber, whose order is strict, that a failed batch holds
// up.
func (s *Stats) readBlocked(ctx context.Context, token bus.Token, all lanes.Generations) (int, error) {
	var heads []rdb.Reply[[]string]
	err := s.redis.Reads(ctx, "read lanes", func(pipe rdb.Commands) { heads = s.readHeads(ctx, pipe, token, all) })
	if err != nil {
		return 0, err
	}
	blocked, err := s.countBlocked(ctx, map[string][]rdb.Reply[[]string]{string(token): heads})
	return blocked[string(token)], err
}

func (s *Stats) readHeads(ctx context.Context, pipe rdb.Commands, token bus.Token, all lanes.Generations) (heads []rdb.Reply[[]string]) {
	for _, generation := range all {
		for lane := range generation.Lanes {
			heads = append(heads, pipe.ZRange(ctx, s.jobs.Lane(bus.JobBatch, generation.Lane(token, lane)), 0, 0))
		}
	}
	return heads
}

// countBlocked counts the lanes whose heads have failed, by token.
func (s *Stats) countBlocked(ctx context.Context, heads map[string][]rdb.Reply[[]string]) (map[string]int, error) {
	failed := map[string][]rdb.Reply[float64]{}
	err := s.redis.Reads(ctx, "read lanes", func(pipe rdb.Commands) {
		for token, lanes := range heads {
			for _, head := range lanes {
				for _, packed := range head.Val() {
					if job, err := wire.UnpackJob(packed); err == nil && len(job.Args) == 1 {
						failed[token] = append(failed[token], pipe.ZScore(ctx, s.keys.Failed(bus.Token(token)), job.Args[0]))
					}
				}
			}
		}
	})
	blocked := map[string]int{}
	for token, scores := range failed {
		for _, score := range scores {
			if score.Err() == nil {
				blocked[token]++
			}
		}
	}
	return blocked, err
}
