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
)

// Pool says which jobs some threads run.
type Pool struct {
	// Queues have the jobs, each in a partition of the bus, under the name of a queue.
	Queues []*queue.Queue
	Name   bus.Queue
	// Kind, if given, is the job that is of the queue's [queue.Kind]: it is run with its payload only.
	Kind bus.JobName
	// Threads is how many jobs are run at once.
	Threads int
	// ScheduleInterval is how often due jobs are made instant, at most.
	ScheduleInterval time.Duration
	// Lookahead, if given, makes the threads ask Redis less often: once in this interval, while none
	// of them is busy and no job is due within it. A job that is put off for less may then come up
	// that late. With several queues only jobs that another process has put off may be late, whether
	// or not threads are busy.
	Lookahead time.Duration
	// Discarded, if given, takes the entries that were removed when they came up: see
	// [queue.Taken].
	Discarded func(entry any)
	// Completed, if given, takes each result that Redis has stored.
	Completed func(task *queue.Task, result queue.Result)
	// EndedElsewhere means that a job may end while a thread still runs it, so that a late result is
	// no reason to warn.
	EndedElsewhere bool
}

// pool is the threads that serve one queue of all partitions.
type pool struct {
	*Worker
	Pool
	threads threads
	slots   *slots
	shares  *shares
	sources []*source
	// offers are the sources that have a job, in the order in which they offer it.
	offers chan *source
	// busy is the number of threads that run a job.
	busy *atomic.Int64
	// loops counts the running goroutines.
	loops *sync.WaitGroup
}

func (w *Worker) newPool(config Pool) *pool {
	p := &pool{
		Worker: w,
		Pool:   config,
		slots:  newSlots(config.Threads),
		shares: newShares(config.Threads),
		offers: make(chan *source),
		busy:   w.busy[config.Name],
	}
	for _, q := range config.Queues {
		waiter := q.NewWaiter(config.Name, w.config.AcquireTimeout)
		p.sources = append(p.sources, newSource(q, waiter))
	}
	w.config.Recorder.Count(telemetry.WorkerThreads, config.Threads, string(config.Name))
	return p
}

// start starts the schedulers, the waiters and the threads.
func (p *pool) start(ctx context.Context, loops *sync.WaitGroup) {
	for _, s := range p.sources {
		loops.Go(func() { p.runScheduler(ctx, s) })
		loops.Go(func() { p.offer(ctx, s) })
	}
	p.loops = loops
	for range p.Threads {
		p.startThread(ctx)
	}
}

// close closes the waiters' connections. That loses no job, because a waiter takes none.
func (p *pool) close() {
	for _, s := range p.sources {
		_ = s.waiter.Close()
	}
}

