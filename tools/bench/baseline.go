package main

import (
	"context"
	"strconv"

	"routemaster/tools/bench/load"
	"routemaster/tools/bench/report"
	"routemaster/tools/bench/stack"
)

// publishBaseline is the baseline of publishing: requests per second to a no-op handler, its CPU
// time for each in µs if known, and values per second by RPUSH.
type publishBaseline struct {
	noop, rpush float64
	noopCPU     report.Row
}

// publishBaseline measures the baseline of so many publishers with an array; of RPUSH, on as many
// connections with pipelines of as many values. A remote bus has none.
func (e *environment) publishBaseline(ctx context.Context, publishers, array int) (b publishBaseline, err error) {
	if e.remote {
		return b, nil
	}
	if b.noop, b.noopCPU, err = e.noop(ctx, publishers, array); err == nil {
		b.rpush, err = e.rpush(ctx, publishers, max(1, array))
	}
	return b, err
}

func (e *environment) noop(ctx context.Context, publishers, array int) (perSecond float64, cpu report.Row, err error) {
	connected, err := load.Connect(ctx, e.target("http://"+e.stack.Noop, "bench_noop", array), publishers)
	if err != nil {
		return 0, nil, err
	}
	defer connected.Close()
	got, spent, err := e.stack.Run(ctx, load.Load{Senders: connected.Senders(), Window: e.size.baselineWindow()})
	return got.PerSecond(), spent.CPUCells(stack.Noop), err
}

// rpush measures how many values, of a packed event's size, Redis takes per second.
func (e *environment) rpush(ctx context.Context, connections, pipeline int) (float64, error) {
	l := load.Load{Window: e.size.baselineWindow()}
	for i := range connections {
		p, err := load.NewPusher(ctx, e.stack.Redis, "baseline:"+strconv.Itoa(i), int(e.packed), pipeline)
		if err != nil {
			return 0, err
		}
		defer p.Close()
		l.Senders = append(l.Senders, p.Send)
	}
	got, err := l.Run(ctx)
	return got.PerSecond() * float64(pipeline), err
}

// postBaseline is the baseline of deliveries: the same POSTs straight to the receiver, per second.
type postBaseline struct{ http1, http2 float64 }

// best is the rate of the faster protocol.
func (b postBaseline) best() float64 { return max(b.http1, b.http2) }

// cells compares a rate of deliveries with the baseline.
func (b postBaseline) cells(deliveries float64) report.Row {
	return report.Cells("POST/s h1", b.http1, "POST/s h2", b.http2, "÷ POST", deliveries/b.best())
}

// postBaseline measures deliveries, given the events of each and the number of connections. A
// remote bus has no baseline.
func (e *environment) postBaseline(ctx context.Context, connections, events int) (b postBaseline, err error) {
	if e.remote {
		return b, nil
	}
	if b.http1, err = e.posts(ctx, connections, events, false); err == nil {
		b.http2, err = e.posts(ctx, connections, events, true)
	}
	return b, err
}

func (e *environment) posts(ctx context.Context, connections, events int, http2 bool) (float64, error) {
	run := e.nextRun()
	if err := e.receiver.Begin(ctx, run.prefix); err != nil {
		return 0, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // which closes the connections
	l := load.Load{Window: e.size.baselineWindow()}
	l.Senders = load.Posts(ctx, e.callback+run.path(0), connections, events, http2)
	got, err := l.Run(ctx)
	return got.PerSecond(), err
}
