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
	"routemaster/internal/rdb"
)

// Pool says which jobs some threads run.
type Pool struct {
	// Queue has the jobs, under the name of a queue.
	Queue *queue.Queue
	Name  bus.Queue
	// Kind, if given, is the job that is of the queue's [queue.Kind]: it is run with its payload only.
	Kind bus.JobName
	// Threads is how many jobs are run at once.
	Threads int
	// ScheduleInterval is how often due jobs are made instant.
	ScheduleInterval time.Duration
	// Lookahead, if given, has the threads ask Redis less often: only so often while none of them is
	// busy and no job is due within that time. Then a job that is put off for less may come up that
	// late.
	Lookahead time.Duration
	// Discarded, if given, takes the entries that were removed when they came up: see
	// [queue.Taken].
	Discarded func(entry any)
	// Completed, if given, takes each result that Redis has stored.
	Completed func(task *queue.Task, result queue.Result)
	// EndedElsewhere means that a job may end while a thread still runs it, so that a result that
	// comes too late is nothing to warn of.
	EndedElsewhere bool
}

// pool is the threads that serve one queue. One idle thread at a time waits for a job, for all of
// them. So a worker has one waiting connection for each queue, however many threads it has.
type pool struct {
	*Worker
	Pool
	threads []bus.WorkerID
	spares  spares
	slots   *slots
	waiter  *rdb.Waiter
	// waiting is held, by sending, by the thread that uses the waiter.
	waiting chan struct{}
	// busy is the number of threads that run a job.
	busy *atomic.Int64
}

func (w *Worker) newPool(config Pool) *pool {
	p := &pool{
		Worker:  w,
		Pool:    config,
		slots:   newSlots(config.Threads),
		waiter:  config.Queue.NewWaiter(config.Name, w.config.AcquireTimeout),
		waiting: make(chan struct{}, 1),
		busy:    w.busy[config.Name],
	}
	for range config.Threads {
		p.threads = append(p.threads, bus.NewWorkerID())
	}
	w.config.Recorder.Threads(config.Name, config.Threads)
	return p
}

// start starts the scheduler and the threads.
func (p *pool) start(ctx context.Context, loops *sync.WaitGroup) {
	loops.Go(func() { p.runScheduler(ctx) })
	for _, thread := range p.threads {
		loops.Go(func() { p.run(ctx, thread) })
	}
}

// close closes the waiter's connection. That loses no job, because a waiter takes none.
func (p *pool) close() { _ = p.waiter.Close() }

// run is one thread: it takes jobs, runs them and completes them until the context is done.
func (p *pool) run(ctx context.Context, thread bus.WorkerID) {
	known := 0 // spares of the thread: they are always the same, in order
	for ctx.Err() == nil {
		for task := p.waitAndAcquire(ctx, thread); task != nil; {
			if ahead := len(task.Ahead); ahead > known {
				p.spares.add(task.Ahead[known:])
				known = ahead
			}
			result, failed, failure := p.runAhead(ctx, task)
			next := p.complete(ctx, task, result, failed == nil)
			if failed != nil {
				p.complete(ctx, failed, failure, false)
			}
			task = next
		}
	}
}

// standing returns the standing of a task's lane, which decides what slot the task needs. A task
// without a payload needs no slot, like one of a proven lane.
func standing(task *queue.Task) bus.Standing {
	if task == nil || task.Payload == nil {
		return bus.Proven
	}
	return task.Payload.LaneStanding()
}

// waitAndAcquire waits for a job and takes it. It returns nil if another worker took the job, if
// the wait timed out, and if the context is done.
func (p *pool) waitAndAcquire(ctx context.Context, thread bus.WorkerID) *queue.Task {
	select {
	case p.waiting <- struct{}{}:
		defer func() { <-p.waiting }()
	case <-ctx.Done():
		return nil
	}
	if err := p.waiter.Wait(ctx, p.config.AcquireTimeout); err != nil {
		p.report("wait", err)
		pause(ctx, retryInterval)
		return nil
	}
	minStanding := p.slots.reserve()
	taken, err := p.Queue.Acquire(ctx, p.Name, thread, minStanding, p.now())
	return p.acquired(ctx, thread, minStanding, queue.Next{Taken: taken, Err: err})
}