// run is one thread: it takes jobs, runs them and completes them until the context is done.
func (p *pool) run(ctx context.Context, t *thread) {
	for ctx.Err() == nil && !t.isReplaced() {
		for s, task := p.waitAndAcquire(ctx, t); task != nil; {
			t.use(task.Ahead)
			result, failed, failure := p.runAhead(ctx, s, task)
			arrived := p.replaceWhileAway(ctx, t)
			next := p.complete(ctx, s, task, result, failed == nil && t.mayGoOn())
			if failed != nil {
				p.complete(ctx, s, failed, failure, false)
			}
			arrived()
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

// waitAndAcquire waits for a source that has a job, or was away, and takes its next job. It returns
// nil if another worker took the job, if the wait timed out, and if the context is done.
func (p *pool) waitAndAcquire(ctx context.Context, t *thread) (*source, *queue.Task) {
	if s := t.nextReturned(); s != nil {
		return s, p.acquire(ctx, s, t, p.claim())
	}
	select {
	case s := <-p.offers:
		defer func() { s.acquired <- struct{}{} }()
		if c, ok := p.claimPatiently(ctx); ok {
			return s, p.acquire(ctx, s, t, c)
		}
	case <-t.woken:
	case <-ctx.Done():
	}
	return nil, nil
}

// claim reserves the most that a call to Redis may take, until it has returned: see [slots] and
// [shares].
type claim struct {
	minStanding bus.Standing
	grant
}

func (p *pool) claim() claim { return claim{p.slots.reserve(), p.shares.ask(p.now())} }

// settle ends a claim by the task that was taken, nil if none was.
func (p *pool) settle(c claim, task *queue.Task) {
	p.slots.swap(c.minStanding, standing(task))
	p.shares.take(c.grant, task, p.now())
}

// claimPatiently is claim for an idle thread: it waits while an owner that holds too many threads
// may soon leave some. It reports whether it has a claim, which it has unless the context is done.
func (p *pool) claimPatiently(ctx context.Context) (c claim, ok bool) {
	for ctx.Err() == nil {
		if c = p.claim(); c.wait == 0 {
			return c, true
		}
		p.settle(c, nil)
		timer := time.NewTimer(c.wait)
		select {
		case <-timer.C:
		case <-p.shares.freed:
		case <-ctx.Done():
		}
		timer.Stop()
	}
	return c, false
}

// acquire takes the next job of a source for a thread, nil if there is none.
func (p *pool) acquire(ctx context.Context, s *source, t *thread, c claim) *queue.Task {
	defer p.replaceWhileAway(ctx, t)()
	taken, err := s.Acquire(ctx, p.Name, t.id, c.minStanding, p.now(), c.full...)
	s.touch()
	return p.acquired(ctx, s, t.id, c, queue.Next{Taken: taken, Err: err})
}

// acquired returns the task that was taken, if any, and settles the claim for it. It repeats the
// call until Redis has responded: if a response was lost, the job is this thread's, and no other
// thread would run it.
func (p *pool) acquired(ctx context.Context, s *source, thread bus.WorkerID, c claim, next queue.Next) *queue.Task {
	for errors.Is(next.Err, bus.ErrUnavailable) && ctx.Err() == nil {
		p.settle(c, nil) // others may be served meanwhile
		pause(ctx, retryInterval)
		c = p.claim()
		next.Taken, next.Err = s.Acquire(ctx, p.Name, thread, c.minStanding, p.now(), c.full...)
		s.touch()
	}
	p.settle(c, next.Task)
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
	p.config.Recorder.Count(telemetry.BusyThreads, 1, string(p.Name))
	defer p.config.Recorder.Count(telemetry.BusyThreads, -1, string(p.Name))
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

// complete completes a job and the ones that were done after it. If acquire is set, it takes the
// next job of the same source, if there is one and it is no other source's turn. It repeats the
// call until Redis has responded; once the context is done, for [completeTimeout].
func (p *pool) complete(ctx context.Context, s *source, task *queue.Task, result queue.Result, acquire bool) *queue.Task {
	var deadline time.Time
	for tries := 0; ; tries++ {
		if ctx.Err() != nil && deadline.IsZero() {
			deadline = time.Now().Add(completeTimeout)
		}
		c := p.claim()
		owned, next, err := p.tryComplete(ctx, s, deadline, task, result, c, acquire && c.wait == 0)
		s.touch()
		if err == nil {
			p.completed(task, result, owned, tries)
			return p.acquired(ctx, s, task.Worker, c, next)
		}
		p.settle(c, nil)
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
	ctx context.Context, s *source, deadline time.Time, task *queue.Task, result queue.Result, c claim, acquire bool,
) (owned bool, next queue.Next, err error) {
	calling := context.WithoutCancel(ctx)
	if !deadline.IsZero() {
		var cancel context.CancelFunc
		calling, cancel = context.WithDeadline(calling, deadline)
		defer cancel()
	} else if acquire && !p.othersOffer(s) {
		return s.CompleteAndAcquire(calling, task, result, c.minStanding, p.now(), c.full...)
	}
	owned, err = s.Complete(calling, task, result, p.now())
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
	telemetry.Often(p.log, string(task.Job.Name)).LogAttrs(context.Background(), slog.LevelWarn, event, taskFields(task)...)
}

// taskFields returns the fields that identify a job in the log and in reports.
func taskFields(task *queue.Task) []slog.Attr {
	fields := []slog.Attr{slog.String("queue", string(task.Queue)), slog.String("job", string(task.Job.Name))}
	if task.Payload != nil {
		fields = append(fields, task.Payload.LogAttrs()...)
	}
	return fields
}
