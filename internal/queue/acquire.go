package queue

import (
	"context"
	"errors"
	"fmt"
	"slices"
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
	// Poisoned says which entries could not be taken, and why: each is a [bus.ErrPoisoned], and was
	// scheduled for a minute later.
	Poisoned []error
}

// turnTimeout is after how long an entry that waits for its turn comes up by itself. It is always
// woken before, unless something else than this program changed Redis.
const turnTimeout = 10 * time.Minute

// TurnDeadline is when an entry that begins to wait for its turn comes up by itself, in ms since
// the Unix epoch.
func TurnDeadline(now time.Time) int64 { return now.Add(turnTimeout).UnixMilli() }

// Acquire takes the next instant job for a worker, without waiting. An entry whose lane has a
// standing below the given one is put off for a moment. A job that the worker already has pending,
// because a reply was lost, is taken again. It fails with [bus.ErrUnavailable].
func (q *Queue) Acquire(
	ctx context.Context, queue bus.Queue, worker bus.WorkerID, min bus.Standing, now time.Time,
) (Taken, error) {
	args := append(q.callArgs(ctx, queue, worker, now), acquireArgs(min, now)...)
	reply, err := q.group.Run(ctx, q.scripts.acquire, args...).List()
	if err != nil {
		return Taken{}, rdb.Wrap("acquire job", err)
	}
	return q.taken(reply, queue, worker)
}

// callArgs are what read_call of lua/lib/jobs.lua reads.
func (q *Queue) callArgs(ctx context.Context, queue bus.Queue, worker bus.WorkerID, now time.Time) []any {
	args := append(make([]any, 0, 24), string(queue), string(worker), now.UnixMilli(), 0)
	for name, kind := range q.kinds {
		settings := kind.Settings(ctx)
		args = append(append(args, string(name), len(settings)), settings...)
	}
	args[3] = len(args) - 4
	return args
}

// acquireArgs are what acquire of lua/lib/acquire.lua reads besides.
func acquireArgs(min bus.Standing, now time.Time) []any {
	return []any{TurnDeadline(now), int(min)}
}

// errReply says that a script returned something else than its header says.
var errReply = errors.New("unexpected reply of a script")

// taken reads what lua/lib/acquire.lua returns: discarded, poisoned, job, payload.
func (q *Queue) taken(reply []any, queue bus.Queue, worker bus.WorkerID) (taken Taken, err error) {
	if len(reply) != 4 {
		return taken, fmt.Errorf("acquire job: %w: %v", errReply, reply)
	}
	discarded, _ := reply[0].([]any)
	for _, entry := range discarded {
		entry := entry.([]any)
		kind := q.kinds[bus.JobName(entry[0].(string))]
		taken.Discarded = append(taken.Discarded, kind.Discarded(entry[1].([]any)))
	}
	poisoned, _ := reply[1].([]any)
	for pair := range slices.Chunk(poisoned, 2) {
		err := fmt.Errorf("%w: %s: %s", bus.ErrPoisoned, wire.ShowJob(pair[0].(string)), pair[1])
		taken.Poisoned = append(taken.Poisoned, err)
	}
	packed, there := reply[2].(string)
	if !there {
		return taken, nil
	}
	task := &Task{Queue: queue, Worker: worker, packed: packed}
	if job, err := wire.UnpackJob(packed); err == nil {
		task.Job = job
	}
	if values, ok := reply[3].([]any); ok {
		if task.Payload, err = q.kinds[task.Job.Name].Payload(task.Job, values); err != nil {
			return taken, fmt.Errorf("acquire job: %w", err)
		}
	}
	taken.Task = task
	return taken, nil
}
