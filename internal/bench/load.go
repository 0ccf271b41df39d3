package bench

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"golang.org/x/sync/errgroup"
)

// sender sends a request that is due at a time, and returns when it is answered.
type sender func(due time.Time) error

// window is how long a load lasts: a warm-up, and then what is measured.
type window struct{ warmUp, measured time.Duration }

// load is senders that run side by side.
type load struct {
	senders []sender
	// rate is how many requests a second are due, in all. 0 is a closed loop.
	rate float64
	window
	// begin and end, if given, are called around what is measured.
	begin, end func() error
}

// answered is what came of a load.
type answered struct {
	// requests are those that were answered within took.
	requests int64
	took     time.Duration
	// latency is of the answers, in µs.
	latency *hdrhistogram.Histogram
}

func (a answered) perSecond() float64 { return float64(a.requests) / a.took.Seconds() }

// newLatencies makes a histogram of µs, up to ten minutes, of three digits.
func newLatencies() *hdrhistogram.Histogram { return hdrhistogram.New(1, 600_000_000, 3) }

// The phases of a load.
const (
	warming = iota
	measuring
	over
)

// run runs the load to its end, or to the first error.
func (l load) run(ctx context.Context) (answered, error) {
	var phase atomic.Int32
	var mu sync.Mutex
	total := answered{latency: newLatencies()}
	group, ctx := errgroup.WithContext(ctx)
	start := time.Now()
	for i, send := range l.senders {
		group.Go(func() error {
			latency := newLatencies()
			err := l.loop(ctx, i, send, start, &phase, latency)
			mu.Lock()
			defer mu.Unlock()
			total.requests += latency.TotalCount()
			total.latency.Merge(latency)
			return err
		})
	}
	group.Go(func() (err error) {
		defer phase.Store(over)
		total.took, err = l.time(ctx, &phase)
		return err
	})
	err := group.Wait()
	return total, err
}

// time leads the senders through the phases, and returns how long the measured one was.
func (l load) time(ctx context.Context, phase *atomic.Int32) (time.Duration, error) {
	if err := sleep(ctx, l.warmUp); err != nil {
		return 0, err
	}
	if l.begin != nil {
		if err := l.begin(); err != nil {
			return 0, err
		}
	}
	began := time.Now()
	phase.Store(measuring)
	if err := sleep(ctx, l.measured); err != nil {
		return 0, err
	}
	phase.Store(over)
	took := time.Since(began)
	if l.end == nil {
		return took, nil
	}
	return took, l.end()
}

// loop is one sender, the i-th.
func (l load) loop(ctx context.Context, i int, send sender, start time.Time, phase *atomic.Int32, latency *hdrhistogram.Histogram) error {
	for n := i; ; n += len(l.senders) {
		due := time.Now()
		if l.rate > 0 {
			due = start.Add(time.Duration(float64(n) / l.rate * float64(time.Second)))
			sleepUntil(due)
		}
		if phase.Load() == over || ctx.Err() != nil {
			return ctx.Err()
		}
		if err := send(due); err != nil {
			return err
		}
		if phase.Load() == measuring {
			if err := latency.RecordValue(max(1, time.Since(due).Microseconds())); err != nil {
				return err
			}
		}
	}
}

// sleep waits, unless the context is done before.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
