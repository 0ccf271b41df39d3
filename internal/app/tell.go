package app

import (
	"fmt"
	"log/slog"

	"routemaster/internal/rdb"
	"routemaster/internal/telemetry/exceptions"
	"routemaster/internal/telemetry/tracing"
)

// newReporter makes the reporter of one daemon.
func newReporter(c Config, log *slog.Logger) (*exceptions.Reporter, error) {
	reporter, err := exceptions.NewReporter(exceptions.Options{
		Service: c.Exceptions, Program: c.AppName, Version: Version(), Secrets: c.secrets(),
	}, log)
	if err != nil {
		return nil, &ConfigError{fmt.Errorf("EXCEPTION_SERVICE_URL=%s is not allowed: it must be %w", secret, err)}
	}
	return reporter, nil
}

// newTracer makes the tracer of one daemon, nil if there are to be no traces.
func newTracer(c Config, daemon string, log *slog.Logger) (*tracing.Tracer, error) {
	if !c.Tracing {
		return nil, nil
	}
	return tracing.New(c.AppName+"-"+daemon, Version(), log)
}

// secrets are the texts of the configuration that must not get out, as far as they stand alone. What else may be in a URL is
// known by its shape.
func (c *Config) secrets() []string {
	secrets := []string{c.RootKey}
	for _, token := range c.Clients {
		secrets = append(secrets, string(token))
	}
	return append(secrets, rdb.Passwords(c.RedisURL)...)
}
