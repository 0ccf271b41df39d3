package inspect

import (
	"context"
	"slices"

	"routemaster/internal/bus"
	"routemaster/internal/rdb"
)

// DamagedSingles finds which of the keys that are everybody's, and that this package reads, are not
// of their type, without the namespace. It fails with [bus.ErrUnavailable].
func (in *Inspector) DamagedSingles(ctx context.Context) (damaged []string, err error) {
	kinds := in.singles()
	types := make(map[string]rdb.Reply[string], len(kinds))
	err = in.redis.Reads(ctx, "read types", func(pipe rdb.Commands) {
		for key := range kinds {
			types[key] = pipe.Type(ctx, key)
		}
	})
	for key, kind := range kinds {
		if is := types[key].Val(); is != "" && is != "none" && is != string(kind) {
			damaged = append(damaged, key[len(in.keys.Namespace):])
		}
	}
	slices.Sort(damaged)
	return damaged, err
}

func (in *Inspector) singles() map[string]rdb.Kind {
	k := in.keys
	all := map[string]rdb.Kind{
		k.Subscribers(): rdb.Set, k.Topics(): rdb.Set, k.BatchesIndex(): rdb.SortedSet,
		k.Tokens(): rdb.Hash, k.Owners(): rdb.Hash, k.Counters(): rdb.Hash,
		k.EventGauge(): rdb.Hash, k.BytesGauge(): rdb.Hash, k.BatchGauge(): rdb.Hash, k.DeadLetterEvents(): rdb.Hash,
	}
	for _, q := range bus.Queues {
		all[in.keys.Instant(q)], all[in.keys.Scheduled(q)] = rdb.List, rdb.SortedSet
	}
	return all
}
