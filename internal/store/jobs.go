package store

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/rdb"
	"routemaster/internal/wire"
)

// Task is a job that a worker has taken, and must settle.
type Task struct {
	// Job is the zero Job when its bytes cannot be read.
	Job    bus.Job
	Queue  bus.Queue
	Worker bus.WorkerID
	// Delivery is what to deliver, nil unless the job delivers a batch.
	Delivery *Delivery
	// packed is the job as it is stored: the same job may be written in several ways.
	packed string
}

// BatchHeader is how many elements a batch's list has before its events: the subscriber's token, the
// creation time and the attempts.
const BatchHeader = 3

// Delivery is a batch, closed to new events, with what is needed to deliver it.
type Delivery struct {
	Batch      bus.BatchID
	Subscriber bus.Token
	// Client is the subscriber's name.
	Client   bus.ClientName
	Callback string
	UUID     string
	// Health is the subscriber's, before this attempt.
	Health    int
	CreatedAt time.Time
	// DueAt is when the batch came due; zero where that is not known: after the first attempt, and when it was full before.
	DueAt time.Time
	// Attempts counts this one.
	Attempts int
	Events   []wire.PackedEvent
	// Standing is the subscriber's, before this attempt.
	Standing bus.Standing
	// Refusals is how often the endpoint has refused a batch since it last acknowledged one, RefusedSince since when; zero if
	// it has not.
	Refusals     int
	RefusedSince time.Time
	// Origins are the spans that events came with, a few, if [Options].Origins asks for them.
	Origins []string
}

// Outcome says how a task ended.
type Outcome struct {
	// RetryAt is when the job is to be run again; zero when it is done.
	RetryAt time.Time
	// Failure says what a failed delivery tells; its zero value when the job failed for another reason.
	Failure bus.Failure
	// ThrottledUntil, if set, is until when no batch of the subscriber is delivered, unless one that is under way succeeds.
	ThrottledUntil time.Time
	// Health is added to the subscriber's health points.
	Health int
	// Delivered is the number of events that the subscriber acknowledged.
	Delivered int
}

// Done is the outcome of a job that needs nothing more.
var Done = Outcome{}

// Enqueue adds a job to a queue, to be run now, unless it is in the queue already, in any
// state. It reports whether it was added.
func (s *Store) Enqueue(ctx context.Context, q bus.Queue, job bus.Job) (added bool, err error) {
	n, err := s.redis.Run(ctx, scriptJobEnqueue, string(q), wire.PackJob(job), 0).Int()
	return n == 1, rdb.Wrap("enqueue job", err)
}

// Schedule makes the jobs of a queue that are due instant, at most limit of them, and returns
// their number.
func (s *Store) Schedule(ctx context.Context, q bus.Queue, now time.Time, limit int) (int, error) {
	n, err := s.redis.Run(ctx, scriptJobSchedule, string(q), now.UnixMilli(), limit).Int()
	return n, rdb.Wrap("schedule jobs", err)
}

// DueJobs returns the number of a queue's jobs that are instant, or scheduled until a time.
func (s *Store) DueJobs(ctx context.Context, q bus.Queue, until time.Time) (int64, error) {
	var instant, scheduled rdb.Reply[int64]
	err := s.redis.Pipelined(ctx, "count jobs", func(pipe rdb.Commands) {
		instant = pipe.LLen(ctx, s.keys.Instant(q))
		scheduled = pipe.ZCount(ctx, s.keys.Scheduled(q), "-inf", strconv.FormatInt(until.UnixMilli(), 10))
	})
	if err != nil {
		return 0, err
	}
	return instant.Val() + scheduled.Val(), nil
}

// turnTimeout is after how long a batch that waits for its turn comes up by itself. It is always
// called before, unless something else than this program changed Redis.
const turnTimeout = 10 * time.Minute

// Acquire takes the next instant job for a worker, without waiting; nil when there is none. A batch of a subscriber whose
// standing is below the least is put off for a moment. A job that the worker already has pending, because an answer was lost, is
// taken again. It fails with [bus.ErrPoisoned] or
// [bus.ErrUnavailable].
func (s *Store) Acquire(ctx context.Context, q bus.Queue, worker bus.WorkerID, least bus.Standing, now time.Time) (*Task, error) {
	reply, err := s.redis.Run(ctx, scriptJobAcquire, s.acquireArgs(q, worker, least, now)...).Value()
	if err != nil {
		return nil, rdb.Wrap("acquire job", err) // nil when there was no job
	}
	return s.acquired(reply, q, worker)
}

func (s *Store) acquireArgs(q bus.Queue, worker bus.WorkerID, least bus.Standing, now time.Time) []any {
	return []any{string(q), string(worker), now.UnixMilli(), s.abreast, now.Add(turnTimeout).UnixMilli(), int(least), s.origins}
}

