package queue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
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
	// Partition is where the job is.
	Partition rdb.Number
	// Payload is the payload of a job of a [Kind]; nil for other jobs.
	Payload Payload
	// Ahead are the tasks that follow in the lane of the task, and were taken with it: see
	// [AheadKind]. Each has a worker of its own.
	Ahead []*Task
	// packed is the job as it is stored: the same job may be written in several ways.
	packed string
}

// Taken is the result of taking a job for a worker.
type Taken struct {
	// Task is nil when there was no job to take.
	Task *Task
	// Discarded are entries that were removed on the way, each as its [Kind] reads it.
	Discarded []any
	// Poisoned says which entries could not be taken, and why: each is a [bus.ErrPoisoned], and was
	// scheduled for a minute later.
	Poisoned []error
}

// MaxAhead is how many tasks are taken ahead with another at most.
const MaxAhead = 7

// AheadTime is how long after a task was taken the tasks taken ahead with it may be started. It is
// also the longest delay until a pause of their lane, or its end, takes effect.
const AheadTime = 20 * time.Millisecond

// turnTimeout is after how long an entry that waits for its turn comes up by itself. It is always
// woken before, unless something else than this program changed Redis.
const turnTimeout = 10 * time.Minute

// TurnDeadline is when an entry that begins to wait for its turn comes up by itself, in ms since
// the Unix epoch.
func TurnDeadline(now time.Time) int64 { return now.Add(turnTimeout).UnixMilli() }

// Acquire takes the next instant job for a worker, without waiting. An entry is put off for a
// moment if the standing of its lane is below the given one, or one of its owners is full. A job
// that the worker already has pending, because a reply was lost, is taken again. It fails with
// [bus.ErrUnavailable].
func (q *Queue) Acquire(
	ctx context.Context, queue bus.Queue, worker bus.WorkerID, atLeast bus.Standing, now time.Time, full ...Full,
) (Taken, error) {
	args := append(q.callArgs(ctx, queue, worker, now), q.acquireArgs(atLeast, now, full)...)
	reply, err := q.group.Run(ctx, q.scripts.acquire, args...).List()
	if err != nil {
		return Taken{}, rdb.Wrap("acquire job", err)
	}
	return q.taken(reply, queue, worker)
}

// callArgs returns the arguments that read_call of lua/lib/jobs.lua reads.
func (q *Queue) callArgs(ctx context.Context, queue bus.Queue, worker bus.WorkerID, now time.Time) []any {
	args := append(make([]any, 0, 24), string(queue), string(worker), now.UnixMilli(), 0)
	for name, kind := range q.kinds {
		settings := kind.Settings(ctx)
		args = append(append(args, string(name), len(settings)), settings...)
	}
	args[3] = len(args) - 4
	return args
}

// acquireArgs returns the further arguments of acquire of lua/lib/acquire.lua.
func (q *Queue) acquireArgs(atLeast bus.Standing, now time.Time, full []Full) []any {
	args := []any{TurnDeadline(now), int(atLeast), q.maxAhead, len(full)}
	for _, f := range full {
		args = append(args, string(f.Owner), f.Recheck.Milliseconds())
	}
	return args
}

// errReply says that a script returned something else than its header says.
var errReply = errors.New("unexpected reply of a script")

// taken reads the reply of lua/lib/acquire.lua: discarded, poisoned, job, payload, ahead.
func (q *Queue) taken(reply []any, queue bus.Queue, worker bus.WorkerID) (taken Taken, err error) {
	if len(reply) != 5 {
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
	task := q.newTask(queue, worker, packed)
	if values, ok := reply[3].([]any); ok {
		if task.Payload, err = q.kinds[task.Job.Name].Payload(task.Job, values); err != nil {
			return taken, fmt.Errorf("acquire job: %w", err)
		}
	}
	taken.Task = task
	if ahead, ok := reply[4].([]any); ok {
		err = q.takenAhead(task, ahead)
	}
	return taken, err
}

func (q *Queue) newTask(queue bus.Queue, worker bus.WorkerID, packed string) *Task {
	task := &Task{Queue: queue, Worker: worker, Partition: q.partition.Number(), packed: packed}
	if job, err := wire.UnpackJob(packed); err == nil {
		task.Job = job
	}
	return task
}

// UIDDigits is UID_DIGITS of lua/lib/jobs.lua: the characters of UIDs, each at its value (URL-safe
// Base64, RFC 4648, section 5).
const UIDDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

// spareOf is spare_of of lua/lib/acquire.lua: the worker of a number from 1 on that takes a job
// ahead for another one.
func spareOf(worker bus.WorkerID, number int) bus.WorkerID {
	last := len(worker) - 1
	digit := strings.IndexByte(UIDDigits, worker[last])
	return worker[:last] + bus.WorkerID(UIDDigits[(digit+number)%len(UIDDigits)])
}

// Spares are the workers that take jobs ahead for one.
func (q *Queue) Spares(worker bus.WorkerID) (all []bus.WorkerID) {
	for number := 1; number <= q.maxAhead; number++ {
		all = append(all, spareOf(worker, number))
	}
	return all
}

// takenAhead reads the reply of acquire_ahead of lua/lib/acquire.lua: for each task that was taken
// ahead with another its job, the number of its values, and these.
func (q *Queue) takenAhead(first *Task, list []any) error {
	kind := q.kinds[first.Job.Name].(AheadKind)
	for len(list) > 0 {
		task := q.newTask(first.Queue, spareOf(first.Worker, len(first.Ahead)+1), list[0].(string))
		values := list[2 : 2+list[1].(int64)]
		payload, err := kind.PayloadAhead(task.Job, first.Payload, values)
		if err != nil {
			return fmt.Errorf("acquire job: %w", err)
		}
		task.Payload, list = payload, list[2+len(values):]
		first.Ahead = append(first.Ahead, task)
	}
	return nil
}
