package relays

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/queue"
	"routemaster/internal/rdb"
)

// Interval is how long an outbox gathers events after a relay. One that was idle is relayed at
// once.
const Interval = 20 * time.Millisecond

// How long a relay that has failed waits: twice as long each time.
const minBackoff, maxBackoff = 50 * time.Millisecond, time.Second

// Relayer runs the relays between the partitions of a bus. It is safe for concurrent use.
type Relayer struct {
	partitions []*Relays
	log        *slog.Logger
	now        func() time.Time

	mu   sync.Mutex
	away map[rdb.Number]*absence
}

// absence is of a partition that did not take the last relay.
type absence struct {
	backoff time.Duration
	// until is when the next relay is tried; the others wait, and hold no thread.
	until time.Time
}

// NewRelayer makes what relays between partitions, which are in the order of their numbers.
func NewRelayer(partitions []*Relays, log *slog.Logger, now func() time.Time) *Relayer {
	return &Relayer{partitions: partitions, log: log, now: now, away: map[rdb.Number]*absence{}}
}

// Relay carries the head of an outbox to its partition. It is a handler of [bus.JobRelay].
func (r *Relayer) Relay(ctx context.Context, task *queue.Task) queue.Result {
	head, ok := task.Payload.(*Head)
	if !ok || int(head.To) >= len(r.partitions) {
		r.log.Error("a relay to a partition that is not there", "job", task.Job.Name, "args", task.Job.Args)
		return queue.Result{RetryAt: r.now().Add(maxBackoff)}
	}
	if wait := r.begin(head.To); wait > 0 {
		return queue.Result{RetryAt: r.now().Add(wait)}
	}
	from, to := r.partitions[task.Partition], r.partitions[head.To]
	if err := from.confirm(ctx, head); err != nil {
		return queue.Result{RetryAt: r.now().Add(minBackoff)}
	}
	arrival, err := to.Put(ctx, task.Partition, head, r.now())
	switch {
	case errors.Is(err, bus.ErrTooManyBatches):
		return queue.Result{RetryAt: r.now(), Detail: outcome{word: tooLarge}}
	case err != nil:
		if !errors.Is(err, bus.ErrUnavailable) {
			r.log.Error("a partition refuses events of others; they wait", "to_partition", head.To.String(), "error", err)
		}
		return queue.Result{RetryAt: r.now().Add(r.failed(head.To))}
	}
	if arrival.Unreadable > 0 {
		r.log.Error("events that cannot be read were not relayed", "to_partition", head.To.String(), "events", arrival.Unreadable)
	}
	r.succeeded(head.To)
	if len(arrival.Unwanted) > 0 {
		if open, err := from.Opened(ctx, arrival.Unwanted); err == nil {
			_ = from.CloseUnwanted(ctx, to, open[head.To]) // else the next relay does
		}
	}
	return queue.Result{RetryAt: r.now().Add(Interval), Detail: outcome{arrived, arrival}}
}

// begin returns how long a relay to a partition waits without a try, because that is away. While
// one tries, the others wait.
func (r *Relayer) begin(to rdb.Number) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	a := r.away[to]
	if a == nil {
		return 0
	}
	if wait := a.until.Sub(r.now()); wait > 0 {
		return wait
	}
	a.until = r.now().Add(maxBackoff)
	return 0
}

// failed returns how long relays to a partition wait, which has not taken one: twice as long each
// time.
func (r *Relayer) failed(to rdb.Number) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	a := r.away[to]
	if a == nil {
		a = &absence{}
		r.away[to] = a
	}
	a.backoff = min(max(2*a.backoff, minBackoff), maxBackoff)
	a.until = r.now().Add(a.backoff)
	return a.backoff
}

func (r *Relayer) succeeded(to rdb.Number) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.away, to)
}
