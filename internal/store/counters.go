package store

import (
	"context"
	"maps"
	"slices"

	"routemaster/internal/bus"
	"routemaster/internal/rdb"
	"routemaster/internal/wire"
)

// countersPerTrip bounds the counters sent in one round trip.
const countersPerTrip = 500

// AddCounters adds increments to the counters of the bus, and removes from the map each increment
// that it has added, so after an error the rest remains. A counter that would exceed 64 bits, or is
// not a number, is set to its increment.
func (s *Store) AddCounters(ctx context.Context, increments map[bus.Counter]int64) error {
	for some := range slices.Chunk(slices.Collect(maps.Keys(increments)), countersPerTrip) {
		if err := s.addCounters(ctx, some, increments); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) addCounters(ctx context.Context, counters []bus.Counter, increments map[bus.Counter]int64) error {
	stored, err := s.countEach(ctx, counters, func(pipe rdb.Commands, c bus.Counter) rdb.AnyReply {
		return pipe.HIncrBy(ctx, s.keys.Counters(), wire.PackCounter(c), increments[c])
	})
	for i, c := range counters {
		if stored[i] {
			delete(increments, c)
		}
	}
	if err == nil || !rdb.Answered(err) {
		return rdb.Wrap("count", err)
	}
	// Redis has answered to each, and would refuse these again and again.
	counters = slices.DeleteFunc(counters, func(c bus.Counter) bool { _, left := increments[c]; return !left })
	_, err = s.countEach(ctx, counters, func(pipe rdb.Commands, c bus.Counter) rdb.AnyReply {
		return pipe.HSet(ctx, s.keys.Counters(), wire.PackCounter(c), increments[c])
	})
	if err == nil {
		for _, c := range counters {
			delete(increments, c)
		}
	}
	return rdb.Wrap("count", err)
}

// countEach sends one command for each counter, and returns which of them succeeded. If the whole
// call has to be repeated, it returns the call's error, otherwise the error of any command.
func (s *Store) countEach(ctx context.Context, counters []bus.Counter, command func(rdb.Commands, bus.Counter) rdb.AnyReply) (stored []bool, err error) {
	cmds := make([]rdb.AnyReply, len(counters))
	_ = s.redis.Pipelined(ctx, "count", func(pipe rdb.Commands) { // each command has its own error
		for i, c := range counters {
			cmds[i] = command(pipe, c)
		}
	})
	stored = make([]bool, len(counters))
	for i, cmd := range cmds {
		if stored[i] = cmd.Err() == nil; !stored[i] && (err == nil || rdb.Answered(err)) {
			err = cmd.Err()
		}
	}
	return stored, err
}
