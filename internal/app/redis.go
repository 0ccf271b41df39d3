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

func storeOptions(c Config) store.Options {
	return store.Options{
		IdempotencyKeys: c.IdempotencyKeys,
		MaxClientTopics: c.MaxClientTopics,
		MaxTopics:       c.MaxTopics,
	}
}

// openStores opens the bus's data: of one store, or of as many as the bus on a cluster has
// partitions. It waits until there is such a bus, and Redis says that it is no unfinished copy.
func openStores(ctx context.Context, redis *rdb.Client, c Config, log *slog.Logger) (*store.Bus, error) {
	if !rdb.IsClusterURL(c.RedisURL) {
		return store.AwaitOne(ctx, redis, c.RedisNamespace, storeOptions(c))
	}
	finder, err := OpenRedis(c)
	if err != nil {
		return nil, err
	}
	defer finder.Close()
	return store.AwaitBus(ctx, redis, finder, c.RedisNamespace, storeOptions(c), log)
}

// newQueues are the queues of the bus's batches, by number of their partitions.
func newQueues(all *store.Bus, c Config) (queues []*queue.Queue) {
	for _, st := range all.All() {
		batches := st.Batches(store.BatchOptions{MaxInFlight: c.SubscriberDeliveries, Traceparents: c.Tracing, MaxAhead: queue.MaxAhead})
		queues = append(queues, queue.New(st.Partition(), batches))
	}
	return queues
}

// warnOfRisks logs the risks of losing Redis's data, once Redis is available: each risk once.
func warnOfRisks(ctx context.Context, partitions rdb.Partitions, log *slog.Logger) {
	logged := map[string]bool{}
	for _, p := range partitions {
		retryUntilAccepted(ctx, func(ctx context.Context) error {
			risks, err := p.Risks(ctx)
			for _, risk := range risks {
				if !logged[risk] {
					logged[risk] = true
					log.Warn(risk)
				}
			}
			return err
		})
	}
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