// acquired reads what the script returned.
func (s *Store) acquired(returned any, q bus.Queue, worker bus.WorkerID) (*Task, error) {
	reply, ok := returned.([]any)
	if !ok {
		return nil, nil // there was no job
	}
	for _, batch := range droppedBatches(reply[0].([]any)) {
		s.onGone(batch)
	}
	if reply = reply[1:]; len(reply) == 0 {
		return nil, nil
	}
	task := &Task{Queue: q, Worker: worker, packed: text(reply[0])}
	if job, err := wire.UnpackJob(task.packed); err == nil {
		task.Job = job
	}
	switch len(reply) {
	case 1:
		return task, nil
	case 2:
		return nil, fmt.Errorf("%w: %s: %s", bus.ErrPoisoned, showJob(task.packed), text(reply[1]))
	}
	// The batch's subscriber, its creation time and its attempts, then its events.
	batch := reply[6].([]any)
	delivery := &Delivery{
		Batch:      bus.BatchID(task.Job.Args[0]),
		Subscriber: bus.Token(text(batch[0])),
		Client:     bus.ClientName(text(reply[1])),
		Callback:   text(reply[2]),
		UUID:       text(reply[3]),
		Health:     int(reply[4].(int64)),
		CreatedAt:  time.UnixMilli(integer(text(batch[1]), 0)),
		Attempts:   int(reply[5].(int64)),
		Events:     make([]wire.PackedEvent, 0, len(batch)-BatchHeader),
	}
	if due := reply[7].(int64); due > 0 {
		delivery.DueAt = time.UnixMilli(due)
	}
	record := reply[8].([]any)
	delivery.Standing, delivery.Refusals = bus.Standing(record[0].(int64)), int(record[1].(int64))
	if since := record[2].(int64); since > 0 {
		delivery.RefusedSince = time.UnixMilli(since)
	}
	delivery.Client = bus.PublicName(delivery.Subscriber, delivery.Client)
	for _, packed := range batch[BatchHeader:] {
		delivery.Events = append(delivery.Events, wire.PackedEvent(text(packed)))
	}
	if len(reply) > 9 {
		for _, origin := range reply[9].([]any) {
			delivery.Origins = append(delivery.Origins, text(origin))
		}
	}
	task.Delivery = delivery
	return task, nil
}

// Settle ends a task. It reports whether the task was still the worker's: if not, because the worker
// was taken for dead, nothing was changed. It can be repeated until it succeeds.
func (s *Store) Settle(ctx context.Context, task *Task, o Outcome, now time.Time) (owned bool, err error) {
	end, args := s.settle(task, o, now)
	n, err := s.redis.Run(ctx, end.alone, args...).Int()
	return n == 1, rdb.Wrap("settle job", err)
}

// Next is what [Store.Acquire] returns.
type Next struct {
	Task *Task
	Err  error
}

// SettleAndAcquire is [Store.Settle] and then [Store.Acquire], in one atomic step: a batch that the first calls up, and that
// the second takes, is never seen by those who wait for a job. The error is of the first, and then
// the second was of no effect.
func (s *Store) SettleAndAcquire(ctx context.Context, task *Task, o Outcome, least bus.Standing, now time.Time) (owned bool, next Next, err error) {
	end, args := s.settle(task, o, now)
	args = append([]any{len(args)}, args...)
	reply, err := s.redis.Run(ctx, end.thenAcquire, append(args, s.acquireArgs(task.Queue, task.Worker, least, now)...)...).List()
	if err != nil {
		return false, next, rdb.Wrap("settle job", err)
	}
	if failure, failed := reply[1].(string); failed {
		next.Err = errors.New("acquire job: " + failure)
	} else {
		next.Task, next.Err = s.acquired(reply[1], task.Queue, task.Worker)
	}
	return reply[0] == int64(1), next, nil
}

// ending is a script that settles a job.
type ending struct{ alone, thenAcquire *rdb.Script }

var (
	ack  = ending{scriptJobAck, scriptJobAckAcquire}
	nack = ending{scriptJobNack, scriptJobNackAcquire}
)

func (s *Store) settle(task *Task, o Outcome, now time.Time) (ending, []any) {
	args := []any{string(task.Queue), string(task.Worker), task.packed, o.Health, s.abreast, now.UnixMilli()}
	if o.RetryAt.IsZero() {
		return ack, append(args, o.Delivered)
	}
	var throttledUntil int64
	if !o.ThrottledUntil.IsZero() {
		throttledUntil = o.ThrottledUntil.UnixMilli()
	}
	return nack, append(args, o.RetryAt.UnixMilli(), throttledUntil, failures[o.Failure])
}

// failures are the scripts' words for what failed.
var failures = map[bus.Failure]string{bus.EndpointFailure: "endpoint", bus.BatchFailure: "batch"}

// NewWaiter prepares a waiter for a queue's instant jobs, see [rdb.Partition.NewWaiter].
func (s *Store) NewWaiter(q bus.Queue, longest time.Duration) *rdb.Waiter {
	return s.redis.NewWaiter(s.keys.Instant(q), longest)
}
