package bench

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"routemaster/client"
	"routemaster/internal/bench/load"
	"routemaster/internal/bench/report"
)

const (
	// stallTimeout is how long to wait for missing events while none arrives.
	stallTimeout = 20 * time.Second
	// completeTimeout is how long the last delivery may take to be completed in Redis.
	completeTimeout = 20 * time.Second
	pollInterval    = 10 * time.Millisecond
)

// test is a running trial, with a topic and callbacks of its own.
type test struct {
	trial
	run
	publishers load.Publishers
}

// expected is how many events the subscribers are to receive.
func (t *test) expected() int64 { return t.publishers.Sent() * int64(t.subscribers) }

// prepare subscribes and connects. The test must be finished.
func (e *environment) prepare(ctx context.Context, how trial) (*test, error) {
	run := e.nextRun()
	if err := e.receiver.Begin(ctx, run.prefix); err != nil {
		return nil, err
	}
	for i := range how.subscribers {
		if err := e.subscribe(ctx, i, run, how.max, time.Duration(how.timeout)*time.Millisecond); err != nil {
			return nil, err
		}
	}
	publishers, err := load.Connect(ctx, e.target(e.url, run.topic, how.array), how.publishers)
	return &test{how, run, publishers}, err
}

// refuse publishes the events that the subscribers refuse, and waits until they have refused each.
func (e *environment) refuse(ctx context.Context, t *test) error {
	for i := range t.refused {
		event := client.Event{Topic: t.topic, Type: client.Update, URL: load.RefusedURL(i)}
		if err := e.publisher.Publish(ctx, event); err != nil {
			return err
		}
	}
	for deadline := time.Now().Add(stallTimeout); ; {
		tally, err := e.receiver.Tally(ctx)
		switch {
		case err != nil, tally.Refusals >= int64(t.refused*t.subscribers):
			return err
		case time.Now().After(deadline):
			return fmt.Errorf("of %d batches %d were refused within %v", t.refused, tally.Refusals, stallTimeout)
		}
		if err := load.Sleep(ctx, pollInterval); err != nil {
			return err
		}
	}
}

// finish disconnects. It removes the topic from a remote bus.
func (e *environment) finish(ctx context.Context, t *test) {
	t.publishers.Close()
	if e.remote {
		_ = e.publisher.DeleteTopic(context.WithoutCancel(ctx), t.topic) // it may not exist
	}
}

// fill publishes the events of a queue as fast as the bus accepts them.
func (t *test) fill(ctx context.Context) (progress samples, err error) {
	var begun, accepted atomic.Int64
	group, ctx := errgroup.WithContext(ctx)
	filled, done := context.WithCancel(ctx)
	defer done()
	for _, send := range t.publishers.Senders() {
		group.Go(func() error {
			for begun.Add(t.perRequest()) <= t.queue {
				if err := send(time.Now()); err != nil {
					return err
				}
				if accepted.Add(t.perRequest()) == t.queue {
					done()
				}
			}
			return nil
		})
	}
	for err == nil {
		progress = append(progress, sample{time.Now(), accepted.Load()})
		err = load.Sleep(filled, pollInterval)
	}
	err = group.Wait()
	return append(progress, sample{time.Now(), accepted.Load()}), err
}

// follow waits until so many events have arrived, or no more have arrived for stallTimeout.
func (e *environment) follow(ctx context.Context, events int64) (samples, error) {
	return e.followAt(ctx, e.receiver, events)
}

// followAt is follow, of a receiver or a service.
func (e *environment) followAt(ctx context.Context, receiver load.Control, events int64) (progress samples, err error) {
	last := time.Now()
	for {
		tally, err := receiver.Tally(ctx)
		if err != nil {
			return nil, err
		}
		now := time.Now()
		if len(progress) == 0 || tally.Distinct > progress.last().count {
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

// fate counts the lost, duplicated and disordered events of a test, and the keys left over, and
// returns them as cells.
func (e *environment) fate(ctx context.Context, t *test) (report.Row, error) {
	tally, err := e.receiver.Tally(ctx)
	if err != nil {
		return nil, err
	}
	lost := t.expected() - tally.Distinct
	e.report.Add(report.Lost, lost)
	e.report.Add(report.Duplicates, tally.Duplicates)
	e.report.Add(report.OutOfOrder, tally.OutOfOrder)
	e.report.Add(report.Unreadable, tally.Unreadable)
	row := report.Cells("lost", lost, "dup.", tally.Duplicates, "disord.", tally.OutOfOrder)
	if err := e.receiver.Relent(ctx); err != nil { // the refused batches go now
		return nil, err
	}
	if e.remote {
		return row, nil
	}
	left, err := e.leftOver(ctx)
	e.report.Add(report.LeftOver, left)
	return append(row, report.Cell{Name: "left", Value: left}), err
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

// samples are counts at times, in order.
type samples []sample

type sample struct {
	at    time.Time
	count int64
}

func (s samples) last() sample { return s[len(s)-1] }

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
	return s.last().at
}
