package queue

import (
	"context"
	"errors"
	"fmt"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/rdb"
	"routemaster/internal/wire"
)

// Task is a job that a worker has taken, and must complete.
type Task struct {
	// Job is the zero Job when its bytes cannot be read.
	Job    bus.Job
	Queue  bus.Queue
	Worker bus.WorkerID
	// Payload is what the job is about, nil unless the job is of a [Kind].
	Payload Payload
	// packed is the job as it is stored: the same job may be written in several ways.
	packed string
}

// Taken is what came up when a worker asked for a job.
type Taken struct {
	// Task is nil when there was no job to take.
	Task *Task
	// Discarded are entries that were removed on the way, each as its [Kind] reads it.
	Discarded []any
}

// turnTimeout is after how long an entry that waits for its turn comes up by itself. It is always
// woken before, unless something else than this program changed Redis.
const turnTimeout = 10 * time.Minute

// TurnDeadline is when an entry that begins to wait for its turn comes up by itself, in ms since
// the Unix epoch.
func TurnDeadline(now time.Time) int64 { return now.Add(turnTimeout).UnixMilli() }

// Acquire takes the next instant job for a worker, without waiting. An entry whose lane has a
// standing below the given one is put off for a moment. A job that the worker already has pending,
// because a reply was lost, is taken again. It fails with [bus.ErrPoisoned] or
// [bus.ErrUnavailable].
func (q *Queue) Acquire(
	ctx context.Context, queue bus.Queue, worker bus.WorkerID, min bus.Standing, now time.Time,
) (Taken, error) {
	args := append([]any{string(queue), string(worker)}, q.acquireArgs(ctx, min, now)...)
	reply, err := q.partition.Run(ctx, q.acquireScript, args...).Value()
	if err != nil {
		return Taken{}, rdb.Wrap("acquire job", err) // nil when there was no job
	}
	return q.taken(reply, queue, worker)
}

func (q *Queue) acquireArgs(ctx context.Context, min bus.Standing, now time.Time) []any {
	args := []any{now.UnixMilli(), TurnDeadline(now), int(min)}
	for name, kind := range q.kinds {
		settings := kind.Settings(ctx)
		args = append(append(args, string(name), len(settings)), settings...)
	}
	return args
}

// errReply says that a script returned something else than its header says.
var errReply = errors.New("unexpected reply of a script")

// taken reads what lua/lib/acquire.lua returns: nil, or {discarded, job, payload, error}.
func (q *Queue) taken(value any, queue bus.Queue, worker bus.WorkerID) (taken Taken, err error) {
	if value == nil {
		return taken, nil
	}
	reply, ok := value.([]any)
	if !ok || len(reply) != 4 {
		return taken, fmt.Errorf("acquire job: %w: %v", errReply, value)
	}
	discarded, _ := reply[0].([]any)
	packed, there := reply[1].(string)
	values, _ := reply[2].([]any)
	failure, _ := reply[3].(string)
	for _, entry := range discarded {
		entry := entry.([]any)
		kind := q.kinds[bus.JobName(entry[0].(string))]
		taken.Discarded = append(taken.Discarded, kind.Discarded(entry[1:]))
	}
	if failure != "" {
		return taken, fmt.Errorf("%w: %s: %s", bus.ErrPoisoned, wire.ShowJob(packed), failure)
	}
	if !there {
		return taken, nil
	}
	task := &Task{Queue: queue, Worker: worker, packed: packed}
	if job, err := wire.UnpackJob(packed); err == nil {
		task.Job = job
	}
	if len(values) > 0 {
		if task.Payload, err = q.kinds[task.Job.Name].Payload(task.Job, values); err != nil {
			return taken, fmt.Errorf("acquire job: %w", err)
		}
	}
	taken.Task = task
	return taken, nil
}
