package queue

import (
	"context"
	"errors"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/rdb"
)

// Result says how a task ended.
type Result struct {
	// RetryAt is when the job is to be run again; zero when it is done.
	RetryAt time.Time
	// Detail is the input of the task's [Kind] for the result; nil if the task failed before it had
	// one.
	Detail any
	// Ahead are the results of the first of [Task].Ahead, which are done, as the task then is. The
	// others were not begun, and wait for their turn again.
	Ahead []Result
	// Hosts are further owners that the task turned out to have, besides its payload's: the hosts that
	// it has sent requests to. They apply to all entries of its first owner.
	Hosts []Owner
}

// Done is the result of a job that needs nothing more.
var Done = Result{}

// Complete ends a task. It reports whether the task was still the worker's: if not, because the
// worker was taken to be dead, nothing was changed. It can be repeated until it succeeds. It fails
// with [bus.ErrUnavailable].
func (q *Queue) Complete(ctx context.Context, task *Task, r Result, now time.Time) (owned bool, err error) {
	script := q.scripts.complete
	if !r.RetryAt.IsZero() {
		script = q.scripts.retry
	}
	n, err := q.group.Run(ctx, script, q.completeArgs(ctx, task, r, now)...).Int()
	return n == 1, rdb.Wrap("complete job", err)
}

// GiveBack has tasks that were taken ahead with another, and are not begun, wait for their turn
// again. It can be repeated until it succeeds. It fails with [bus.ErrUnavailable].
func (q *Queue) GiveBack(ctx context.Context, tasks []*Task, now time.Time) error {
	args := q.callArgs(ctx, tasks[0].Queue, tasks[0].Worker, now)
	return rdb.Wrap("give back jobs", q.group.Run(ctx, q.scripts.giveBack, q.appendAhead(args, tasks, nil, now)...).Err())
}

// Next is the result of [Queue.Acquire].
type Next struct {
	Taken
	Err error
}

// CompleteAndAcquire is [Queue.Complete] and then [Queue.Acquire], in one atomic step: an entry
// that the first wakes and the second takes is never visible to waiting workers. The error is of
// the first, and then the second had no effect.
func (q *Queue) CompleteAndAcquire(
	ctx context.Context, task *Task, r Result, atLeast bus.Standing, now time.Time, full ...Full,
) (owned bool, next Next, err error) {
	script := q.scripts.completeAcquire
	if !r.RetryAt.IsZero() {
		script = q.scripts.retryAcquire
	}
	args := append(q.completeArgs(ctx, task, r, now), q.acquireArgs(atLeast, now, full)...)
	reply, err := q.group.Run(ctx, script, args...).Value()
	if err != nil {
		return false, next, rdb.Wrap("complete job", err)
	}
	switch reply := reply.(type) {
	case []any:
		next.Taken, next.Err = q.taken(reply, task.Queue, task.Worker)
	case string:
		next.Err = errors.New("acquire job: " + reply)
	default:
		next.Taken, next.Err = q.Acquire(ctx, task.Queue, task.Worker, atLeast, now, full...)
		return false, next, nil
	}
	return true, next, nil
}

// completeArgs returns the arguments of all scripts that end a task, up to the ones of acquireArgs.
func (q *Queue) completeArgs(ctx context.Context, task *Task, r Result, now time.Time) []any {
	args := q.appendResult(q.callArgs(ctx, task.Queue, task.Worker, now), task, r)
	if len(task.Ahead) == 0 {
		args = append(args, 0)
	} else {
		args = q.appendAhead(append(args, 1), task.Ahead, r.Ahead, now)
	}
	if !r.RetryAt.IsZero() {
		args = append(args, r.RetryAt.UnixMilli())
	}
	return args
}

// appendResult appends the arguments of release_from of lua/lib/complete.lua.
func (q *Queue) appendResult(args []any, task *Task, r Result) []any {
	var values []any
	if kind := q.kinds[task.Job.Name]; kind != nil && task.Payload != nil {
		values = kind.Result(task.Payload, r.Detail)
	}
	return append(append(args, task.packed, len(values)), values...)
}

// appendAhead appends the arguments of release_ahead of lua/lib/complete.lua.
func (q *Queue) appendAhead(args []any, tasks []*Task, done []Result, now time.Time) []any {
	args = append(args, len(done))
	for i, r := range done {
		args = q.appendResult(append(args, string(tasks[i].Worker)), tasks[i], r)
	}
	left := tasks[len(done):]
	args = append(args, TurnDeadline(now), len(left))
	for _, task := range left {
		args = append(args, string(task.Worker), task.packed)
	}
	return args
}
