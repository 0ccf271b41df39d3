package main

import (
	"cmp"

	"github.com/spf13/cobra"

	"routemaster/internal/app"
)

// redisFlags say which Redis a command works on, instead of the environment's.
type redisFlags struct{ url, namespace string }

// add adds the flags to a command. Does says in their help what the command does to that Redis.
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

// overruleRedis replaces the environment's Redis with that of a URL.
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
