package worker

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/store"
)

// crew is the threads that serve one queue. One idle thread at a time waits for a job, for all of
// them, so that a worker needs one waiting connection a queue however many threads it has.
type crew struct {
	*Worker
	queue   bus.Queue
	threads []bus.WorkerID
	waiter  *store.Waiter
	// turn is held by the thread that waits.
	turn chan struct{}
}

func (w *Worker) newCrew(q bus.Queue, threads int) *crew {
	c := &crew{
		Worker: w,
		queue:  q,
		waiter: w.store.NewWaiter(q, w.config.AcquireTimeout),
		turn:   make(chan struct{}, 1),
	}
	for range threads {
		c.threads = append(c.threads, bus.NewWorkerID())
	}
	return c
}

func (c *crew) close() { _ = c.waiter.Close() } // it is idle: nothing can be lost

// run is one thread: it takes jobs, runs them and settles them until the context is done.
func (c *crew) run(ctx context.Context, thread bus.WorkerID) {
	for ctx.Err() == nil {
		for task := c.wait(ctx, thread); task != nil; {
			outcome := c.handle(ctx, task)
			task = c.settle(ctx, task, outcome)
		}
	}
}

// wait waits for a job; it may return without one.
func (c *crew) wait(ctx context.Context, thread bus.WorkerID) *store.Task {
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-ctx.Done():
		return nil
	}
	if err := c.waiter.Wait(ctx, c.config.AcquireTimeout); err != nil {
		c.report("wait", err)
		pause(ctx, retryEvery)
		return nil
	}
	// Until Redis has answered: a job whose answer was lost is this thread's, and no other will run it.
	for ctx.Err() == nil {
		task, err := c.store.Acquire(ctx, c.queue, thread, c.now())
		if err == nil {
			return task
		}
		c.report("acquire", err)
		pause(ctx, retryEvery)
	}
	return nil
}

// handle runs a job. It is not stopped by the context: a delivery under way is finished.
func (c *crew) handle(ctx context.Context, task *store.Task) (outcome store.Outcome) {
	defer func() {
		if reason := recover(); reason != nil {
			c.log.Error("a job panicked; it is tried again", "job", task.Job.Name,
				"panic", fmt.Sprint(reason), "stack", string(debug.Stack()))
			outcome = store.Outcome{RetryAt: c.now().Add(c.config.RetryAfter)}
		}
	}()
	handler, ok := c.config.Handlers[task.Job.Name]
	if !ok || task.Job.Name == bus.JobBatch && task.Delivery == nil {
		// It may be a job of a newer version: it is kept for a worker that knows it.
		c.log.Warn("left a job that this version cannot run", "job", task.Job.Name, "queue", c.queue)
		return store.Outcome{RetryAt: c.now().Add(c.config.RetryAfter)}
	}
	return handler(context.WithoutCancel(ctx), task)
}

// settle ends a job and returns the next one, if there is one and the context is not done. Until
// Redis has taken it the thread does nothing else, but when it is to stop it gives up in time.
func (c *crew) settle(ctx context.Context, task *store.Task, outcome store.Outcome) *store.Task {
	var giveUp time.Time
	for tries := 0; ; tries++ {
		if ctx.Err() != nil && giveUp.IsZero() {
			giveUp = time.Now().Add(settleWithin)
		}
		owned, next, err := c.trySettle(ctx, giveUp, task, outcome)
		if err == nil {
			if !owned && tries == 0 { // later, an answer may have been lost
				c.log.Warn("a job was finished too late: it had been given to another worker", "job", task.Job.Name)
			}
			return next
		}
		c.report("settle", err)
		if !giveUp.IsZero() && time.Now().After(giveUp) {
			c.log.Warn("could not settle a job before the stop; it will run again", "job", task.Job.Name)
			return nil
		}
		pause(context.WithoutCancel(ctx), retryEvery)
	}
}

func (c *crew) trySettle(ctx context.Context, giveUp time.Time, task *store.Task, outcome store.Outcome) (owned bool, next *store.Task, err error) {
	calling := context.WithoutCancel(ctx)
	if giveUp.IsZero() {
		return c.store.SettleAndAcquire(calling, task, outcome, c.now())
	}
	calling, cancel := context.WithDeadline(calling, giveUp)
	defer cancel()
	owned, err = c.store.Settle(calling, task, outcome)
	return owned, nil, err
}
