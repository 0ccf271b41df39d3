package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"routemaster/internal/bench/stack"
)

// share is how much of what web takes is published while deliveries are measured.
const share = 0.7

// endToEnd is events on their way through the whole bus.
func (e *environment) endToEnd(ctx context.Context) error {
	capacity, _, err := e.runTrial(ctx, e.usual(), e.deliverAll)
	if err != nil {
		return err
	}
	rate := capacity.published
	e.table.note("Due are %.0f/s, %.1f of the %.0f/s that %d publishers reach with 1 subscriber and no worker; "+
		"latency counts from when an event was due.", share*rate, share, rate, usualPublishers)
	if !e.remote {
		e.table.note("POSTs are the same deliveries straight to the receiver on 1 connection; ÷ is to the faster protocol.")
		if err := e.stack.StartWorker(ctx); err != nil {
			return err
		}
	}
	for _, batch := range e.size.maxes {
		base, err := e.postBaseline(ctx, 1, batch)
		if err != nil {
			return err
		}
		for _, timeout := range e.size.timeouts {
			how := e.usual()
			how.max, how.timeout, how.rate = batch, timeout, share*rate
			if err := e.endToEndRow(ctx, how, base); err != nil {
				return err
			}
		}
	}
	if e.remote {
		return nil
	}
	if err := e.stack.Stop(stack.Worker); err != nil {
		return err
	}
	for _, inFlight := range []int{1, usualPublishers} {
		if err := e.oneByOne(ctx, inFlight); err != nil {
			return err
		}
	}
	return nil
}

func (e *environment) endToEndRow(ctx context.Context, how trial, base postBaseline) error {
	m, fate, err := e.runTrial(ctx, how, e.awaitAll)
	if err != nil {
		return err
	}
	row := Row{{"max", how.max}, {"timeout", how.timeout}, {"due/s", how.rate}, {"published/s", m.published},
		{"delivered/s", m.delivered}, {"÷ due", m.delivered / how.rate}, {"deliveries/s", m.deliveries}}
	latency := Row{{"p50 ms", m.tally.P50}, {"p99 ms", m.tally.P99}}
	if e.remote {
		e.table.add(row, latency, fate)
	} else {
		e.table.add(row, base.cells(m.deliveries), latency,
			m.cpuCells(stack.Web, stack.Redis, stack.Worker, stack.Receiver, stack.Load), fate)
	}
	if how.max == usualMax {
		e.report.keepMin(figureKeepingUp, m.delivered/how.rate)
	}
	return nil
}

// oneByOne is deliveries of one event each from a queue, with so many in flight, while nobody
// publishes: the host does nothing else, just as while the baseline is measured.
func (e *environment) oneByOne(ctx context.Context, inFlight int) error {
	base, err := e.postBaseline(ctx, inFlight, 1)
	if err != nil {
		return err
	}
	how := trial{publishers: usualPublishers, subscribers: 1, array: usualArray, max: 1}
	t, err := e.prepareFilled(ctx, how, e.size.queue)
	if err != nil {
		return err
	}
	defer e.finish(ctx, t)
	before, err := e.snapshot(ctx)
	if err != nil {
		return err
	}
	label := fmt.Sprintf("queue-in-flight-%d", inFlight)
	progress, err := e.drain(ctx, t, label, time.Second, fmt.Sprintf("ROUTEMASTER_SUBSCRIBER_DELIVERIES=%d", inFlight))
	if err != nil {
		return err
	}
	after, err := e.snapshot(ctx)
	if err != nil {
		return err
	}
	fate, err := e.fate(ctx, t)
	if err != nil {
		return err
	}
	c, rate := costOf(e.size.queue, before, after), progress.rate(e.size.queue/10, e.size.queue)
	e.table.add(Row{{"from a queue, in flight", inFlight}, {"max", 1}, {"deliveries/s", rate}}, base.cells(rate),
		c.cpuCells(stack.Redis, stack.Worker, stack.Receiver), c.scriptCells(), fate)
	figure := figureDeliver16
	if inFlight == 1 {
		figure = figureDeliver
	}
	e.report.set(figure, rate/base.best())
	return e.stack.Stop(stack.Worker)
}

// prepareFilled prepares a test, and fills its queue with so many events.
func (e *environment) prepareFilled(ctx context.Context, how trial, events int64) (*test, error) {
	t, err := e.prepare(ctx, how)
	if err != nil {
		return nil, err
	}
	if _, err := t.fill(ctx, events); err != nil {
		e.finish(ctx, t)
		return nil, err
	}
	return t, nil
}

// drain starts a worker with settings, which delivers the queue of a test. The profile, if one is
// taken, is of the first part of that.
func (e *environment) drain(ctx context.Context, t *test, label string, profiled time.Duration, settings ...string) (samples, error) {
	if err := e.stack.StartWorker(ctx, settings...); err != nil {
		return nil, err
	}
	finishProfile := e.profile(ctx, label, profiled)
	progress, err := e.follow(ctx, t.expected())
	return progress, errors.Join(err, finishProfile())
}

// openLoop is the latency of events at fixed rates.
func (e *environment) openLoop(ctx context.Context) error {
	if !e.remote {
		if err := e.stack.StartWorker(ctx); err != nil {
			return err
		}
	}
	for _, rate := range e.size.rates {
		how := e.usual()
		how.timeout, how.rate = 0, rate
		m, fate, err := e.runTrial(ctx, how, e.awaitAll)
		if err != nil {
			return err
		}
		e.table.add(Row{{"events/s", rate}, {"published/s", m.published}, {"delivered/s", m.delivered},
			{"p50 ms", m.tally.P50}, {"p99 ms", m.tally.P99}, {"p99.9 ms", m.tally.P999}, {"max ms", m.tally.Max}},
			m.responses("answer "), fate)
		if rate == 1000 {
			e.report.set(figureP50, m.tally.P50)
			e.report.set(figureP99, m.tally.P99)
		}
	}
	return nil
}
