package app

import (
	"context"

	"routemaster/internal/store"
)

// Finding is something that is wrong in Redis.
type Finding = store.Violation

// Census is what an examination of Redis has read.
type Census = store.Census

// openForCommand opens the store for a command, which makes one call at a time.
func openForCommand(c Config) (*store.Store, error) {
	return store.Open(store.Options{
		URL: c.RedisURL, Namespace: c.RedisNamespace, Connections: 1, Abreast: c.SubscriberDeliveries,
	})
}

// Examine tells what is wrong in the configured Redis and, with fix, repairs what can be repaired. The bus may
// run meanwhile.
func Examine(ctx context.Context, c Config, fix bool, tell func(Finding)) (Census, error) {
	st, err := openForCommand(c)
	if err != nil {
		return Census{}, err
	}
	defer st.Close()
	return st.Examine(ctx, fix, tell)
}
