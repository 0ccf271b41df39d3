package vendors

import (
	"context"
	"log/slog"

	"routemaster/internal/bus"
)

// Measure is one value for a metric service.
type Measure struct {
	bus.Counter // its name and tags
	Value       int64
	// Gauge is false for a counter of the bus.
	Gauge bool
	// Verbatim is for a name that is not below [telemetry.Namespace] at the service.
	Verbatim bool
}

// MetricService takes measures. It must not be used concurrently.
type MetricService interface {
	// Send sends the measures of one run.
	Send(ctx context.Context, measures []Measure) error
	// TakesIncrements reports whether the Value of a counter must be its growth since the last run.
	TakesIncrements() bool
}

// MetricConfig configures a metric service.
type MetricConfig struct {
	// Service is "print", "datadog" or "none".
	Service string
	// Agent is the address of the Datadog agent: host:port, or a unix URL.
	Agent string
	// App and Env are tags of all measures.
	App, Env string
}

// NewMetricService makes the service that a configuration names, nil for "none".
func NewMetricService(c MetricConfig, log *slog.Logger) MetricService {
	switch c.Service {
	case "print":
		return newPrinter(log, c.App, c.Env)
	case "datadog":
		return &datadog{agent: c.Agent, tags: []string{"app:" + c.App, "env:" + c.Env}}
	}
	return nil
}
