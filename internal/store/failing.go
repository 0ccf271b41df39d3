package store

import (
	"context"
	"maps"
	"slices"

	"github.com/redis/go-redis/v9"

	"routemaster/internal/bus"
)

// countFailing counts the subscribers that have failed since their last success, which throttled_until tells.
func (e *examination) countFailing(ctx context.Context) error {
	for some := range slices.Chunk(slices.Collect(maps.Keys(e.subscribers)), subscribersPerTrip) {
		failing := make([]*redis.BoolCmd, len(some))
		err := e.store.pipelinedReads(ctx, "count failing subscribers", func(pipe redis.Pipeliner) {
			for i, token := range some {
				failing[i] = pipe.HExists(ctx, e.keys.subscriber(bus.Token(token)), "throttled_until")
			}
		})
		if err != nil {
			return err
		}
		for _, f := range failing {
			if f.Val() {
				e.failing++
			}
		}
	}
	return nil
}
