package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"routemaster/internal/bench/load"
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
}

// usual is the trial of a scenario that tries nothing else.
func (e *environment) usual() trial {
	return trial{publishers: usualPublishers, subscribers: 1, max: usualMax, timeout: e.size.timeout}
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

// test is a trial under way.
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

// finish disconnects. It removes the topic from a remote bus.
func (e *environment) finish(ctx context.Context, t *test) {
	t.publishers.Close()
	if e.remote {
		if bus, err := e.as(e.publisher); err == nil {
			_ = bus.DeleteTopic(context.WithoutCancel(ctx), t.topic) // it may not exist
		}
	}
}

// measurement is what was measured in a window. Rates are per second.
type measurement struct {
	load.Result
	// published and delivered are events, deliveries are requests.
	published, delivered, deliveries float64
	cost
	// tally is of the whole run, its latencies are of the window.
	tally load.Tally
}

// runTrial measures a trial, then has everything delivered, and returns the cells that say what
// became of the events.
func (e *environment) runTrial(ctx context.Context, how trial, deliver func(context.Context, *test) (Row, error)) (
	m measurement, fate Row, err error) {
	t, err := e.prepare(ctx, how)
	if err != nil {
		return m, nil, err
	}
	defer e.finish(ctx, t)
	if m, err = e.measure(ctx, t); err != nil {
		return m, nil, err
	}
	fate, err = deliver(ctx, t)
	return m, fate, err
}

// measure runs the publishers of a test through a window.
func (e *environment) measure(ctx context.Context, t *test) (m measurement, err error) {
	var tally load.Tally
	var before, after snapshot
	finishProfile := func() error { return nil }
	l := load.Load{Senders: t.publishers.Senders(), Rate: t.rate, Window: e.size.Window}
	l.Begin = func() (err error) {
		finishProfile = e.profile(ctx, t.label(), e.size.Measured)
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
		return m, err
	}
	m.cost = costOf(m.Requests*t.perRequest(), before, after)
	seconds := m.Took.Seconds()
	m.published = float64(m.events) / seconds
	m.delivered = float64(m.tally.Distinct-tally.Distinct) / seconds
	m.deliveries = float64(m.tally.Deliveries-tally.Deliveries) / seconds
	return m, nil
}

func (e *environment) profile(ctx context.Context, label string, length time.Duration) (finish func() error) {
	return e.stack.Profile(ctx, e.table.Scenario, label, length)
}

// responses are the cells of the latency of the responses, under names with a prefix.
func (m measurement) responses(prefix string) Row {
	return Row{{prefix + "p50 ms", m.Latency.Percentile(50)}, {prefix + "p99 ms", m.Latency.Percentile(99)}}
}

// snapshot is what the processes have used so far, and Redis has done.
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
	// scripts are those that Redis has run for all events, which took scriptTime.
	scripts    int64
	scriptTime time.Duration
}

func costOf(events int64, before, after snapshot) cost {
	c := cost{events: events, cpu: map[string]float64{}}
	c.scripts = after.redis.Scripts - before.redis.Scripts
	c.scriptTime = after.redis.ScriptTime - before.redis.ScriptTime
	for name, u := range after.usage {
		c.cpu[name] = float64((u.CPU - before.usage[name].CPU).Microseconds()) / float64(max(1, events))
	}
	return c
}

// scriptCells are the events per run of a script, and the time of scripts per event. They are only
// meaningful while Redis does nothing but what is measured.
func (c cost) scriptCells() Row {
	return Row{{"events/script", float64(c.events) / float64(c.scripts)},
		{"script µs/event", float64(c.scriptTime.Nanoseconds()) / 1000 / float64(c.events)}}
}

// cpuCells are the CPU time of processes per event, in µs.
func (c cost) cpuCells(names ...string) (row Row) {
	for _, name := range names {
		cell := Cell{name + " µs", nil}
		if µs, known := c.cpu[name]; known {
			cell.Value = µs
		}
		row = append(row, cell)
	}
	return row
}
