package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/queue"
	"routemaster/internal/rdb"
)

// RelayInterval is how long an outbox gathers events after a relay. One that was idle is relayed at
// once.
const RelayInterval = 20 * time.Millisecond

// How long a relay that has failed waits: twice as long each time.
const minBackoff, maxBackoff = 50 * time.Millisecond, time.Second

// tryTimeout is how long a step of a relay may take. Replicas have a second of it to confirm it.
const tryTimeout = 1500 * time.Millisecond

// Relayer runs the relays between the partitions of a bus. It is safe for concurrent use.
type Relayer struct {
	partitions []*Relays
	log        *slog.Logger
	now        func() time.Time

	mu       sync.Mutex
	absences map[side]*absence
}

// side is a partition in one role of relays: the home, whose writes must be confirmed, or the
// target.
type side struct {
	of     rdb.Number
	isHome bool
}

// absence describes a partition that has failed the last relay on one side.
type absence struct {
	backoff time.Duration
	// until is when the next relay is tried; the others wait, and hold no thread.
	until time.Time
}

// NewRelayer returns a relayer between partitions, which are in the order of their numbers.
func NewRelayer(partitions []*Relays, log *slog.Logger, now func() time.Time) *Relayer {
	return &Relayer{partitions: partitions, log: log, now: now, absences: map[side]*absence{}}
}

// Relay carries the head of an outbox to its partition. It is a handler of [bus.JobRelay].
func (r *Relayer) Relay(ctx context.Context, task *queue.Task) queue.Result {
	head, ok := task.Payload.(*Head)
	if !ok || int(head.To) >= len(r.partitions) {
		r.log.Error("a relay to a partition that is not there", "job", task.Job.Name, "args", task.Job.Args)
		return queue.Result{RetryAt: r.now().Add(maxBackoff)}
	}
	from, to := r.partitions[task.Partition], r.partitions[head.To]
	err := r.try(ctx, side{task.Partition, true}, func(ctx context.Context) error { return from.confirm(ctx, head) })
	var arrival Arrival
	if err == nil {
		err = r.try(ctx, side{head.To, false}, func(ctx context.Context) (err error) {
			arrival, err = to.Put(ctx, task.Partition, head, r.now())
			return err
		})
	}
	putOff, isPutOff := errors.AsType[*putOff](err)
	switch {
	case isPutOff:
		return queue.Result{RetryAt: r.now().Add(putOff.wait)}
	case errors.Is(err, bus.ErrTooManyBatches):
		return queue.Result{RetryAt: r.now(), Detail: outcome{word: tooLarge}}
	case err != nil: // it is another worker's by now
		return queue.Result{RetryAt: r.now().Add(minBackoff)}
	}
	if arrival.Unreadable > 0 {
		r.log.Error("events that cannot be read were not relayed", "to_partition", head.To.String(), "events", arrival.Unreadable)
	}
	if len(arrival.Unwanted) > 0 {
		if open, err := from.Opened(ctx, arrival.Unwanted); err == nil {
			_ = from.CloseUnwanted(ctx, to, open[head.To]) // else the next relay does
		}
	}
	return queue.Result{RetryAt: r.now().Add(RelayInterval), Detail: outcome{arrived, arrival}}
}

// putOff is the error of a step that was not tried, or has failed: how long the relay waits.
type putOff struct{ wait time.Duration }

func (p *putOff) Error() string { return fmt.Sprintf("put off for %v", p.wait) }

// try runs a step of a relay on one side, which has tryTimeout. Where the last one has failed, one
// relay tries at a time, and the others are put off without a try. An error that is not about the
// side is returned as it is.
func (r *Relayer) try(ctx context.Context, of side, step func(context.Context) error) error {
	if wait := r.begin(of); wait > 0 {
		return &putOff{wait}
	}
	trying, cancel := context.WithTimeout(ctx, tryTimeout)
	defer cancel()
	err := step(trying)
	if err == nil || errors.Is(err, bus.ErrTooManyBatches) || errors.Is(err, errNotTaken) {
		r.succeeded(of)
		return err
	}
	if !errors.Is(err, bus.ErrUnavailable) && trying.Err() == nil {
		r.log.Error("a partition refuses a step of relays; their events wait", "at_partition", of.of.String(), "error", err)
	}
	return &putOff{r.failed(of)}
}

// begin returns how long a relay waits without a try, because the last one has failed on one side.
func (r *Relayer) begin(of side) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	a := r.absences[of]
	if a == nil {
		return 0
	}
	if wait := a.until.Sub(r.now()); wait > 0 {
		return wait
	}
	a.until = r.now().Add(tryTimeout)
	return 0
}

// failed returns how long relays wait that need this side: twice as long each time.
func (r *Relayer) failed(of side) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	a := r.absences[of]
	if a == nil {
		a = &absence{}
		r.absences[of] = a
	}
	a.backoff = min(max(2*a.backoff, minBackoff), maxBackoff)
	a.until = r.now().Add(a.backoff)
	return a.backoff
}

func (r *Relayer) succeeded(of side) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.absences, of)
}
