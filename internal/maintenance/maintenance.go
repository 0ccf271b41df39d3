// Package maintenance does the housekeeping of the bus: it requeues the jobs of dead workers,
// removes unused data, makes room when Redis fills up, and sends metrics to a metric service.
// Nearly all of these are jobs on the aux queue, so that one worker does each for all.
package maintenance

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"routemaster/internal/account"
	"routemaster/internal/bus"
	"routemaster/internal/queue"
	"routemaster/internal/store"
	"routemaster/internal/telemetry"
)

// retryInterval is the wait before a failed job is retried.
const retryInterval = time.Second

// Maintenance has the handlers of the housekeeping jobs of a partition. Only one job at a time may
// run.
type Maintenance struct {
	all       *store.Bus
	store     *store.Store
	queue     *queue.Queue
	letters   *store.Letters
	histories *store.History
	replays   *store.Replays
	retention *store.Retention
	limits    bus.MemoryLimits
	clients   account.Clients
	log       *slog.Logger
	recorder  *telemetry.Recorder // may be nil
	now       func() time.Time
	spares    []Spare
	// clockAgrees reports whether this process's clock agrees with the others'; nil if it does.
	clockAgrees func() bool

	tidier *Tidier

	// These make autodrop log a condition only once.
	memoryUnknown, evicts sync.Once
	exhausted             bool

	// dropping is how far autodrop has come with the batches of clients; see queues.go.
	dropping map[bus.ClientName]*store.OldestBatches
}

// New makes a maintenance of one of the stores of a bus, and of its queue. The recorder may be nil.
// The spares are dropped in their order.
func New(all *store.Bus, st *store.Store, q *queue.Queue, limits bus.MemoryLimits, recorder *telemetry.Recorder,
	log *slog.Logger, now func() time.Time, spares ...Spare) *Maintenance {
	return &Maintenance{
		all: all, store: st, queue: q, letters: store.NewLetters(st), histories: store.NewHistory(st), replays: store.NewReplays(all, st),
		retention: store.NewRetention(st), limits: limits, recorder: recorder, log: log, now: now, spares: spares,
		tidier: NewTidier(all, st), dropping: map[bus.ClientName]*store.OldestBatches{},
	}
}

// Tidy has the counters of others removed, too, once their names are gone.
func (m *Maintenance) Tidy(counters Named) { m.tidier.Add(counters) }

// LimitClients sets the operator's limits for clients' data. It must be called before any other
// method.
func (m *Maintenance) LimitClients(limits account.Clients) { m.clients = limits }

// ScrubWhile has workers taken for dead only while the clock agrees with Redis' clock. It must be
// called before anything else.
func (m *Maintenance) ScrubWhile(clockAgrees func() bool) { m.clockAgrees = clockAgrees }

// Enqueue returns a function that enqueues a housekeeping job. All workers of a bus may call it: a
// job that is in the queue already is not added.
func (m *Maintenance) Enqueue(job bus.JobName) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := m.queue.Enqueue(ctx, bus.QueueAux, bus.Job{Name: job})
		return err
	}
}

// until returns a function that reports true for so long from now on.
func (m *Maintenance) until(limit time.Duration) (goesOn func() bool) {
	deadline := m.now().Add(limit)
	return func() bool { return m.now().Before(deadline) }
}

// finish returns the result of a job: done, or a retry if it failed.
func (m *Maintenance) finish(job bus.JobName, err error) queue.Result {
	if err == nil {
		return queue.Done
	}
	telemetry.LogFailure(m.log, "housekeeping failed, retrying", err, "job", job)
	return queue.Result{RetryAt: m.now().Add(retryInterval)}
}
