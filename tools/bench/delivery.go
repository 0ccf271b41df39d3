package main

import (
	"context"
	"fmt"
	"slices"

	"routemaster/tools/bench/report"
	"routemaster/tools/bench/stack"
)

// share is the part of the rate that web reaches at which end-to-end publishes.
const share = 0.7

// endToEnd measures the whole bus: publishes at a fixed rate, and deliveries at the same time.
func (e *environment) endToEnd(ctx context.Context) error {
	capacity, err := e.run(ctx, e.usual())
	if err != nil {
		return err
	}
	how := e.usual()
	how.live, how.rate = true, share*capacity.published
	e.table.Note("Due are %.0f/s, %.1f of the %.0f/s that %d publishers reach with 1 subscriber and no worker; "+
		"latency counts from when an event was due.", how.rate, share, capacity.published, usualPublishers)
	if !e.remote {
		e.table.Note("POSTs are the same deliveries straight to the receiver on 1 connection; ÷ is to the faster protocol.")
	}
	if err := e.startWorker(ctx); err != nil {
		return err
	}
	for _, batch := range e.size.maxes {
		how.max = batch
		base, err := e.postBaseline(ctx, 1, how.max)
		if err != nil {
			return err
		}
		for _, timeout := range e.size.timeouts {
			how.timeout = timeout
			m, err := e.run(ctx, how)
			if err != nil {
				return err
			}
			e.addEndToEnd(how, base, m)
		}
	}
	if e.remote {
		return nil
	}
	if err := e.stack.Stop(stack.Worker); err != nil {
		return err
	}
	for _, deliveries := range []int{1, usualPublishers} {
		if err := e.oneByOne(ctx, deliveries); err != nil {
			return err
		}
	}
	return nil
}

func (e *environment) addEndToEnd(how trial, base postBaseline, m measurement) {
	row := report.Cells("max", how.max, "timeout", how.timeout, "due/s", how.rate, "published/s", m.published,
		"delivered/s", m.delivered, "÷ due", m.delivered/how.rate, "deliveries/s", m.deliveries)
	latency := report.Cells("p50 ms", m.tally.P50, "p99 ms", m.tally.P99)
	if e.remote {
		e.table.Add(row, latency, m.fate)
	} else {
		e.table.Add(row, base.cells(m.deliveries), latency,
			m.publishing.CPUCells(stack.Web, stack.Redis, stack.Worker, stack.Receiver, stack.Load), m.fate)
	}
	if how.max == usualMax {
		e.report.SetMin(report.KeepingUp, m.delivered/how.rate)
	}
}

// oneByOne measures deliveries of one event each from a queue, with so many in flight. Nothing is
// published meanwhile, so the host does nothing else, as while the baseline is measured.
func (e *environment) oneByOne(ctx context.Context, deliveries int) error {
	base, err := e.postBaseline(ctx, deliveries, 1)
	if err != nil {
		return err
	}
	how := e.queued(e.size.queue)
	how.max, how.timeout = 1, 0
	how.worker = inFlight(deliveries)
	m, err := e.run(ctx, how)
	if err != nil {
		return err
	}
	rate := m.drained.Rate(how.queue/10, how.queue)
	e.table.Add(report.Cells("from a queue, in flight", deliveries, "max", 1, "deliveries/s", rate), base.cells(rate),
		m.draining.CPUCells(stack.Redis, stack.Worker, stack.Receiver), m.draining.ScriptCells(), m.fate)
	figure := report.Deliver16
	if deliveries == 1 {
		figure = report.Deliver
	}
	e.report.Set(figure, rate/base.best())
	return nil
}

// inFlight has a worker send a subscriber so many deliveries at a time.
func inFlight(deliveries int) (settings []string) {
	return []string{fmt.Sprintf("ROUTEMASTER_SUBSCRIBER_DELIVERIES=%d", deliveries)}
}

// openLoop measures the latency of events at fixed rates.
func (e *environment) openLoop(ctx context.Context) error {
	if err := e.startWorker(ctx); err != nil {
		return err
	}
	for _, rate := range e.size.rates {
		how := e.usual()
		how.live, how.timeout, how.rate = true, 0, rate
		m, err := e.run(ctx, how)
		if err != nil {
			return err
		}
		e.table.Add(report.Cells("events/s", rate, "published/s", m.published, "delivered/s", m.delivered,
			"p50 ms", m.tally.P50, "p99 ms", m.tally.P99, "p99.9 ms", m.tally.P999, "max ms", m.tally.Max),
			m.responses("answer "), m.fate)
		if rate == 1000 {
			e.report.Set(report.P50, m.tally.P50)
			e.report.Set(report.P99, m.tally.P99)
		}
	}
	return nil
}

// besideRefusals measures the latency of a subscriber's events without and beside batches that it
// refuses. The batches that are refused are tried again and again meanwhile. A host that is busy
// for some 10 ms changes a p99 more than these do, so the two are measured in turns, and their
// medians count.
func (e *environment) besideRefusals(ctx context.Context) error {
	if err := e.startWorker(ctx); err != nil {
		return err
	}
	how := e.usual()
	how.live, how.max, how.timeout, how.rate = true, 1, 0, slices.Max(e.size.rates)
	var p99 [2][]float64 // without, beside
	for range e.size.pairs {
		for i, refused := range []int{0, e.size.refused} {
			how.refused = refused
			m, err := e.run(ctx, how)
			if err != nil {
				return err
			}
			e.table.Add(report.Cells("refused", how.refused, "refusals", m.tally.Refusals, "events/s", how.rate,
				"delivered/s", m.delivered, "p50 ms", m.tally.P50, "p99 ms", m.tally.P99, "max ms", m.tally.Max), m.fate)
			p99[i] = append(p99[i], m.tally.P99)
		}
	}
	slices.Sort(p99[0])
	slices.Sort(p99[1])
	e.report.Set(report.Refusals, p99[1][e.size.pairs/2]/p99[0][e.size.pairs/2])
	return nil
}
