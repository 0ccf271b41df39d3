package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"routemaster/internal/app"
	"routemaster/internal/rdb"
	"routemaster/internal/store"
)

// redisFlags say which Redis a command works on, instead of the environment's.
type redisFlags struct{ url, namespace string }

// add adds the flags to a command. Does describes in their help what the command does to that
// Redis.
func (f *redisFlags) add(command *cobra.Command, does string) {
	command.Flags().StringVar(&f.url, "redis-url", "", "the Redis to "+does+", instead of the environment's")
	command.Flags().StringVar(&f.namespace, "namespace", "", "the prefix of all keys, instead of the environment's")
}

// config reads the configuration of the environment, overridden by the flags.
func (f *redisFlags) config(command *cobra.Command) (app.Config, error) {
	overruled := map[string]string{}
	if command.Flags().Changed("redis-url") {
		overruleRedis(overruled, f.url)
	}
	if command.Flags().Changed("namespace") {
		overruled["ROUTEMASTER_REDIS_NAMESPACE"] = f.namespace
	}
	return loadConfig(overruled, nil)
}

// requireOneRedis returns the error of a command that needs one Redis if a URL is a cluster's.
func requireOneRedis(url string) error {
	if rdb.IsClusterURL(url) {
		return usageError{errors.New("this needs one Redis, and its URL is that of a Redis Cluster")}
	}
	return nil
}

// openPartitions opens the partitions of the bus that is configured: all of one on a cluster, or
// the only one of a bus on one Redis. The caller closes the client.
func openPartitions(ctx context.Context, config app.Config) (*rdb.Client, []*rdb.Partition, error) {
	redis, err := app.OpenRedis(config)
	if err != nil {
		return nil, nil, err
	}
	partitions, err := findPartitions(ctx, redis, config)
	if err != nil {
		return nil, nil, errors.Join(err, redis.Close())
	}
	return redis, partitions, nil
}

// findPartitions opens the partitions of the bus that is configured, in its Redis.
func findPartitions(ctx context.Context, redis *rdb.Client, config app.Config) ([]*rdb.Partition, error) {
	if !rdb.IsClusterURL(config.RedisURL) {
		return []*rdb.Partition{redis.Partition(config.RedisNamespace)}, nil
	}
	count, err := store.FindPartitionCount(ctx, redis, config.RedisNamespace)
	if errors.Is(err, store.ErrNoBus) {
		err = fmt.Errorf("%w under the namespace %q: `rtm cluster create` with the same Redis and namespace makes one", err, config.RedisNamespace)
	}
	if err != nil {
		return nil, err
	}
	return redis.Partitions(config.RedisNamespace, count), nil
}

// overruleRedis replaces the environment's Redis with the one of a URL.
func overruleRedis(overruled map[string]string, url string) {
	overruled["REDIS_ENV_KEY"], overruled["ROUTEMASTER_REDIS_URL"] = "", url
}

// loadConfig reads the configuration of the environment, some of it overruled, and some with other
// defaults.
func loadConfig(overruled, defaults map[string]string) (app.Config, error) {
	lookup, err := app.LookupEnv()
	if err != nil {
		return app.Config{}, err
	}
	return app.LoadConfig(func(name string) string {
		if value, ok := overruled[name]; ok {
			return value
		}
		return cmp.Or(lookup(name), defaults[name])
	})
}
