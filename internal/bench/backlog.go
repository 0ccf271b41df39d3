package bench

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"routemaster/internal/bench/stack"
)

// bulkTrial is how a queue is filled.
func (e *environment) bulkTrial() trial {
	how := e.usual()
	how.array = usualArray
	return how
}

// backlog fills a queue and drains it, and gives the rate of each tenth.
func (e *environment) backlog(ctx context.Context) error {
	for _, events := range e.size.backlogs {
		if err := e.oneBacklog(ctx, events); err != nil {
			return err
		}
	}
	return nil
}

func (e *environment) oneBacklog(ctx context.Context, events int64) error {
	t, err := e.prepare(ctx, e.bulkTrial())
	if err != nil {
		return err
	}
	defer e.finish(ctx, t)
	before, err := e.stack.RedisStats(ctx)
	if err != nil {
		return err
	}
	filled, err := t.fill(ctx, events)
	if err != nil {
		return err
	}
	t.publishers.Close() // their buffers in web are not the backlog's
	after, err := e.stack.RedisStats(ctx)
	if err != nil {
		return err
	}
	drained, err := e.drain(ctx, t, "drain", e.size.Measured)
	if err != nil {
		return err
	}
	fate, err := e.fate(ctx, t)
	if err != nil {
		return err
	}
	each := float64(after.Memory-before.Memory) / float64(events)
	e.report.set(figureFill, e.tenths("filled", events, filled))
	e.report.set(figureDrain, e.tenths("drained", events, drained))
	e.report.set(figureMemory, each/float64(e.packed))
	e.report.set(figureBacklogSize, float64(events))
	e.table.add(Row{{"events", events}, {"bytes/event", each}, {"packed bytes", e.packed}, {"÷ packed", each / float64(e.packed)}}, fate)
	return e.stack.Stop(stack.Worker)
}

// tenths adds a row of the rate of each tenth, and returns the ratio of the last to the first.
func (e *environment) tenths(what string, events int64, progress samples) (ratio float64) {
	row := Row{{"events", events}, {"per s", what}}
	var rates [10]float64
	for n := range int64(10) {
		rates[n] = progress.rate(max(1, n*events/10), (n+1)*events/10)
		row = append(row, Cell{strconv.FormatInt(n+1, 10), rates[n]})
	}
	ratio = rates[9] / rates[0]
	e.table.add(append(row, Cell{"last ÷ first", ratio}))
	return ratio
}

// fanOut is one topic with very many subscribers.
func (e *environment) fanOut(ctx context.Context) error {
	if err := e.stack.StartWorker(ctx, fmt.Sprintf("ROUTEMASTER_WORKER_THREADS=%d", e.size.threads)); err != nil {
		return err
	}
	rpush, err := e.rpush(ctx, usualPublishers, 1)
	if err != nil {
		return err
	}
	var drained time.Duration
	how := e.usual()
	how.subscribers = e.size.fanOut
	m, fate, err := e.runTrial(ctx, how, func(ctx context.Context, t *test) (Row, error) {
		began := time.Now()
		_, err := e.follow(ctx, t.expected())
		drained = time.Since(began)
		if err != nil {
			return nil, err
		}
		return e.fate(ctx, t)
	})
	if err != nil {
		return err
	}
	insertions := m.published * float64(e.size.fanOut)
	e.table.add(Row{{"subscribers", e.size.fanOut}, {"threads", e.size.threads}, {"publishes/s", m.published},
		{"insertions/s", insertions}, {"RPUSH/s", rpush}, {"÷ RPUSH", insertions / rpush},
		{"delivered/s", m.delivered}, {"deliveries/s", m.deliveries}, {"rest in s", drained.Seconds()}},
		m.responses(""), m.cpuCells(stack.Web, stack.Redis, stack.Worker, stack.Receiver), fate)
	if worker := e.stack.Usage()[stack.Worker]; e.size.threads == fanOutThreads && worker.PeakMemory > 0 {
		e.report.keepMax(figureWorkerPeak, megabytes(worker.PeakMemory))
	}
	return nil
}

// restart is a worker that is restarted while it drains a backlog.
func (e *environment) restart(ctx context.Context) error {
	t, err := e.prepareFilled(ctx, e.bulkTrial(), e.size.restart)
	if err != nil {
		return err
	}
	defer e.finish(ctx, t)
	if err := e.stack.StartWorker(ctx); err != nil {
		return err
	}
	first, err := e.follow(ctx, e.size.restart/3)
	if err != nil {
		return err
	}
	stopping := time.Now()
	if err := e.stack.Stop(stack.Worker); err != nil {
		return err
	}
	stopped := time.Now()
	tally, err := e.receiver.Tally(ctx)
	if err != nil {
		return err
	}
	second, err := e.drain(ctx, t, "drain", e.size.Measured)
	if err != nil {
		return err
	}
	fate, err := e.fate(ctx, t)
	if err != nil {
		return err
	}
	resumed := second.reached(tally.Distinct + 1)
	e.table.add(Row{{"events", e.size.restart}, {"delivered/s before", first.rate(1, first.last())},
		{"to stop, ms", float64(stopped.Sub(stopping).Microseconds()) / 1000},
		{"first delivery within ms", float64(resumed.Sub(stopped).Milliseconds())},
		{"delivered/s after", second.rate(tally.Distinct+1, e.size.restart)}}, fate)
	return nil
}

func megabytes(bytes int64) float64 { return float64(bytes) / 1e6 }
