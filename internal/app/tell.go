package app

import (
	"fmt"
	"log/slog"

	"routemaster/internal/store"
	"routemaster/internal/telemetry"
)

// newReporter makes the reporter of one daemon.
func newReporter(c Config, log *slog.Logger) (*telemetry.Reporter, error) {
	reporter, err := telemetry.NewReporter(telemetry.ReporterOptions{
		Service: c.Exceptions, Program: c.AppName, Version: Version(), Secrets: c.secrets(),
	}, log)
	if err != nil {
		return nil, &ConfigError{fmt.Errorf("EXCEPTION_SERVICE_URL=%s is not allowed: it must be %w", secret, err)}
	}
	return reporter, nil
}

// newTracer makes the tracer of one daemon, nil if there are to be no traces.
func newTracer(c Config, daemon string, log *slog.Logger) (*telemetry.Tracer, error) {
	if !c.Tracing {
		return nil, nil
	}
	return telemetry.NewTracer(c.AppName+"-"+daemon, Version(), log)
}

// secrets are the texts of the configuration that must not get out, as far as they stand alone. What else may be in a URL is
// known by its shape.
func (c *Config) secrets() []string {
	secrets := []string{c.RootKey}
	for _, token := range c.Clients {
		secrets = append(secrets, string(token))
	}
	return append(secrets, store.Passwords(c.RedisURL)...)
}
