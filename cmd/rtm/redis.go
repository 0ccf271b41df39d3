package main

import (
	"cmp"

	"github.com/spf13/cobra"

	"routemaster/internal/app"
)

// redisFlags say which Redis a command works on, if not the environment's.
type redisFlags struct{ url, namespace string }

// add adds the flags to a command, whose help says what it does to that Redis.
func (f *redisFlags) add(command *cobra.Command, does string) {
	command.Flags().StringVar(&f.url, "redis-url", "", "the Redis to "+does+", instead of the environment's")
	command.Flags().StringVar(&f.namespace, "namespace", "", "the prefix of all keys, instead of the environment's")
}

// config reads the configuration of the environment, with what the flags overrule.
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

// overruleRedis puts a Redis' URL in the place of the environment's.
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
