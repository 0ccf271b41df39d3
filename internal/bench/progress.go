package bench

import (
	"context"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"routemaster/internal/bench/load"
	"routemaster/internal/bench/stack"
)

const (
	// stallTimeout is how long to wait for missing events while none arrives.
	stallTimeout = 20 * time.Second
	// completeTimeout is how long the last delivery may take to be completed in Redis.
	completeTimeout = 20 * time.Second
	pollInterval    = 10 * time.Millisecond
)

// samples are counts at times, in order.
type samples []sample

type sample struct {
	at    time.Time
	count int64
}

// rate is how fast the count grew from one value to another, per second.
func (s samples) rate(from, to int64) float64 {
	return float64(to-from) / s.reached(to).Sub(s.reached(from)).Seconds()
}

// reached is when a count was reached, interpolated between two samples.
func (s samples) reached(count int64) time.Time {
	for i, next := range s {
		if next.count < count {
			continue
		}
		if i == 0 || next.count == s[i-1].count {
			return next.at
		}
		last := s[i-1]
		part := float64(count-last.count) / float64(next.count-last.count)
		return last.at.Add(time.Duration(part * float64(next.at.Sub(last.at))))
	}
	return s[len(s)-1].at
}

// last is the highest count.
func (s samples) last() int64 { return s[len(s)-1].count }

// fill publishes so many events as fast as they are answered.
func (t *test) fill(ctx context.Context, events int64) (progress samples, err error) {
	var begun, answered atomic.Int64
	group, ctx := errgroup.WithContext(ctx)
	filled, done := context.WithCancel(ctx)
	defer done()
	for _, send := range t.publishers.Senders() {
		group.Go(func() error {
			for begun.Add(t.perRequest()) <= events {
				if err := send(time.Now()); err != nil {
					return err
				}
				if answered.Add(t.perRequest()) == events {
					done()
				}
			}
			return nil
		})
	}
	for err == nil {
		progress = append(progress, sample{time.Now(), answered.Load()})
		err = load.Sleep(filled, pollInterval)
	}
	err = group.Wait()
	return append(progress, sample{time.Now(), answered.Load()}), err
}

// follow waits until so many events have arrived, or none arrives any more.
func (e *environment) follow(ctx context.Context, events int64) (progress samples, err error) {
	last := time.Now()
	for {
		tally, err := e.receiver.Tally(ctx)
		if err != nil {
			return nil, err
		}
		now := time.Now()
		if len(progress) == 0 || tally.Distinct > progress.last() {
			last = now
		}
		progress = append(progress, sample{now, tally.Distinct})
		if tally.Distinct >= events || now.Sub(last) > stallTimeout {
			return progress, nil
		}
		if err := e.stack.Err(); err != nil {
			return nil, err
		}
		if err := load.Sleep(ctx, pollInterval); err != nil {
			return nil, err
		}
	}
}

// awaitAll waits until everything that was published has arrived, and returns the cells that say
// what became of the events.
func (e *environment) awaitAll(ctx context.Context, t *test) (Row, error) {
	if _, err := e.follow(ctx, t.expected()); err != nil {
		return nil, err
	}
	return e.fate(ctx, t)
}

// deliverAll has a worker deliver what is queued: see awaitAll.
func (e *environment) deliverAll(ctx context.Context, t *test) (Row, error) {
	if e.remote {
		return e.awaitAll(ctx, t)
	}
	if err := e.stack.StartWorker(ctx); err != nil {
		return nil, err
	}
	fate, err := e.awaitAll(ctx, t)
	if err != nil {
		return nil, err
	}
	return fate, e.stack.Stop(stack.Worker)
}

// fate returns the cells that say what became of the events of a test, once they have arrived.
func (e *environment) fate(ctx context.Context, t *test) (Row, error) {
	tally, err := e.receiver.Tally(ctx)
	if err != nil {
		return nil, err
	}
	lost := t.expected() - tally.Distinct
	e.report.add(figureLost, lost)
	e.report.add(figureDuplicates, tally.Duplicates)
	e.report.add(figureOutOfOrder, tally.OutOfOrder)
	e.report.add(figureUnreadable, tally.Unreadable)
	row := Row{{"lost", lost}, {"dup.", tally.Duplicates}, {"disord.", tally.OutOfOrder}}
	if e.remote {
		return row, nil
	}
	left, err := e.leftOver(ctx)
	e.report.add(figureLeftOver, left)
	return append(row, Cell{"left", left}), err
}

// leftOver counts the keys that are left, once the last delivery is completed.
func (e *environment) leftOver(ctx context.Context) (left int64, err error) {
	for deadline := time.Now().Add(completeTimeout); ; {
		if left, err = e.stack.LeftOver(ctx); err != nil || left == 0 || time.Now().After(deadline) {
			return left, err
		}
		if err := load.Sleep(ctx, pollInterval); err != nil {
			return left, err
		}
	}
}
