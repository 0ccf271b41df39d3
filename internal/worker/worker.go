package worker

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/queue"
	"routemaster/internal/telemetry"
	"routemaster/internal/telemetry/vendors"
)

// Handler runs a job and returns its result.
type Handler func(ctx context.Context, task *queue.Task) queue.Result

// Ticker does some work at an interval, for the first time at once.
type Ticker struct {
	Interval time.Duration
	// Work returns when it is done, or soon after the context is.
	Work func(ctx context.Context) error
}

// Config says how to run jobs.
type Config struct {
	// Pools are the threads, at least one pool.
	Pools []Pool
	// AcquireTimeout is how long an idle worker waits for a job in one call to Redis.
	AcquireTimeout time.Duration
	// RetryAfter is the wait before a job that panicked, or is unknown to this version, is retried.
	RetryAfter time.Duration
	// Handlers run the jobs, by name.
	Handlers map[bus.JobName]Handler
	// Tickers run beside the threads.
	Tickers []Ticker
	// Stopping, if given, is called when the context is done, with the number of jobs in flight of
	// each queue.
	Stopping func(busy map[bus.Queue]int64)
	// Reporter, if given, reports unexpected errors.
	Reporter *vendors.Reporter
	// Recorder counts the threads' work. It may be nil.
	Recorder *telemetry.Recorder
}

// The pace of the loops.
const (
	heartbeatInterval = 5 * time.Second
	// retryInterval is the pause before a failed call to Redis is repeated.
	retryInterval = 200 * time.Millisecond
	// completeTimeout bounds how long a thread that stops tries to complete its job.
	completeTimeout = 5 * time.Second
	// retireTimeout bounds the removal of the threads of a worker that stops. Another worker scrubs
	// the threads that remain.
	retireTimeout = 3 * time.Second
)

// Worker is one worker process's threads.
type Worker struct {
	registries []*queue.Queue
	config     Config
	log        *slog.Logger
	now        func() time.Time
	// busy is how many threads run a job, by queue.
	busy map[bus.Queue]*atomic.Int64
}

// New makes a worker. Registries are the registries of the threads of all its pools, one in each
// partition: a heartbeat is one call, which also records the limits of this queue's kinds.
func New(registries []*queue.Queue, config Config, log *slog.Logger, now func() time.Time) *Worker {
	w := &Worker{registries: registries, config: config, log: log, now: now, busy: map[bus.Queue]*atomic.Int64{}}
	for _, p := range config.Pools {
		w.busy[p.Name] = new(atomic.Int64)
	}
	return w
}

// Busy is how many threads run a job of a queue. It may be called at any time.
func (w *Worker) Busy(name bus.Queue) int {
	if busy := w.busy[name]; busy != nil {
		return int(busy.Load())
	}
	return 0
}

// Run runs jobs until the context is done, then stops as the package comment says. It goes on after
// any failure of Redis.
func (w *Worker) Run(ctx context.Context) {
	var pools []*pool
	for _, config := range w.config.Pools {
		pools = append(pools, w.newPool(config))
	}
	beating, stopHeartbeat := context.WithCancel(context.WithoutCancel(ctx))
	var heartbeat, loops sync.WaitGroup
	for _, r := range w.registries {
		heartbeat.Go(func() { every(beating, heartbeatInterval, func() { w.beat(beating, r, pools) }) })
	}
	for _, p := range pools {
		p.start(ctx, &loops)
	}
	for _, ticker := range w.config.Tickers {
		loops.Go(func() { every(ctx, ticker.Interval, func() { w.tick(ctx, ticker) }) })
	}
	<-ctx.Done()
	w.stopping(pools)
	loops.Wait()
	stopHeartbeat()
	heartbeat.Wait()
	for _, p := range pools {
		p.close()
	}
	w.retire(pools)
}

// stopping says how many jobs are in flight.
func (w *Worker) stopping(pools []*pool) {
	if w.config.Stopping == nil {
		return
	}
	busy := map[bus.Queue]int64{}
	for _, p := range pools {
		busy[p.Name] = p.busy.Load()
	}
	w.config.Stopping(busy)
}

// tick does the work of a ticker. If it fails, the next tick does it.
func (w *Worker) tick(ctx context.Context, ticker Ticker) {
	if err := ticker.Work(ctx); err != nil {
		w.report("tick", err)
	}
}

// beat notes that the threads are alive. While Redis is unavailable it repeats the call at short
// intervals, because other workers take threads without a recent heartbeat for dead.
func (w *Worker) beat(ctx context.Context, registry *queue.Queue, pools []*pool) {
	for ctx.Err() == nil {
		err := registry.Heartbeat(ctx, w.now(), workersOf(pools)...)
		if err == nil {
			return
		}
		w.report("heartbeat", err)
		pause(ctx, retryInterval)
	}
}

// retire removes the threads from Redis, and requeues their pending jobs. So it does with all their
// spares: if a reply was lost, the pools do not know which have jobs.
func (w *Worker) retire(pools []*pool) {
	ctx, cancel := context.WithTimeout(context.Background(), retireTimeout)
	defer cancel()
	var all []bus.WorkerID
	for _, p := range pools {
		for _, t := range p.threads.list() {
			all = append(append(all, t.id), p.Queues[0].Spares(t.id)...)
		}
	}
	var retiring sync.WaitGroup
	for _, r := range w.registries {
		retiring.Go(func() {
			if _, err := r.Retire(ctx, all...); err != nil {
				w.log.Warn("could not remove the worker from redis; another worker will", "error", err)
			}
		})
	}
	retiring.Wait()
}

// workersOf are the workers of all threads of pools.
func workersOf(pools []*pool) (all []bus.WorkerID) {
	for _, p := range pools {
		all = append(all, p.threads.alive()...)
	}
	return all
}

// report logs an error and reports it, unless Redis is unavailable: package rdb logs that once.
func (w *Worker) report(loop string, err error) {
	if !errors.Is(err, bus.ErrUnavailable) && !errors.Is(err, context.Canceled) {
		w.config.Reporter.Error(w.log, "redis refused a call", err, slog.String("loop", loop))
	}
}

// every does work at once and then at an interval, until the context is done.
func every(ctx context.Context, interval time.Duration, work func()) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for ctx.Err() == nil {
		work()
		select {
		case <-ticker.C:
		case <-ctx.Done():
		}
	}
}

// pause waits, or returns early when the context is done.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
