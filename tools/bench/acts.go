package main

import (
	"context"
	"fmt"
	"time"

	"routemaster/tools/bench/load"
	"routemaster/tools/bench/report"
	"routemaster/tools/bench/stack"
)

// act measures how fast labels with open gates go on to their action, which calls a webhook that
// answers at once.
func (b *machineBench) act(ctx context.Context) error {
	m := b.machine(acts)
	if err := create(ctx, m, b.size.doneJobs); err != nil {
		return err
	}
	for _, threads := range b.size.inFlight {
		base, err := b.servicePosts(ctx, max(1, threads/2))
		if err != nil {
			return err
		}
		service := load.Control(b.stack.ServiceControl)
		if err := service.Begin(ctx, load.JobsPath+acts); err != nil {
			return err
		}
		began := time.Now()
		err = each(ctx, b.size.doneJobs, func(ctx context.Context, n int64) error {
			_, err := m.Merge(ctx, label(n), event(n, time.Now()))
			return err
		})
		if err != nil {
			return err
		}
		patched := float64(b.size.doneJobs) / time.Since(began).Seconds()
		if err := b.drain(ctx, service, threads, patched, base); err != nil {
			return err
		}
	}
	return nil
}

// drain has a worker act for the labels that were patched.
func (b *machineBench) drain(ctx context.Context, service load.Control, threads int, patched, base float64) error {
	count := b.size.doneJobs
	done, spent, err := b.workOff(ctx, service, count, fmt.Sprint(threads), fmt.Sprintf("ROUTEMASTER_MACHINE_THREADS=%d", threads))
	if err != nil {
		return err
	}
	fate, err := b.serviceFate(ctx, service, count)
	if err != nil {
		return err
	}
	rate := done.Rate(max(1, count/10), count)
	b.table.Add(report.Cells("threads", threads, "patched/s", patched, "acted/s", rate, "POST/s", base, "÷ POST", rate/base),
		costCells(spent), fate)
	return b.stack.Stop(stack.Worker)
}

// latency measures the time from a patch that opens a gate to the webhook of the action behind it,
// on a bus that has nothing else to do.
func (b *machineBench) latency(ctx context.Context) error {
	if err := b.stack.StartWorker(ctx); err != nil {
		return err
	}
	service := load.Control(b.stack.ServiceControl)
	if err := service.Begin(ctx, load.JobsPath+acts); err != nil {
		return err
	}
	m := b.machine(acts)
	n := int64(0)
	send := func(due time.Time) error {
		n++
		_, err := m.Merge(ctx, label(n%b.size.doneJobs), event(n, due))
		return err
	}
	var tally load.Tally
	l := load.Load{Window: b.size.Window, Rate: latencyRate, Senders: []load.Sender{send}}
	l.Around = func(measure func() error) error {
		if _, err := service.ClearLatency(ctx); err != nil {
			return err
		}
		return measure()
	}
	got, err := l.Run(ctx)
	if err != nil {
		return err
	}
	if _, err := b.stack.Follow(ctx, service, n); err != nil {
		return err
	}
	if tally, err = service.Tally(ctx); err != nil {
		return err
	}
	fate, err := b.serviceFate(ctx, service, n)
	if err != nil {
		return err
	}
	b.table.Add(report.Cells("patched, to the webhook, at", latencyRate, "p50 ms", tally.P50, "p99 ms", tally.P99, "max ms", tally.Max,
		"answered p50 ms", got.Latency.Percentile(50), "p99 ms", got.Latency.Percentile(99)), fate)
	b.report.Set(report.ToWebhook, tally.P50)
	return b.stack.Stop(stack.Worker)
}
