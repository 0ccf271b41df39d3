package worker

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/store"
	"routemaster/internal/telemetry"
	"routemaster/internal/telemetry/exceptions"
)

// Handler runs a job and says how it ended.
type Handler func(ctx context.Context, task *store.Task) store.Outcome

// Ticker enqueues a housekeeping job at an interval. All workers of a bus tick; a job that is
// in the queue already is not added.
type Ticker struct {
	Job   bus.JobName
	Every time.Duration
}

// Config says how to run jobs.
type Config struct {
	// Threads is the number of main threads: of deliveries at once.
	Threads int
	// AcquireTimeout is the longest that an idle worker waits for a job at once.
	AcquireTimeout time.Duration
	// RetryAfter is when a job that panicked, or that nobody here knows, is tried again.
	RetryAfter time.Duration
	// Handlers run the jobs, by name.
	Handlers map[bus.JobName]Handler
	// Tickers enqueue the housekeeping.
	Tickers []Ticker
	// Reporter, if given, reports what must not happen.
	Reporter *exceptions.Reporter
	// Recorder takes note of what the threads do; it may be nil.
	Recorder *telemetry.Recorder
}

// The pace of the loops.
const (
	// What waits in the main queue is meant for the ms; in the aux queue there are only retries.
	mainScheduleEvery = 5 * time.Millisecond
	auxScheduleEvery  = time.Second
	heartbeatEvery    = 5 * time.Second
	// retryEvery is the pause before Redis is asked again when it did not answer.
	retryEvery = 200 * time.Millisecond
	// settleWithin bounds how long a thread that stops tries to settle its job.
	settleWithin = 5 * time.Second
	// retireWithin bounds the clean-up of a worker that stops; what it leaves is scrubbed by another.
	retireWithin = 3 * time.Second
)

// Worker is one worker process's threads.
type Worker struct {
	store  *store.Store
	config Config
	log    *slog.Logger
	now    func() time.Time
}

// New makes a worker.
func New(st *store.Store, config Config, log *slog.Logger, now func() time.Time) *Worker {
	return &Worker{store: st, config: config, log: log, now: now}
}

// Run runs jobs until the context is done, then stops as the package comment says. It outlives any
// failure of Redis.
func (w *Worker) Run(ctx context.Context) {
	main := w.newCrew(bus.QueueMain, w.config.Threads)
	aux := w.newCrew(bus.QueueAux, 1)
	threads := append(main.threads, aux.threads...)

	beating, stopHeartbeat := context.WithCancel(context.WithoutCancel(ctx))
	var heartbeat, loops sync.WaitGroup
	heartbeat.Go(func() { w.heartbeat(beating, threads) })
	loops.Go(func() { w.schedule(ctx, bus.QueueMain, mainScheduleEvery) })
	loops.Go(func() { w.schedule(ctx, bus.QueueAux, auxScheduleEvery) })
	for _, ticker := range w.config.Tickers {
		loops.Go(func() { w.tick(ctx, ticker) })
	}
	for _, crew := range []*crew{main, aux} {
		for _, thread := range crew.threads {
			loops.Go(func() { crew.run(ctx, thread) })
		}
	}
	loops.Go(func() {
		<-ctx.Done()
		w.log.Info("worker stopping; waiting for the deliveries under way", "deliveries", main.busy.Load())
	})
	loops.Wait()
	stopHeartbeat()
	heartbeat.Wait()
	main.close()
	aux.close()
	w.retire(threads)
}

// schedule moves due jobs to where the threads take them.
func (w *Worker) schedule(ctx context.Context, q bus.Queue, interval time.Duration) {
	every(ctx, interval, func() {
		if err := w.scheduleDue(ctx, q); err != nil {
			w.report("schedule", err)
			pause(ctx, retryEvery)
		}
	})
}

// schedulePerTrip bounds how long one call keeps Redis from serving others.
const schedulePerTrip = 100

// scheduleDue moves all jobs of a queue that are due now.
func (w *Worker) scheduleDue(ctx context.Context, q bus.Queue) error {
	for ctx.Err() == nil {
		moved, err := w.store.Schedule(ctx, q, w.now(), schedulePerTrip)
		if err != nil || moved < schedulePerTrip {
			return err
		}
	}
	return nil
}

func (w *Worker) tick(ctx context.Context, ticker Ticker) {
	every(ctx, ticker.Every, func() {
		if _, err := w.store.Enqueue(ctx, bus.QueueAux, bus.Job{Name: ticker.Job}); err != nil {
			w.report("tick", err)
		}
	})
}

// heartbeat notes that this worker's threads are alive, and puts back the housekeeping of workers that are not.
func (w *Worker) heartbeat(ctx context.Context, workers []bus.WorkerID) {
	every(ctx, heartbeatEvery, func() {
		// As soon as Redis is back, since others go by it.
		for err := w.store.Heartbeat(ctx, w.now(), workers...); err != nil && ctx.Err() == nil; {
			w.report("heartbeat", err)
			pause(ctx, retryEvery)
			err = w.store.Heartbeat(ctx, w.now(), workers...)
		}
		if !bus.CanDetectDeadWorkers(w.store.SteadySince(), w.now()) {
			return
		}
		// Not by a job: a job that dead workers hold is in its queue already, and could not be enqueued to free itself.
		jobs, err := w.store.ScrubQueues(ctx, w.now().Add(-bus.DeadAfter), bus.QueueAux)
		if err != nil {
			w.report("heartbeat", err)
		}
		w.config.Recorder.Scrubbed(jobs, 0)
	})
}

func (w *Worker) retire(workers []bus.WorkerID) {
	ctx, cancel := context.WithTimeout(context.Background(), retireWithin)
	defer cancel()
	for _, worker := range workers {
		if _, err := w.store.Retire(ctx, worker); err != nil {
			w.log.Warn("could not sign off; another worker will clean up", "error", err)
			return
		}
	}
}

// report logs an error, unless it is that Redis is away: the store tells each change of that once.
func (w *Worker) report(what string, err error) {
	if !errors.Is(err, bus.ErrUnavailable) && !errors.Is(err, context.Canceled) {
		w.config.Reporter.Error(w.log, "redis refused a call", err, slog.String("loop", what))
	}
}

// every does the work now and then at each interval, until the context is done.
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
