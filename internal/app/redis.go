package app

import (
	"context"
	"log/slog"
	"time"

	"routemaster/internal/queue"
	"routemaster/internal/rdb"
	"routemaster/internal/store"
)

// OpenRedis prepares a connection to the configured Redis for a command, which makes one call at a
// time.
func OpenRedis(c Config) (*rdb.Client, error) {
	return rdb.Open(rdb.Options{URL: c.RedisURL, Connections: 1})
}

// openRedis prepares the connections to the configured Redis. It does not wait for Redis.
func openRedis(c Config, log *slog.Logger, connections int) (*rdb.Client, error) {
	return rdb.Open(rdb.Options{
		URL: c.RedisURL, Connections: connections, MinReplicas: c.MinReplicas, Log: log,
	})
}

// newStore opens the bus's data, and its queue.
func newStore(redis *rdb.Client, c Config) (*store.Store, *queue.Queue) {
	partition := redis.Partition(c.RedisNamespace)
	st := store.New(partition, store.Options{
		IdempotencyKeys: c.IdempotencyKeys,
		MaxClientTopics: c.MaxClientTopics,
		MaxTopics:       c.MaxTopics,
	})
	batches := st.Batches(store.BatchOptions{MaxInFlight: c.SubscriberDeliveries, Traceparents: c.Tracing, MaxAhead: queue.MaxAhead})
	return st, queue.New(partition, batches)
}

// retryInterval is the pause between two tries of a call that Redis has not accepted.
const retryInterval = time.Second

// retryUntilAccepted repeats a call to Redis until it succeeds or the context is done.
func retryUntilAccepted(ctx context.Context, call func(context.Context) error) {
	for ctx.Err() == nil && call(ctx) != nil {
		select {
		case <-time.After(retryInterval):
		case <-ctx.Done():
		}
	}
}
