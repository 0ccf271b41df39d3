package app

import (
	"context"

	"routemaster/internal/rdb"
	"routemaster/internal/store"
)

// Finding is something that is wrong in Redis.
type Finding = store.Violation

// Census is what an examination of Redis has read.
type Census = store.Census

// openForCommand opens Redis for a command, which makes one call at a time.
func openForCommand(c Config) (*rdb.Client, *store.Store, error) {
	redis, err := rdb.Open(rdb.Options{URL: c.RedisURL, Connections: 1})
	if err != nil {
		return nil, nil, err
	}
	return redis, newStore(redis, c, nil), nil
}

// Examine tells what is wrong in the configured Redis and, with fix, repairs what can be repaired.
// The bus may run meanwhile.
func Examine(ctx context.Context, c Config, fix bool, tell func(Finding)) (Census, error) {
	redis, st, err := openForCommand(c)
	if err != nil {
		return Census{}, err
	}
	defer redis.Close()
	return st.Examine(ctx, fix, tell)
}
