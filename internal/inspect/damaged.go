package inspect

import (
	"context"
	"slices"

	"routemaster/internal/bus"
	"routemaster/internal/rdb"
)

// DamagedSingles finds which of the keys that are everybody's, and that this package reads, are not
// of their type, without the namespace. It fails with [bus.ErrUnavailable].
func (s *Inspector) DamagedSingles(ctx context.Context) (damaged []string, err error) {
	kinds := s.singles()
	types := make(map[string]rdb.Reply[string], len(kinds))
	err = s.redis.Reads(ctx, "read types", func(pipe rdb.Commands) {
		for key := range kinds {
			types[key] = pipe.Type(ctx, key)
		}
	})
	for key, kind := range kinds {
		if is := types[key].Val(); is != "" && is != "none" && is != string(kind) {
			damaged = append(damaged, key[len(s.keys.Namespace):])
		}
	}
	slices.Sort(damaged)
	return damaged, err
}

func (s *Inspector) singles() map[string]rdb.Kind {
	k := s.keys
	all := map[string]rdb.Kind{
		k.Subscribers(): rdb.Set, k.Topics(): rdb.Set, k.BatchesIndex(): rdb.SortedSet,
		k.Tokens(): rdb.Hash, k.Owners(): rdb.Hash, k.Counters(): rdb.Hash,
		k.EventGauge(): rdb.Hash, k.BytesGauge(): rdb.Hash, k.BatchGauge(): rdb.Hash, k.DeadLetterEvents(): rdb.Hash,
	}
	for _, q := range bus.Queues {
		all[s.jobs.Instant(q)], all[s.jobs.Scheduled(q)] = rdb.List, rdb.SortedSet
	}
	return all
}
