package inspect

import (
	"context"
	"slices"
	"strings"

	"routemaster/internal/bus"
	"routemaster/internal/overview"
	"routemaster/internal/rdb"
)

// Histories reads the sizes of all histories, ordered by topic. Unreadable ones count as empty.
func (in *Inspector) Histories(ctx context.Context) (sizes []overview.HistoryState, err error) {
	fields, err := in.redis.HKeys(ctx, in.keys.Plans()).Result()
	if !rdb.Answered(err) {
		return nil, rdb.Wrap("list histories", err)
	}
	for _, field := range fields {
		if topic, ok := strings.CutPrefix(field, "/"); ok {
			sizes = append(sizes, overview.HistoryState{Topic: topic})
		}
	}
	slices.SortFunc(sizes, func(a, b overview.HistoryState) int { return strings.Compare(a.Topic, b.Topic) })
	for some := range slices.Chunk(sizes, batchesPerTrip) {
		lengths, bytes := make([]rdb.Reply[int64], len(some)), make([]rdb.Reply[string], len(some))
		err := in.redis.Reads(ctx, "read histories", func(pipe rdb.Commands) {
			for i, h := range some {
				lengths[i] = pipe.LLen(ctx, in.keys.History(bus.TopicName(h.Topic)))
				bytes[i] = pipe.HGet(ctx, in.keys.HistoryLimits(bus.TopicName(h.Topic)), "size")
			}
		})
		if err != nil {
			return nil, err
		}
		for i := range some {
			some[i].Events, some[i].Bytes = lengths[i].Val(), rdb.Integer(bytes[i].Val(), 0)
		}
	}
	return sizes, nil
}
