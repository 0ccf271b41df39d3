package bench

import (
	"context"
	"errors"
	"fmt"

	"routemaster/internal/bench/load"
	"routemaster/internal/bench/report"
	"routemaster/internal/bench/stack"
)

// trial is how something is measured.
type trial struct {
	publishers, subscribers int
	// array is how many events one request has; 0 is one event that is not in an array.
	array int
	// max and timeout, in ms, are those of the subscriptions.
	max, timeout int
	// rate is the requests due per second; 0 is a closed loop.
	rate float64
	// queue is how many events are published; 0 publishes as many as a window takes.
	queue int64
	// live says that a worker runs already, and delivers meanwhile. Else one is started, with these
	// settings, once everything is published.
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

// measurement is what a trial found. Rates are per second, in the window.
type measurement struct {
	load.Result
	// published and delivered are events, deliveries are requests.
	published, delivered, deliveries float64
	// tally is that at the end of the window.
	tally load.Tally
	// filled is how a queue was filled, drained how what was left was delivered.
	filled, drained samples
	// publishing is what was spent while events were published: in the window, or on all of a queue.
	// draining is what was spent after that.
	publishing, draining cost
	// fate is the cells that say what became of the events.
	fate report.Row
}

// run measures a trial, has everything delivered, and checks that nothing is lost or left over.
func (e *environment) run(ctx context.Context, how trial) (m measurement, err error) {
	t, err := e.prepare(ctx, how)
	if err != nil {
		return m, err
	}
	defer e.finish(ctx, t)
	if how.queue > 0 {
		err = e.publishQueue(ctx, t, &m)
	} else {
		err = e.publishWindow(ctx, t, &m)
	}
	if err != nil {
		return m, err
	}
	if err := e.drain(ctx, t, &m); err != nil {
		return m, err
	}
	if m.fate, err = e.fate(ctx, t); err != nil || how.live {
		return m, err
	}
	return m, e.stack.Stop(stack.Worker)
}

// publishQueue publishes the events of a queue as fast as they are answered.
func (e *environment) publishQueue(ctx context.Context, t *test, m *measurement) error {
	before, err := e.snapshot(ctx)
	if err != nil {
		return err
	}
	if m.filled, err = t.fill(ctx); err != nil {
		return err
	}
	after, err := e.snapshot(ctx)
	m.publishing = costOf(t.queue, before, after)
	return err
}

// publishWindow publishes for a window, and measures what happens in it.
func (e *environment) publishWindow(ctx context.Context, t *test, m *measurement) (err error) {
	var tally load.Tally
	var before, after snapshot
	finishProfile := func() error { return nil }
	l := load.Load{Senders: t.publishers.Senders(), Rate: t.rate, Window: e.size.Window}
	l.Begin = func() (err error) {
		finishProfile = e.profile(ctx, t)
		if tally, err = e.receiver.ClearLatency(ctx); err == nil {
			before, err = e.snapshot(ctx)
		}
		return err
	}
	l.End = func() (err error) {
		if after, err = e.snapshot(ctx); err == nil {
			m.tally, err = e.receiver.Tally(ctx)
		}
		return err
	}
	m.Result, err = l.Run(ctx)
	if err = errors.Join(err, finishProfile()); err != nil {
		return err
	}
	m.publishing = costOf(m.Requests*t.perRequest(), before, after)
	seconds := m.Took.Seconds()
	m.published = float64(m.publishing.events) / seconds
	m.delivered = float64(m.tally.Distinct-tally.Distinct) / seconds
	m.deliveries = float64(m.tally.Deliveries-tally.Deliveries) / seconds
	return nil
}

// drain has everything delivered that is left. A profile, if one is taken, is of the beginning.
func (e *environment) drain(ctx context.Context, t *test, m *measurement) error {
	before, err := e.snapshot(ctx)
	if err != nil {
		return err
	}
	if !t.live {
		if err := e.startWorker(ctx, t.worker...); err != nil {
			return err
		}
	}
	finishProfile := func() error { return nil }
	if t.queue > 0 {
		finishProfile = e.profile(ctx, t)
	}
	m.drained, err = e.follow(ctx, t.expected())
	if err = errors.Join(err, finishProfile()); err != nil {
		return err
	}
	after, err := e.snapshot(ctx)
	m.draining = costOf(t.queue, before, after)
	return err
}

func (e *environment) profile(ctx context.Context, t *test) (finish func() error) {
	return e.stack.Profile(ctx, e.table.Scenario, t.label(), e.size.Measured)
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

// snapshot is what the processes have used so far, and what Redis holds and has done.
type snapshot struct {
	usage map[string]stack.Usage
	redis stack.RedisStats
}

func (e *environment) snapshot(ctx context.Context) (s snapshot, err error) {
	if e.remote {
		return s, nil
	}
	s.usage = e.stack.Usage()
	s.redis, err = e.stack.RedisStats(ctx)
	return s, err
}

// cost is what was spent on a number of events.
type cost struct {
	events int64
	// cpu is the CPU time per event of each process, in µs. It is empty where that is not known.
	cpu map[string]float64
	// redis is what Redis has done, and the memory that it took in addition.
	redis stack.RedisStats
}

func costOf(events int64, before, after snapshot) cost {
	c := cost{events: events, cpu: map[string]float64{}, redis: stack.RedisStats{
		Memory:     after.redis.Memory - before.redis.Memory,
		Scripts:    after.redis.Scripts - before.redis.Scripts,
		ScriptTime: after.redis.ScriptTime - before.redis.ScriptTime,
	}}
	for name, u := range after.usage {
		c.cpu[name] = float64((u.CPU - before.usage[name].CPU).Microseconds()) / float64(max(1, events))
	}
	return c
}

// scriptCells are the events per run of a script, and the time of scripts per event. They are only
// meaningful while Redis does nothing but what is measured.
func (c cost) scriptCells() report.Row {
	return report.Cells("events/script", float64(c.events)/float64(c.redis.Scripts),
		"script µs/event", float64(c.redis.ScriptTime.Nanoseconds())/1000/float64(c.events))
}

// cpuCells are the CPU time of processes per event, in µs.
func (c cost) cpuCells(names ...string) (row report.Row) {
	for _, name := range names {
		cell := report.Cell{Name: name + " µs"}
		if µs, known := c.cpu[name]; known {
			cell.Value = µs
		}
		row = append(row, cell)
	}
	return row
}
