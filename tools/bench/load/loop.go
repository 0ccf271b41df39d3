package load

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// Sender sends a request that is due at a time, and returns once it is answered.
type Sender func(due time.Time) error

// Window is how long a load lasts: a warm-up, then the part to measure.
type Window struct{ WarmUp, Measured time.Duration }

// Load is senders that run concurrently.
type Load struct {
	Senders []Sender
	// Rate is how many requests are due per second, in all. 0 is a closed loop.
	Rate float64
	Window
	// Around, if set, is called after the warm-up. It calls measure, which lasts for the measured part
	// of the load.
	Around func(measure func() error) error
}

// Result is the measurement of a load.
type Result struct {
	// Requests counts the requests answered in the measured part, which took Took.
	Requests int64
	Took     time.Duration
	// Latency is the time from when a request was due until it was answered.
	Latency Latencies
}

// PerSecond is the rate of the requests.
func (r Result) PerSecond() float64 { return float64(r.Requests) / r.Took.Seconds() }

// The phases of a load.
const (
	warmingUp = iota
	measuring
	over
)

// Run runs the load to its end, or to the first error.
func (l Load) Run(ctx context.Context) (Result, error) {
	var phase atomic.Int32
	var mu sync.Mutex
	total := Result{Latency: newLatencies()}
	group, ctx := errgroup.WithContext(ctx)
	start := time.Now()
	for i := range l.Senders {
		group.Go(func() error {
			latency, err := l.loop(ctx, i, start, &phase)
			mu.Lock()
			defer mu.Unlock()
			total.Requests += latency.histogram.TotalCount()
			total.Latency.histogram.Merge(latency.histogram)
			return err
		})
	}
	measure := func() error {
		began := time.Now()
		phase.Store(measuring)
		err := Sleep(ctx, l.Measured)
		phase.Store(over)
		total.Took = time.Since(began)
		return err
	}
	group.Go(func() error {
		defer phase.Store(over)
		if err := Sleep(ctx, l.WarmUp); err != nil {
			return err
		}
		if l.Around == nil {
			return measure()
		}
		return l.Around(measure)
	})
	err := group.Wait()
	return total, err
}

// loop runs the i-th sender until the load is over, and returns the latencies that were measured.
func (l Load) loop(ctx context.Context, i int, start time.Time, phase *atomic.Int32) (Latencies, error) {
	latency := newLatencies()
	for n := i; ; n += len(l.Senders) {
		due := time.Now()
		if l.Rate > 0 {
			due = start.Add(time.Duration(float64(n) / l.Rate * float64(time.Second)))
			sleepUntil(due)
		}
		if phase.Load() == over || ctx.Err() != nil {
			return latency, ctx.Err()
		}
		if err := l.Senders[i](due); err != nil {
			return latency, err
		}
		if phase.Load() == measuring {
			latency.record(time.Since(due))
		}
	}
}

// Sleep waits for a duration. It fails if the context is done first.
func Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
