package app

import (
	"context"

	"routemaster/internal/store"
)

// Finding is something that is wrong in Redis.
type Finding = store.Violation

// Census is what an examination of Redis has read.
type Census = store.Census

// Examine tells what is wrong in the configured Redis and, with fix, repairs what can be repaired.
// The bus may run meanwhile.
func Examine(ctx context.Context, c Config, fix bool, tell func(Finding)) (Census, error) {
	redis, err := OpenRedis(c)
	if err != nil {
		return Census{}, err
	}
	defer redis.Close()
	st, _ := newStore(redis, c)
	return st.Examine(ctx, fix, tell)
}
