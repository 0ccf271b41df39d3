// Package maintenance runs the jobs that keep the bus in order.
package maintenance

import (
	"context"
	"log/slog"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/store"
)

// retryAfter is how long a job waits that could not reach Redis. It is the next tick's work too.
const retryAfter = time.Second

// Maintenance runs the housekeeping jobs.
type Maintenance struct {
	store *store.Store
	log   *slog.Logger
	now   func() time.Time
}

// New makes a maintenance.
func New(st *store.Store, log *slog.Logger, now func() time.Time) *Maintenance {
	return &Maintenance{store: st, log: log, now: now}
}

// ScrubQueues puts back the jobs of workers that have been silent for [bus.DeadAfter]. It is the handler of
// [bus.JobScrubQueues].
func (m *Maintenance) ScrubQueues(ctx context.Context, _ *store.Task) store.Outcome {
	jobs, err := m.store.ScrubQueues(ctx, m.now().Add(-bus.DeadAfter), bus.Queues[:]...)
	return m.scrubbed("put back the jobs of dead workers", jobs, err)
}

// ScrubWorkers forgets workers that have been silent for [bus.ForgetAfter]. It is the handler of
// [bus.JobScrubWorkers].
func (m *Maintenance) ScrubWorkers(ctx context.Context, _ *store.Task) store.Outcome {
	jobs, err := m.store.ScrubWorkers(ctx, m.now().Add(-bus.ForgetAfter))
	return m.scrubbed("put back the jobs of forgotten workers", jobs, err)
}

func (m *Maintenance) scrubbed(what string, jobs int, err error) store.Outcome {
	if jobs > 0 {
		m.log.Warn(what, "jobs", jobs)
	}
	if err != nil {
		m.log.Debug("could not scrub", "error", err)
		return store.Outcome{RetryAt: m.now().Add(retryAfter)}
	}
	return store.Done
}
