package housekeeping

import (
	"context"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/jobs"
	"routemaster/internal/jobs/jobstore"
	"routemaster/internal/telemetry/metricservice"
)

// CountsOf returns a function that counts the jobs of all types. While there is no type it costs
// one command.
func CountsOf(store *jobstore.Store) func(context.Context) ([]jobs.CountedType, error) {
	return func(ctx context.Context) ([]jobs.CountedType, error) {
		types, err := store.Types(ctx)
		if err != nil || len(types) == 0 {
			return nil, err
		}
		counts, err := store.Counts(ctx, types...)
		if err != nil {
			return nil, err
		}
		counted := make([]jobs.CountedType, len(types))
		for i, t := range types {
			counted[i] = jobs.CountedType{Type: t, Counts: counts[i]}
		}
		return counted, nil
	}
}

// NamesOf returns a function that reads the names of all types.
func NamesOf(store *jobstore.Store) func(context.Context) (map[string]bool, error) {
	return func(ctx context.Context) (map[string]bool, error) {
		types, err := store.Types(ctx)
		names := make(map[string]bool, len(types))
		for _, t := range types {
			names[string(t.Name)] = true
		}
		return names, err
	}
}

// GaugesOf returns a function that measures what waits, as the service that this one replaces did:
// `ready` has what is in progress too. Without job types it measures nothing.
func GaugesOf(store *jobstore.Store, now func() time.Time) func(context.Context) ([]metricservice.Measure, error) {
	count := CountsOf(store)
	return func(ctx context.Context) (measures []metricservice.Measure, err error) {
		types, err := count(ctx)
		if err != nil || len(types) == 0 {
			return nil, err
		}
		due, err := store.Queue().Due(ctx, bus.QueueJobs, now())
		if err != nil {
			return nil, err
		}
		add := func(name string, value int64) {
			measures = append(measures,
				metricservice.Measure{Counter: bus.NewCounter(metricservice.Dequeuer + name), Value: value, Gauge: true, Verbatim: true})
		}
		var all, waiting, inProgress int64
		for _, t := range types {
			all += t.Queued + t.InProgress
			waiting += t.Waiting
			inProgress += t.InProgress
			add("queued_jobs."+string(t.Name)+".in_progress", t.InProgress)
		}
		add("queue_depth.all", all)
		add("queue_depth.ready", inProgress+waiting+due)
		add("queued_jobs.in_progress", inProgress)
		return measures, nil
	}
}
