package worker

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/rdb"
	"routemaster/internal/store"
)

// crew is the threads that serve one queue. One idle thread at a time waits for a job, for all of
// them, so that a worker needs one waiting connection a queue however many threads it has.
type crew struct {
	*Worker
	queue   bus.Queue
	threads []bus.WorkerID
	waiter  *rdb.Waiter
	slots   *slots
	// turn is held by the thread that waits.
	turn chan struct{}
	// busy is how many threads run a job.
	busy atomic.Int64
}

func (w *Worker) newCrew(q bus.Queue, threads int) *crew {
	c := &crew{
		Worker: w,
		queue:  q,
		waiter: w.store.NewWaiter(q, w.config.AcquireTimeout),
		slots:  newSlots(threads),
		turn:   make(chan struct{}, 1),
	}
	for range threads {
		c.threads = append(c.threads, bus.NewWorkerID())
	}
	w.config.Recorder.Threads(q, threads)
	return c
}

func (c *crew) close() { _ = c.waiter.Close() } // it is idle: nothing can be lost

// run is one thread: it takes jobs, runs them and settles them until the context is done.
func (c *crew) run(ctx context.Context, thread bus.WorkerID) {
	for ctx.Err() == nil {
		for task := c.wait(ctx, thread); task != nil; {
			outcome := c.handle(ctx, task)
			c.slots.release(standing(task))
			task = c.settle(ctx, task, outcome)
		}
	}
}

// standing is that of a task's subscriber: what slot it needs. Other tasks need none.
func standing(task *store.Task) bus.Standing {
	if task == nil || task.Delivery == nil {
		return bus.Proven
	}
	return task.Delivery.Standing
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
	least := c.slots.reserve()
	task, err := c.store.Acquire(ctx, c.queue, thread, least, c.now())
	return c.acquired(ctx, thread, least, store.Next{Task: task, Err: err})
}

// acquired returns the task that was taken, if any, with a slot of its subscriber's standing, given the slot that was reserved
// for it. It asks until Redis has answered: a job whose answer was lost is this thread's, and no other will run it.
func (c *crew) acquired(ctx context.Context, thread bus.WorkerID, least bus.Standing, next store.Next) *store.Task {
	for errors.Is(next.Err, bus.ErrUnavailable) && ctx.Err() == nil {
		pause(ctx, retryEvery)
		next.Task, next.Err = c.store.Acquire(ctx, c.queue, thread, least, c.now())
	}
	c.slots.exchange(least, standing(next.Task))
	if next.Err != nil {
		c.report("acquire", next.Err)
		pause(ctx, retryEvery)
		return nil
	}
	return next.Task
}

// handle runs a job. It is not stopped by the context: a delivery under way is finished.
func (c *crew) handle(ctx context.Context, task *store.Task) (outcome store.Outcome) {
	c.busy.Add(1)
	defer c.busy.Add(-1)
	c.config.Recorder.Busy(c.queue, 1)
	defer c.config.Recorder.Busy(c.queue, -1)
	defer func() {
		if reason := recover(); reason != nil {
			c.config.Reporter.Panic(c.log, "a job panicked; it is tried again", reason, taskFields(task)...)
			outcome = store.Outcome{RetryAt: c.now().Add(c.config.RetryAfter)}
		}
	}()
	handler, ok := c.config.Handlers[task.Job.Name]
	if !ok || task.Job.Name == bus.JobBatch && task.Delivery == nil {
		// It may be a job of a newer version: it is kept for a worker that knows it.
		c.warn("left a job that this version cannot run", task)
		return store.Outcome{RetryAt: c.now().Add(c.config.RetryAfter)}
	}
	return handler(context.WithoutCancel(ctx), task)
}

func (c *crew) warn(event string, task *store.Task) {
	c.log.LogAttrs(context.Background(), slog.LevelWarn, event, taskFields(task)...)
}

// taskFields tell which job a line of the log, or a report, is about.
func taskFields(task *store.Task) []slog.Attr {
	fields := []slog.Attr{slog.String("queue", string(task.Queue)), slog.String("job", string(task.Job.Name))}
	if d := task.Delivery; d != nil {
		fields = append(fields, slog.String("subscriber", string(d.Client)), slog.String("batch", string(d.Batch)), slog.Int("attempt", d.Attempts))
	}
	return fields
}

// settle ends a job and returns the next one, if there is one and the context is not done. Until
// Redis has taken it the thread does nothing else, but when it is to stop it gives up in time.
func (c *crew) settle(ctx context.Context, task *store.Task, outcome store.Outcome) *store.Task {
	var giveUp time.Time
	for tries := 0; ; tries++ {
		if ctx.Err() != nil && giveUp.IsZero() {
			giveUp = time.Now().Add(settleWithin)
		}
		least := c.slots.reserve()
		owned, next, err := c.trySettle(ctx, giveUp, task, outcome, least)
		if err == nil {
			if !owned && tries == 0 { // later, an answer may have been lost
				c.warn("a job was finished too late: it had been given to another worker", task)
			}
			if owned && task.Delivery != nil && outcome.RetryAt.IsZero() {
				c.config.Recorder.Removed(task.Delivery.Client, len(task.Delivery.Events))
			}
			return c.acquired(ctx, task.Worker, least, next)
		}
		c.slots.release(least)
		c.report("settle", err)
		if !giveUp.IsZero() && time.Now().After(giveUp) {
			c.warn("could not settle a job before the stop; it will run again", task)
			return nil
		}
		pause(context.WithoutCancel(ctx), retryEvery)
	}
}

func (c *crew) trySettle(ctx context.Context, giveUp time.Time, task *store.Task, outcome store.Outcome, least bus.Standing) (owned bool, next store.Next, err error) {
	calling := context.WithoutCancel(ctx)
	if giveUp.IsZero() {
		return c.store.SettleAndAcquire(calling, task, outcome, least, c.now())
	}
	calling, cancel := context.WithDeadline(calling, giveUp)
	defer cancel()
	owned, err = c.store.Settle(calling, task, outcome, c.now())
	return owned, next, err
}
