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
func CountsOf(store *jobstore.Store) func(context.Context) (map[jobs.TypeName]jobs.Counts, error) {
	return func(ctx context.Context) (map[jobs.TypeName]jobs.Counts, error) {
		types, err := store.Types(ctx)
		if err != nil || len(types) == 0 {
			return nil, err
		}
		counts, err := store.Counts(ctx, types...)
		if err != nil {
			return nil, err
		}
		byType := make(map[jobs.TypeName]jobs.Counts, len(types))
		for i, t := range types {
			byType[t.Name] = counts[i]
		}
		return byType, nil
	}
}

// prefix is of the names that dashboards for the service that this one replaces know.
const prefix = "rickover.dequeuer."

// GaugesOf returns a function that measures what waits, as the service that this one replaces did:
// `ready` has what is in progress too. Without job types it measures nothing.
func GaugesOf(store *jobstore.Store, now func() time.Time) func(context.Context) ([]metricservice.Measure, error) {
	count := CountsOf(store)
	return func(ctx context.Context) (measures []metricservice.Measure, err error) {
		counts, err := count(ctx)
		if err != nil || len(counts) == 0 {
			return nil, err
		}
		due, err := store.Queue().Due(ctx, bus.QueueJobs, now())
		if err != nil {
			return nil, err
		}
		add := func(name string, value int64) {
			measures = append(measures,
				metricservice.Measure{Counter: bus.NewCounter(prefix + name), Value: value, Gauge: true, Verbatim: true})
		}
		var all, waiting, inProgress int64
		for name, c := range counts {
			all += c.Queued + c.InProgress
			waiting += c.Waiting
			inProgress += c.InProgress
			add("queued_jobs."+string(name)+".in_progress", c.InProgress)
		}
		add("queue_depth.all", all)
		add("queue_depth.ready", inProgress+waiting+due)
		add("queued_jobs.in_progress", inProgress)
		return measures, nil
	}
}