// acquired returns the task that was taken, if any. It swaps the slot that was reserved for the
// one that the task needs. It repeats the call until Redis has responded: if a response was lost,
// the job is this thread's, and no other thread would run it.
func (p *pool) acquired(ctx context.Context, thread bus.WorkerID, reserved bus.Standing, next queue.Next) *queue.Task {
	for errors.Is(next.Err, bus.ErrUnavailable) && ctx.Err() == nil {
		pause(ctx, retryInterval)
		next.Taken, next.Err = p.Queue.Acquire(ctx, p.Name, thread, reserved, p.now())
	}
	p.slots.swap(reserved, standing(next.Task))
	if p.Discarded != nil {
		for _, entry := range next.Discarded {
			p.Discarded(entry)
		}
	}
	for _, err := range next.Poisoned {
		p.report("acquire", err)
	}
	if next.Err != nil {
		p.report("acquire", next.Err)
		pause(ctx, retryInterval)
		return nil
	}
	return next.Task
}

// handle runs a job. The context does not stop it: a delivery in flight is finished.
func (p *pool) handle(ctx context.Context, task *queue.Task) (result queue.Result) {
	p.busy.Add(1)
	defer p.busy.Add(-1)
	p.config.Recorder.Busy(p.Name, 1)
	defer p.config.Recorder.Busy(p.Name, -1)
	defer func() {
		if reason := recover(); reason != nil {
			p.config.Reporter.Panic(p.log, "a job panicked; it is tried again", reason, taskFields(task)...)
			result = queue.Result{RetryAt: p.now().Add(p.config.RetryAfter)}
		}
	}()
	handler, ok := p.config.Handlers[task.Job.Name]
	if !ok || task.Job.Name == p.Kind && task.Payload == nil {
		// A newer version may have added it, so it is kept for a worker that knows it.
		p.warn("postponed a job that this version cannot run", task)
		return queue.Result{RetryAt: p.now().Add(p.config.RetryAfter)}
	}
	return handler(context.WithoutCancel(ctx), task)
}

// complete completes a job and those that were done after it. If it is to acquire, it takes the
// next one, if there is one and the context is not done. It repeats the call until Redis has
// responded; once the context is done, for [completeTimeout].
func (p *pool) complete(ctx context.Context, task *queue.Task, result queue.Result, acquire bool) *queue.Task {
	var deadline time.Time
	for tries := 0; ; tries++ {
		if ctx.Err() != nil && deadline.IsZero() {
			deadline = time.Now().Add(completeTimeout)
		}
		minStanding := p.slots.reserve()
		owned, next, err := p.tryComplete(ctx, deadline, task, result, minStanding, acquire)
		if err == nil {
			p.completed(task, result, owned, tries)
			return p.acquired(ctx, task.Worker, minStanding, next)
		}
		p.slots.release(minStanding)
		p.report("complete", err)
		if !deadline.IsZero() && time.Now().After(deadline) {
			p.warn("could not complete a job before stopping; it will run again", task)
			return nil
		}
		pause(context.WithoutCancel(ctx), retryInterval)
	}
}

// tryComplete makes one call. Before a deadline it only completes.
func (p *pool) tryComplete(
	ctx context.Context, deadline time.Time, task *queue.Task, result queue.Result, minStanding bus.Standing, acquire bool,
) (owned bool, next queue.Next, err error) {
	calling := context.WithoutCancel(ctx)
	if !deadline.IsZero() {
		var cancel context.CancelFunc
		calling, cancel = context.WithDeadline(calling, deadline)
		defer cancel()
	} else if acquire {
		return p.Queue.CompleteAndAcquire(calling, task, result, minStanding, p.now())
	}
	owned, err = p.Queue.Complete(calling, task, result, p.now())
	return owned, next, err
}

// completed takes note that Redis has stored a result. A task that is not owned was given to
// another worker, unless the call was repeated: then a lost response may have said that it was
// owned.
func (p *pool) completed(task *queue.Task, result queue.Result, owned bool, tries int) {
	if !owned && tries == 0 && !p.EndedElsewhere {
		p.warn("completed a job too late: it had been given to another worker", task)
	}
	if owned && p.Completed != nil {
		p.Completed(task, result)
		for i, done := range result.Ahead {
			p.Completed(task.Ahead[i], done)
		}
	}
}

func (p *pool) warn(event string, task *queue.Task) {
	p.log.LogAttrs(context.Background(), slog.LevelWarn, event, taskFields(task)...)
}

// taskFields returns the fields that identify a job in the log and in reports.
func taskFields(task *queue.Task) []slog.Attr {
	fields := []slog.Attr{slog.String("queue", string(task.Queue)), slog.String("job", string(task.Job.Name))}
	if task.Payload != nil {
		fields = append(fields, task.Payload.LogAttrs()...)
	}
	return fields
}
