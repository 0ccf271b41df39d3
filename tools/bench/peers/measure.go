package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"routemaster/tools/bench/load"
	"routemaster/tools/bench/stack"
)

// publishers is how many publish at once.
const publishers = 16

// figures are the results of a measure in one turn.
type figures struct {
	// rate is per second, and cpu the time in µs that one takes of all programs but the publishers and
	// the receiver.
	rate, cpu float64
	// others is the part of the host's CPU, in %, that programs of others used meanwhile.
	others float64
	// lost and disordered are events.
	lost, disordered int64
}

// measure is something to measure of a system.
type measure struct {
	name, about string
	// batch is how many events a subscriber of ours gets in a delivery.
	batch int
	run   func(ctx context.Context, s *site, o options) (figures, error)
}

const (
	publishing = "publish"
	drainOne   = "drain, 1 at a time"
	drainMany  = "drain, 32 at a time"
	endToEnd   = "end to end, 32 at a time"
	many       = 32
)

var measures = []measure{
	{publishing, "events published by 16 publishers, one in a request, for deliveries of 100 (ours) or 1; " +
		"nothing is delivered meanwhile", 100, publish},
	{drainOne, "deliveries of one event each from a queue; nothing is published meanwhile", 1, drain(1)},
	{drainMany, "the same", 1, drain(many)},
	{endToEnd, "events published and delivered, one in a request, by 16 publishers, until the last is delivered", 1, both},
}

// once measures something of a system that is started for it.
func once(ctx context.Context, what measure, of system, o options) (f figures, err error) {
	s, err := of.open(ctx, what.batch)
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	if err := load.Control(s.Control).Begin(ctx, prefix); err != nil {
		return f, err
	}
	f, err = what.run(ctx, s, o)
	return f, errors.Join(err, s.Err())
}

// publish measures publishes for a while, after a quarter of it.
func publish(ctx context.Context, s *site, o options) (f figures, err error) {
	all, err := load.Connect(ctx, s.target, publishers)
	if err != nil {
		return f, err
	}
	defer all.Close()
	var m meter
	l := load.Load{Senders: all.Senders(), Window: load.Window{WarmUp: o.duration / 4, Measured: o.duration}}
	l.Around = func(run func() error) error {
		m.start(s)
		defer m.stop(s)
		return run()
	}
	got, err := l.Run(ctx)
	return m.figures(got.PerSecond(), got.Requests), err
}

// drain measures deliveries from a queue, from when a tenth is delivered.
func drain(inFlight int) func(context.Context, *site, options) (figures, error) {
	return func(ctx context.Context, s *site, o options) (f figures, err error) {
		all, err := load.Connect(ctx, s.target, publishers)
		if err != nil {
			return f, err
		}
		defer all.Close()
		if _, err := all.Fill(ctx, o.events); err != nil {
			return f, err
		}
		if err := s.deliver(ctx, inFlight); err != nil {
			return f, err
		}
		return s.follow(ctx, o.events/10, o.events)
	}
}

// both measures events that are published and delivered at the same time, once everything runs and
// has delivered a tenth of them.
func both(ctx context.Context, s *site, o options) (f figures, err error) {
	if err := s.deliver(ctx, many); err != nil {
		return f, err
	}
	all, err := load.Connect(ctx, s.target, publishers)
	if err != nil {
		return f, err
	}
	defer all.Close()
	warmUp := o.events / 10
	if _, err := all.Fill(ctx, warmUp); err != nil {
		return f, err
	}
	if _, err := s.Follow(ctx, load.Control(s.Control), warmUp); err != nil {
		return f, err
	}
	filled := make(chan error, 1)
	go func() {
		_, err := all.Fill(ctx, o.events)
		filled <- err
	}()
	f, err = s.follow(ctx, warmUp, warmUp+o.events)
	return f, errors.Join(err, <-filled)
}

// follow measures deliveries from when so many events have come until all have.
func (s *site) follow(ctx context.Context, from, to int64) (f figures, err error) {
	receiver := load.Control(s.Control)
	if _, err := s.Follow(ctx, receiver, from); err != nil {
		return f, err
	}
	var m meter
	m.start(s)
	progress, err := s.Follow(ctx, receiver, to)
	m.stop(s)
	if err != nil {
		return f, err
	}
	tally, err := receiver.Tally(ctx)
	first, last := progress[0].Count, progress.Last().Count
	f = m.figures(progress.Rate(first, last), last-first)
	f.lost, f.disordered = to-tally.Distinct+tally.Unreadable, tally.OutOfOrder
	return f, err
}

// meter measures CPU time between a start and a stop.
type meter struct{ before, after reading }

// reading is CPU time until now: of the programs that are measured, of all that this one has
// started and itself, and of the host, in all and busy.
type reading struct{ measured, ours, busy, total time.Duration }

func (m *meter) start(s *site) { m.before = read(s) }
func (m *meter) stop(s *site)  { m.after = read(s) }

func (m *meter) figures(rate float64, events int64) figures {
	a, b := m.after, m.before
	others := (a.busy - b.busy) - (a.ours - b.ours)
	return figures{
		rate: rate, cpu: float64((a.measured - b.measured).Microseconds()) / float64(max(1, events)),
		others: max(0, 100*others.Seconds()/max(time.Millisecond, a.total-b.total).Seconds()),
	}
}

func read(s *site) (r reading) {
	for name, u := range s.Usage() {
		r.ours += u.CPU
		if !slices.Contains([]string{stack.Load, stack.Receiver, stack.Noop}, name) {
			r.measured += u.CPU
		}
	}
	r.busy, r.total = stack.HostUsage()
	return r
}

func (f figures) String() string {
	return fmt.Sprintf("%.0f/s, %.0f µs, others %.0f %%", f.rate, f.cpu, f.others)
}
