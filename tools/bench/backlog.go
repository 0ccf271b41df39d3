package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"routemaster/tools/bench/load"
	"routemaster/tools/bench/report"
	"routemaster/tools/bench/stack"
)

// queued is a trial that fills a queue first, and then lets it be delivered.
func (e *environment) queued(events int64) trial {
	how := e.usual()
	how.array, how.queue = usualArray, events
	return how
}

// backlog fills a queue and drains it, and gives the rate of each tenth.
func (e *environment) backlog(ctx context.Context) error {
	for _, events := range e.size.backlogs {
		m, err := e.run(ctx, e.queued(events))
		if err != nil {
			return err
		}
		each := float64(m.publishing.Redis.Memory) / float64(events)
		e.report.Set(report.Fill, e.addTenths("filled", events, m.filled))
		e.report.Set(report.Drain, e.addTenths("drained", events, m.drained))
		e.report.Set(report.Memory, each/float64(e.packed))
		e.report.Set(report.BacklogSize, float64(events))
		e.table.Add(report.Cells("events", events, "bytes/event", each, "packed bytes", e.packed,
			"÷ packed", each/float64(e.packed)), m.fate)
	}
	return nil
}

// addTenths adds a row of the rate of each tenth, and returns the ratio of the last to the first.
func (e *environment) addTenths(what string, events int64, progress load.Samples) (ratio float64) {
	row := report.Cells("events", events, "per s", what)
	var rates [10]float64
	for n := range int64(10) {
		rates[n] = progress.Rate(max(1, n*events/10), (n+1)*events/10)
		row = append(row, report.Cell{Name: strconv.FormatInt(n+1, 10), Value: rates[n]})
	}
	ratio = rates[9] / rates[0]
	e.table.Add(row, report.Cells("last ÷ first", ratio))
	return ratio
}

// fanOut measures one topic with very many subscribers.
func (e *environment) fanOut(ctx context.Context) error {
	if err := e.startWorker(ctx, fmt.Sprintf("ROUTEMASTER_WORKER_THREADS=%d", e.size.threads)); err != nil {
		return err
	}
	rpush, err := e.rpush(ctx, usualPublishers, 1)
	if err != nil {
		return err
	}
	how := e.usual()
	how.live, how.subscribers = true, e.size.fanOut
	m, err := e.run(ctx, how)
	if err != nil {
		return err
	}
	insertions := m.published * float64(how.subscribers)
	e.table.Add(report.Cells("subscribers", how.subscribers, "threads", e.size.threads, "publishes/s", m.published,
		"insertions/s", insertions, "RPUSH/s", rpush, "÷ RPUSH", insertions/rpush, "delivered/s", m.delivered,
		"deliveries/s", m.deliveries, "rest in s", m.drained.Last().At.Sub(m.drained[0].At).Seconds()),
		m.responses(""), m.publishing.CPUCells(stack.Web, stack.Redis, stack.Worker, stack.Receiver), m.fate)
	if worker := e.stack.Usage()[stack.Worker]; e.size.threads == fanOutThreads && worker.PeakMemory > 0 {
		e.report.SetMax(report.WorkerPeak, megabytes(worker.PeakMemory))
	}
	return nil
}

// restart measures a worker that is restarted while it drains a backlog.
func (e *environment) restart(ctx context.Context) error {
	t, err := e.prepare(ctx, e.queued(e.size.restart))
	if err != nil {
		return err
	}
	defer e.finish(ctx, t)
	if _, err := t.publishers.Fill(ctx, t.queue); err != nil {
		return err
	}
	if err := e.stack.StartWorker(ctx); err != nil {
		return err
	}
	first, err := e.stack.Follow(ctx, e.receiver, t.queue/3)
	if err != nil {
		return err
	}
	stopping := time.Now()
	if err := e.stack.Stop(stack.Worker); err != nil {
		return err
	}
	stopped := time.Now()
	if err := e.stack.StartWorker(ctx); err != nil {
		return err
	}
	second, err := e.stack.Follow(ctx, e.receiver, t.expected())
	if err != nil {
		return err
	}
	fate, err := e.fate(ctx, t)
	if err != nil {
		return err
	}
	again := second[0].Count + 1
	e.table.Add(report.Cells("events", t.queue, "delivered/s before", first.Rate(1, first.Last().Count),
		"to stop, ms", float64(stopped.Sub(stopping).Microseconds())/1000,
		"first delivery within ms", float64(second.Reached(again).Sub(stopped).Milliseconds()),
		"delivered/s after", second.Rate(again, t.queue)), fate)
	return nil
}

func megabytes(bytes int64) float64 { return float64(bytes) / 1e6 }
