package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"routemaster/tools/bench/load"
	"routemaster/tools/bench/report"
	"routemaster/tools/bench/stack"
)

// trial is how to publish, subscribe and deliver in one measurement.
type trial struct {
	publishers, subscribers int
	// array is how many events one request has; 0 is one event that is not in an array.
	array int
	// max and timeout, in ms, are options of the subscriptions.
	max, timeout int
	// rate is the requests due per second; 0 is a closed loop.
	rate float64
	// refused is how many batches, of one event each, the subscribers have refused before.
	refused int
	// queue is how many events are published; 0 publishes as many as a window takes.
	queue int64
	// window is how long is measured, if not as long as usual.
	window load.Window
	// distance, if set, is how far the first subscriber is from the topic's home, on a cluster.
	distance *stack.Distance
	// live means that a worker runs already, and delivers meanwhile. If not, one is started with these
	// settings once everything is published.
	live   bool
	worker []string
}

// perRequest is how many events one request has.
func (t trial) perRequest() int64 { return int64(max(1, t.array)) }

// label names a trial in the names of profiles.
func (t trial) label() string {
	label := fmt.Sprintf("%d-to-%d", t.publishers, t.subscribers)
	if t.array > 0 {
		label += fmt.Sprintf("-array-%d", t.array)
	}
	return label + fmt.Sprintf("-max-%d-timeout-%d", t.max, t.timeout)
}

// measurement is the result of a trial. Rates are per second, in the window.
type measurement struct {
	load.Result
	// published and delivered are events, deliveries are requests.
	published, delivered, deliveries float64
	// tally is the receiver's at the end of the window.
	tally load.Tally
	// filled is the progress of filling a queue, drained of delivering the remaining events.
	filled, drained load.Samples
	// publishing is the cost of the window, or of filling the queue. draining is the cost after that.
	publishing, draining stack.Cost
	// fate has the cells with the numbers of lost, duplicated and disordered events.
	fate report.Row
}

// run measures a trial, has everything delivered, and checks that nothing is lost or left over.
func (e *environment) run(ctx context.Context, how trial) (m measurement, err error) {
	t, err := e.prepare(ctx, how)
	if err != nil {
		return m, err
	}
	defer e.finish(ctx, t)
	if err := e.refuse(ctx, t); err != nil {
		return m, err
	}
	publish := e.publishWindow
	if how.queue > 0 {
		publish = e.publishQueue
	}
	if err := publish(ctx, t, &m); err != nil {
		return m, err
	}
	if m.draining, err = e.stack.Spend(ctx, func() error { return e.drain(ctx, t, &m) }); err != nil {
		return m, err
	}
	m.draining.Events = t.publishers.Sent()
	if m.fate, err = e.fate(ctx, t); err != nil || how.live {
		return m, err
	}
	return m, e.stack.Stop(stack.Worker)
}

// publishQueue publishes the events of a queue as fast as the bus accepts them.
func (e *environment) publishQueue(ctx context.Context, t *test, m *measurement) (err error) {
	m.publishing, err = e.stack.Spend(ctx, func() (err error) {
		m.filled, err = t.publishers.Fill(ctx, t.queue)
		return err
	})
	m.publishing.Events = t.queue
	return err
}

// publishWindow publishes for a window, and measures during it.
func (e *environment) publishWindow(ctx context.Context, t *test, m *measurement) (err error) {
	var before load.Tally
	finishProfile := func() error { return nil }
	l := load.Load{Senders: t.publishers.Senders(), Rate: t.rate, Window: cmp.Or(t.window, e.size.Window)}
	l.Around = func(measure func() error) (err error) {
		finishProfile = e.profile(ctx, t)
		if before, err = e.receiver.ClearLatency(ctx); err != nil {
			return err
		}
		if m.publishing, err = e.stack.Spend(ctx, measure); err != nil {
			return err
		}
		m.tally, err = e.receiver.Tally(ctx)
		return err
	}
	m.Result, err = l.Run(ctx)
	if err = errors.Join(err, finishProfile()); err != nil {
		return err
	}
	m.publishing.Events = m.Requests * t.perRequest()
	seconds := m.Took.Seconds()
	m.published = float64(m.publishing.Events) / seconds
	m.delivered = float64(m.tally.Distinct-before.Distinct) / seconds
	m.deliveries = float64(m.tally.Deliveries-before.Deliveries) / seconds
	return nil
}

// drain waits until the remaining events are delivered. A profile, if one is taken, is of the
// beginning.
func (e *environment) drain(ctx context.Context, t *test, m *measurement) (err error) {
	if !t.live {
		if err := e.startWorker(ctx, t.worker...); err != nil {
			return err
		}
	}
	finishProfile := func() error { return nil }
	if t.queue > 0 {
		finishProfile = e.profile(ctx, t)
	}
	m.drained, err = e.stack.Follow(ctx, e.receiver, t.expected())
	return errors.Join(err, finishProfile())
}

func (e *environment) profile(ctx context.Context, t *test) (finish func() error) {
	return e.stack.Profile(ctx, e.table.Scenario+e.suffix(), t.label(), e.size.Measured)
}

// startWorker starts a worker. A remote bus has its own.
func (e *environment) startWorker(ctx context.Context, settings ...string) error {
	if e.remote {
		return nil
	}
	return e.stack.StartWorker(ctx, settings...)
}

// responses are the cells of the latency of the responses, under names with a prefix.
func (m measurement) responses(prefix string) report.Row {
	return report.Cells(prefix+"p50 ms", m.Latency.Percentile(50), prefix+"p99 ms", m.Latency.Percentile(99))
}
