package inspect

import (
	"context"
	"slices"

	"routemaster/internal/bus"
	"routemaster/internal/layout"
	"routemaster/internal/rdb"
)

// DamagedSingles returns the bus-wide keys that this package reads and that are not of their type,
// without the namespace. It fails with [bus.ErrUnavailable].
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
	k := layout.Keys{}
	read := []string{
		k.Subscribers(), k.Topics(), k.BatchesIndex(), k.Tokens(), k.Owners(), k.Counters(),
		k.EventGauge(), k.BytesGauge(), k.BatchGauge(), k.DeadLetterEvents(),
	}
	for _, q := range bus.Queues {
		read = append(read, k.Instant(q), k.Scheduled(q))
	}
	all := map[string]rdb.Kind{}
	for _, key := range read {
		all[in.keys.Namespace+key] = layout.Singles[key].Kind
	}
	return all
}
