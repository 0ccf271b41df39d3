package bench

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// outcome is what a test found in its interval. Rates are per second.
type outcome struct {
	answered
	// published and delivered are events, deliveries are requests.
	published, delivered, deliveries float64
	// events are those published, of all.
	events int64
	// cpu is in µs per event published, by process.
	cpu map[string]float64
	// scripts is what Redis spent in scripts, of all.
	scripts scripts
	// tally is of the whole run, its latencies of the interval.
	tally Tally
}

// runTrial measures a trial, has all of it delivered, and says what became of every event.
func (s *site) runTrial(ctx context.Context, how trial, deliver func(context.Context, *test) (Row, error)) (o outcome, followed Row, err error) {
	t, err := s.prepare(ctx, how)
	if err != nil {
		return o, nil, err
	}
	defer s.close(ctx, t)
	if o, err = s.measure(ctx, t); err != nil {
		return o, nil, err
	}
	followed, err = deliver(ctx, t)
	return o, followed, err
}

// measure runs a test's publishers through a window.
func (s *site) measure(ctx context.Context, t *test) (o outcome, err error) {
	var before Tally
	var from, to map[string]usage
	var scriptsBefore, scriptsAfter scripts
	l := load{senders: senders(t.clients), rate: t.rate, window: s.size.window}
	profiled := func() error { return nil }
	l.begin = func() (err error) {
		profiled = s.during(ctx, t.label(), s.size.measured)
		if err = s.receiver.clearLatency(ctx); err == nil {
			before, err = s.receiver.tally(ctx)
		}
		if err == nil {
			from, scriptsBefore, err = s.spent()
		}
		return err
	}
	l.end = func() (err error) {
		if to, scriptsAfter, err = s.spent(); err == nil {
			o.tally, err = s.receiver.tally(ctx)
		}
		return err
	}
	o.answered, err = l.run(ctx)
	if err = errors.Join(err, profiled()); err != nil {
		return o, err
	}
	events := o.requests * t.perRequest()
	seconds := o.took.Seconds()
	o.published = float64(events) / seconds
	o.delivered = float64(o.tally.Distinct-before.Distinct) / seconds
	o.deliveries = float64(o.tally.Deliveries-before.Deliveries) / seconds
	o.cpu = cpuPer(events, from, to)
	o.scripts = scriptsAfter.since(scriptsBefore)
	o.events = events
	return o, nil
}

// spent is what the processes have taken so far, and the scripts in Redis.
func (s *site) spent() (map[string]usage, scripts, error) {
	if s.own == nil {
		return nil, scripts{}, nil
	}
	conn, err := dialRedis(context.Background(), s.own.redis)
	if err != nil {
		return nil, scripts{}, err
	}
	defer conn.close()
	ran, err := conn.scripts()
	return s.own.usage(), ran, err
}

// scriptCells are how many events there were to a run of a script, and what the scripts took for each, while nothing else is done than
// what is measured.
func (o outcome) scriptCells() Row {
	return Row{{"events/script", float64(o.events) / float64(o.scripts.calls)},
		{"script µs/event", float64(o.scripts.time.Nanoseconds()) / 1000 / float64(o.events)}}
}

// answers are the cells of the latency of the answers, under names that begin so.
func (o outcome) answers(prefix string) Row {
	ms := func(quantile float64) float64 { return float64(o.latency.ValueAtQuantile(quantile)) / 1000 }
	return Row{{prefix + "p50 ms", ms(50)}, {prefix + "p99 ms", ms(99)}}
}

// cpuCells are the CPU time of processes, in µs per event published, if it is known.
func (o outcome) cpuCells(names ...string) (row Row) {
	for _, name := range names {
		cell := Cell{name + " µs", nil}
		if per, known := o.cpu[name]; known {
			cell.Value = per
		}
		row = append(row, cell)
	}
	return row
}

// samples are counts at times, in order.
type samples []sample

type sample struct {
	at    time.Time
	count int64
}

// rate is how many a second came, from one count to another.
func (s samples) rate(from, to int64) float64 {
	return float64(to-from) / s.reached(to).Sub(s.reached(from)).Seconds()
}

// reached is when a count was reached, between two samples if need be.
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

// after is the first sample's time with more than a count.
func (s samples) after(count int64) time.Time {
	for _, next := range s {
		if next.count > count {
			return next.at
		}
	}
	return s[len(s)-1].at
}

// fill publishes so many events as fast as they are answered, and returns how that went.
func (t *test) fill(ctx context.Context, events int64) (progress samples, err error) {
	var begun, answered atomic.Int64
	group, ctx := errgroup.WithContext(ctx)
	filled, done := context.WithCancel(ctx)
	defer done()
	for _, c := range t.clients {
		group.Go(func() error {
			for begun.Add(t.perRequest()) <= events {
				if err := c.send(time.Now()); err != nil {
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
		err = sleep(filled, pollEvery)
	}
	err = group.Wait()
	return append(progress, sample{time.Now(), answered.Load()}), err
}
