package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"routemaster/internal/bus"
	"routemaster/internal/ingest"
	"routemaster/internal/machines"
	"routemaster/internal/machines/definition"
	"routemaster/internal/machines/engine"
	"routemaster/internal/store"
	"routemaster/internal/telemetry"
)

// loadMachines reads the configured definitions of state machines; nil if there are none. It fails
// with a [ConfigError] that has all that is wrong, and logs the warnings.
func loadMachines(names []string, log *slog.Logger) (*machines.Definitions, error) {
	if len(names) == 0 {
		return nil, nil
	}
	var files []definition.File
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, &ConfigError{fmt.Errorf("ROUTEMASTER_MACHINES must name files of definitions: %w", err)}
		}
		files = append(files, definition.File{Name: name, Content: text})
	}
	definitions, warnings, err := definition.Load(files...)
	for _, w := range warnings {
		log.Warn("ROUTEMASTER_MACHINES: " + w.String())
	}
	if err == nil {
		definitions.Source, err = definition.Merged(files...)
	}
	if wrong, ok := errors.AsType[definition.Errors](err); ok {
		lines := []string{"ROUTEMASTER_MACHINES names definitions that are wrong:"}
		for _, problem := range wrong {
			lines = append(lines, problem.String())
		}
		err = errors.New(strings.Join(lines, "\n"))
	}
	if err != nil {
		return nil, &ConfigError{err}
	}
	return definitions, nil
}

// applyMachines replaces the definitions as soon as Redis is available.
func applyMachines(ctx context.Context, client *engine.Client, next *machines.Definitions, log *slog.Logger) {
	retryUntilAccepted(ctx, func(ctx context.Context) error {
		version, err := client.Apply(ctx, next, nil)
		switch {
		case errors.Is(err, bus.ErrUnavailable) || ctx.Err() != nil:
			return err
		case err != nil:
			log.Error("could not apply ROUTEMASTER_MACHINES", "error", err)
		default:
			log.Info("applied ROUTEMASTER_MACHINES", "version", version)
		}
		return nil
	})
}

// newLabelStores makes the machines and labels of a bus. A process makes them once, so that it
// reads their definitions once.
func newLabelStores(all *store.Bus) *engine.Bus {
	labels := engine.NewBus(all.Partitions())
	for _, st := range labels.All() {
		st.Trace = telemetry.Traceparent
	}
	return labels
}

// newTopics makes the machines' client of the bus.
func newTopics(c Config, all *store.Bus, labels *engine.Bus, obs *observability, log *slog.Logger) *engine.Client {
	return engine.NewClient(engine.ClientConfig{
		Stores: all, Labels: labels, Recorder: obs.recorder, Log: log, Now: c.clock.Now,
		Ingest: ingest.New(all, ingest.Options{Recorder: obs.recorder, Tracer: obs.tracer, Now: c.clock.Now}),
	})
}
