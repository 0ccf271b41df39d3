package storetest

import (
	"context"
	"errors"
	"time"

	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/queue"
	"routemaster/internal/store"
)

// Task is a task of the queue. Its delivery is nil unless the job is a batch's.
type Task struct {
	*queue.Task
	Delivery *store.Delivery
}

func newTask(task *queue.Task) *Task {
	if task == nil {
		return nil
	}
	delivery, _ := task.Payload.(*store.Delivery)
	return &Task{task, delivery}
}

// AheadTasks are the tasks that were taken ahead with it.
func (t *Task) AheadTasks() (all []*Task) {
	for _, task := range t.Task.Ahead {
		all = append(all, newTask(task))
	}
	return all
}

// Result is the result of a task: done, unless RetryAt is set.
type Result struct {
	RetryAt, ThrottledUntil time.Time
	Failure                 bus.Failure
	Health, Delivered       int
	Works                   bool
	Attempt                 []byte
	AttemptsKept            int
	Slice                   *store.SliceResult
	// Ahead is how many batches of the subscriber may be taken ahead, unless it is nil.
	Ahead *int
	// Done are the results of the first of the tasks that were taken ahead.
	Done []Result
}

// Done is the result of a task that needs nothing more.
var Done = Result{}

func (r Result) of(task *Task) queue.Result {
	result := queue.Result{RetryAt: r.RetryAt}
	if task.Delivery != nil {
		result.Detail = store.DeliveryResult{
			Failure: r.Failure, ThrottledUntil: r.ThrottledUntil, Health: r.Health, Delivered: r.Delivered,
			Works: r.Works, Attempt: r.Attempt, AttemptsKept: r.AttemptsKept, Slice: r.Slice, Ahead: r.Ahead,
		}
	}
	for i, done := range r.Done {
		result.Ahead = append(result.Ahead, done.of(newTask(task.Task.Ahead[i])))
	}
	return result
}

// Next is what a worker gets after it has completed a task.
type Next struct {
	Task *Task
	Err  error
}

// Acquire is [queue.Queue.Acquire]. The error is also of entries that were poisoned.
func (b *Bus) Acquire(
	ctx context.Context, q bus.Queue, worker bus.WorkerID, atLeast bus.Standing, now time.Time,
) (*Task, error) {
	taken, err := b.Queue.Acquire(ctx, q, worker, atLeast, now)
	return newTask(taken.Task), errors.Join(append(taken.Poisoned, err)...)
}

// CompleteAt is [queue.Queue.Complete].
func (b *Bus) CompleteAt(ctx context.Context, task *Task, r Result, now time.Time) (owned bool, err error) {
	return b.Queue.Complete(ctx, task.Task, r.of(task), now)
}

// CompleteAndAcquire is [queue.Queue.CompleteAndAcquire].
func (b *Bus) CompleteAndAcquire(
	ctx context.Context, task *Task, r Result, atLeast bus.Standing, now time.Time,
) (owned bool, next Next, err error) {
	owned, taken, err := b.Queue.CompleteAndAcquire(ctx, task.Task, r.of(task), atLeast, now)
	return owned, Next{newTask(taken.Task), errors.Join(append(taken.Poisoned, taken.Err)...)}, err
}

// Take takes a job of the main queue, nil if there is none, at a time in ms after [Start].
func (b *Bus) Take(worker bus.WorkerID, ms int) *Task {
	b.T.Helper()
	task, err := b.Acquire(b.T.Context(), bus.QueueMain, worker, bus.Failing, After(ms))
	require.NoError(b.T, err)
	return task
}

// Complete completes a task at [Start], and reports whether it was still its worker's.
func (b *Bus) Complete(task *Task, r Result) (owned bool) {
	b.T.Helper()
	owned, err := b.CompleteAt(b.T.Context(), task, r, Start)
	require.NoError(b.T, err)
	return owned
}

// MakeInstant makes the jobs of the main queue instant that are due at a time in ms after [Start],
// and returns how many there were.
func (b *Bus) MakeInstant(ms int) int {
	b.T.Helper()
	moved, err := b.Schedule(b.T.Context(), bus.QueueMain, After(ms), 1000)
	require.NoError(b.T, err)
	return moved
}
