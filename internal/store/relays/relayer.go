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

	mu      sync.Mutex
	backoff map[rdb.Number]time.Duration
}

// NewRelayer makes what relays between partitions, which are in the order of their numbers.
func NewRelayer(partitions []*Relays, log *slog.Logger, now func() time.Time) *Relayer {
	return &Relayer{partitions: partitions, log: log, now: now, backoff: map[rdb.Number]time.Duration{}}
}

// Relay carries the head of an outbox to its partition. It is a handler of [bus.JobRelay].
func (r *Relayer) Relay(ctx context.Context, task *queue.Task) queue.Result {
	head, ok := task.Payload.(*Head)
	if !ok || int(head.To) >= len(r.partitions) {
		r.log.Error("a relay to a partition that is not there", "job", task.Job.Name, "args", task.Job.Args)
		return queue.Result{RetryAt: r.now().Add(maxBackoff)}
	}
	from, to := r.partitions[task.Partition], r.partitions[head.To]
	arrival, err := to.Put(ctx, task.Partition, head, r.now())
	switch {
	case errors.Is(err, bus.ErrTooManyBatches):
		return queue.Result{RetryAt: r.now(), Detail: outcome{word: tooLarge}}
	case err != nil:
		return queue.Result{RetryAt: r.now().Add(r.failed(head.To))}
	}
	if arrival.Unreadable > 0 {
		r.log.Error("events that cannot be read were not relayed", "to_partition", head.To.String(), "events", arrival.Unreadable)
	}
	r.succeeded(head.To)
	if len(arrival.Unwanted) > 0 {
		_ = from.CloseUnwanted(ctx, to, arrival.Unwanted) // else the next relay does
	}
	return queue.Result{RetryAt: r.now().Add(Interval), Detail: outcome{arrived, arrival}}
}

// failed returns how long relays to a partition wait, which has not taken one.
func (r *Relayer) failed(to rdb.Number) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.backoff[to] = min(max(2*r.backoff[to], minBackoff), maxBackoff)
	return r.backoff[to]
}

func (r *Relayer) succeeded(to rdb.Number) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.backoff, to)
}
