// Package maintenance runs the jobs that keep the bus in order.
package maintenance

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/store"
	"routemaster/internal/telemetry"
)

// retryAfter is how long a job waits that could not reach Redis. It is the next tick's work too.
const retryAfter = time.Second

// Maintenance runs the housekeeping jobs, one at a time.
type Maintenance struct {
	store  *store.Store
	limits bus.MemoryLimits
	log    *slog.Logger
	// recorder takes note of what is done; it may be nil.
	recorder *telemetry.Recorder
	now      func() time.Time

	tidier *store.Tidier

	// What autodrop tells once.
	memoryUnknown, evicts sync.Once
	exhausted             bool
}

// New makes a maintenance. The recorder may be nil.
func New(st *store.Store, limits bus.MemoryLimits, recorder *telemetry.Recorder, log *slog.Logger, now func() time.Time) *Maintenance {
	return &Maintenance{store: st, limits: limits, recorder: recorder, log: log, now: now, tidier: st.NewTidier()}
}

// ScrubQueues puts back the jobs of workers that have been silent for [bus.DeadAfter]. It is the handler of
// [bus.JobScrubQueues].
func (m *Maintenance) ScrubQueues(ctx context.Context, _ *store.Task) store.Outcome {
	if !bus.CanDetectDeadWorkers(m.store.SteadySince(), m.now()) {
		return store.Done
	}
	jobs, err := m.store.ScrubQueues(ctx, m.now().Add(-bus.DeadAfter), bus.Queues[:]...)
	return m.scrubbed("put back the jobs of dead workers", jobs, 0, err)
}

// ScrubWorkers forgets workers that have been silent for [bus.ForgetAfter], and tidies up: topics that nobody uses go, and the
// counters of topics and clients that are gone. It is the handler of [bus.JobScrubWorkers].
func (m *Maintenance) ScrubWorkers(ctx context.Context, _ *store.Task) store.Outcome {
	m.tidy(ctx)
	if !bus.CanDetectDeadWorkers(m.store.SteadySince(), m.now()) {
		return store.Done
	}
	jobs, workers, err := m.store.ScrubWorkers(ctx, m.now().Add(-bus.ForgetAfter))
	return m.scrubbed("put back the jobs of forgotten workers", jobs, workers, err)
}

// tidyTimeout bounds one run. What is left is the next run's.
const tidyTimeout = time.Second

// tidy is not tried again when it fails: the next run goes on where it stopped.
func (m *Maintenance) tidy(ctx context.Context) {
	var all store.Tidied
	var err error
	for until, done := m.now().Add(tidyTimeout), false; !done && err == nil && !m.now().After(until); {
		var some store.Tidied
		some, done, err = m.tidier.Step(ctx, m.now())
		all.Topics += some.Topics
		all.Counters += some.Counters
	}
	if all.Topics > 0 {
		m.log.Info("removed topics that nobody has used for a day", "topics", all.Topics)
	}
	if all.Counters > 0 {
		m.log.Debug("removed counters of topics and clients that are gone", "counters", all.Counters)
	}
	if err != nil && !errors.Is(err, bus.ErrUnavailable) { // that Redis is away is told once, by the store
		m.log.Error("could not tidy up", "error", err)
	}
}

func (m *Maintenance) scrubbed(what string, jobs, workers int, err error) store.Outcome {
	m.recorder.Scrubbed(jobs, workers)
	if jobs > 0 {
		m.log.Warn(what, "jobs", jobs)
	}
	if err != nil {
		return m.again("scrub", err)
	}
	return store.Done
}

// again puts a job off that could not reach Redis.
func (m *Maintenance) again(what string, err error) store.Outcome {
	if !errors.Is(err, bus.ErrUnavailable) { // that Redis is away is told once, by the store
		m.log.Error("housekeeping failed, and is put off", "job", what, "error", err)
	}
	return store.Outcome{RetryAt: m.now().Add(retryAfter)}
}
