package store

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"routemaster/internal/bus"
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
	// Attempts counts this one.
	Attempts int
	Events   []PackedEvent
}

// Outcome says how a task ended.
type Outcome struct {
	// RetryAt is when the job is to be run again; zero when it is done.
	RetryAt time.Time
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
	n, err := s.run(ctx, scriptJobEnqueue, string(q), packJob(job), 0).Int()
	return n == 1, wrap("enqueue job", err)
}

// Schedule makes the jobs of a queue that are due instant, at most limit of them, and returns
// their number.
func (s *Store) Schedule(ctx context.Context, q bus.Queue, now time.Time, limit int) (int, error) {
	n, err := s.run(ctx, scriptJobSchedule, string(q), now.UnixMilli(), limit).Int()
	return n, wrap("schedule jobs", err)
}

// DueJobs returns the number of a queue's jobs that are instant, or scheduled until a time.
func (s *Store) DueJobs(ctx context.Context, q bus.Queue, until time.Time) (int64, error) {
	var instant, scheduled *redis.IntCmd
	err := s.pipelined(ctx, "count jobs", func(pipe redis.Pipeliner) {
		instant = pipe.LLen(ctx, s.keys.instant(q))
		scheduled = pipe.ZCount(ctx, s.keys.scheduled(q), "-inf", strconv.FormatInt(until.UnixMilli(), 10))
	})
	if err != nil {
		return 0, err
	}
	return instant.Val() + scheduled.Val(), nil
}

// turnTimeout is after how long a batch that waits for its turn comes up by itself. It is always
// called before, unless something else than this program changed Redis.
const turnTimeout = 10 * time.Minute

// Acquire takes the next instant job for a worker, without waiting; nil when there is none. A job
// that the worker already has pending, because an answer was lost, is taken again.
func (s *Store) Acquire(ctx context.Context, q bus.Queue, worker bus.WorkerID, now time.Time) (*Task, error) {
	return s.acquired(s.runAll(ctx, s.acquire(q, worker, now))[0], q, worker)
}

func (s *Store) acquire(q bus.Queue, worker bus.WorkerID, now time.Time) call {
	return call{scriptJobAcquire, []any{
		string(q), string(worker), now.UnixMilli(), s.abreast, now.Add(turnTimeout).UnixMilli(),
	}}
}

func (s *Store) acquired(cmd *redis.Cmd, q bus.Queue, worker bus.WorkerID) (*Task, error) {
	reply, err := cmd.Slice()
	if err != nil {
		return nil, wrap("acquire job", err) // nil when there was no job
	}
	task := &Task{Queue: q, Worker: worker, packed: text(reply[0])}
	if job, err := unpackJob(task.packed); err == nil {
		task.Job = job
	}
	if len(reply) == 1 {
		return task, nil
	}
	delivery := &Delivery{
		Batch:      bus.BatchID(task.Job.Args[0]),
		Subscriber: bus.Token(text(reply[1])),
		Client:     bus.ClientName(text(reply[2])),
		Callback:   text(reply[3]),
		UUID:       text(reply[4]),
		Health:     int(reply[5].(int64)),
		CreatedAt:  time.UnixMilli(reply[6].(int64)),
		Attempts:   int(reply[7].(int64)),
	}
	delivery.Client = bus.PublicName(delivery.Subscriber, delivery.Client)
	for _, packed := range reply[8].([]any) {
		delivery.Events = append(delivery.Events, PackedEvent(text(packed)))
	}
	task.Delivery = delivery
	return task, nil
}

// Settle ends a task. It reports whether the task was still the worker's: if not, because the worker
// was taken for dead, nothing was changed. It can be repeated until it succeeds.
func (s *Store) Settle(ctx context.Context, task *Task, o Outcome) (owned bool, err error) {
	return settled(s.runAll(ctx, s.settle(task, o))[0])
}

// SettleAndAcquire is [Store.Settle] and then [Store.Acquire], in one round trip.
func (s *Store) SettleAndAcquire(ctx context.Context, task *Task, o Outcome, now time.Time) (owned bool, next *Task, err error) {
	cmds := s.runAll(ctx, s.settle(task, o), s.acquire(task.Queue, task.Worker, now))
	if owned, err = settled(cmds[0]); err != nil {
		return false, nil, err
	}
	next, err = s.acquired(cmds[1], task.Queue, task.Worker)
	return owned, next, err
}

func (s *Store) settle(task *Task, o Outcome) call {
	args := []any{string(task.Queue), string(task.Worker), task.packed, o.Health, s.abreast}
	if o.RetryAt.IsZero() {
		return call{scriptJobAck, append(args, o.Delivered)}
	}
	var throttledUntil int64
	if !o.ThrottledUntil.IsZero() {
		throttledUntil = o.ThrottledUntil.UnixMilli()
	}
	return call{scriptJobNack, append(args, o.RetryAt.UnixMilli(), throttledUntil)}
}

func settled(cmd *redis.Cmd) (owned bool, err error) {
	n, err := cmd.Int()
	return n == 1, wrap("settle job", err)
}

// Waiter waits for instant jobs in one queue, on a connection of its own.
type Waiter struct {
	redis *redis.Client
	list  string
}

// waitMargin is how much longer than Redis the waiter's connection waits.
const waitMargin = 5 * time.Second

// waitWhenFull is how long a wait takes while Redis is full.
const waitWhenFull = 20 * time.Millisecond

// NewWaiter prepares a waiter that waits at most the given time at once.
func (s *Store) NewWaiter(q bus.Queue, most time.Duration) *Waiter {
	options := s.options
	options.PoolSize = 1
	options.ReadTimeout = most + waitMargin
	return &Waiter{redis: s.connect(options), list: s.keys.instant(q)}
}

// Wait returns when there is an instant job, or at the latest after the given time. It takes nothing:
// it asks Redis to move the last job to where it is. So an answer that is lost loses no job, and
// a wait can be given up at any moment. Once its context is done the waiter is closed, for good.
func (w *Waiter) Wait(ctx context.Context, most time.Duration) error {
	stop := context.AfterFunc(ctx, func() { _ = w.redis.Close() })
	defer stop()
	// Not BLMove, which rounds the time to whole seconds.
	err := w.redis.Do(ctx, "blmove", w.list, w.list, "right", "right", most.Seconds()).Err()
	if ctx.Err() != nil || errors.Is(err, redis.ErrClosed) {
		return context.Cause(ctx)
	}
	if isFull(err) { // it refuses to wait, but not to hand out jobs, which is what empties it
		select {
		case <-time.After(min(most, waitWhenFull)):
		case <-ctx.Done():
		}
		return context.Cause(ctx)
	}
	return wrap("wait for a job", err)
}

// Close ends the waiter's connection, and a wait under way.
func (w *Waiter) Close() error { return wrap("close", w.redis.Close()) }
