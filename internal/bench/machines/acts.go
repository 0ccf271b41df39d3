package machines

import (
	"context"
	"fmt"
	"time"

	"routemaster/internal/bench/load"
	"routemaster/internal/bench/report"
	"routemaster/internal/bench/stack"
)

// act measures how fast labels whose gates have been opened go on to their action, which calls a
// webhook that answers at once.
func (b *Bench) act(ctx context.Context) error {
	m := b.machine(acts)
	if err := create(ctx, m, b.Acted); err != nil {
		return err
	}
	for _, threads := range b.Threads {
		base, err := b.posts(ctx, max(1, threads/2))
		if err != nil {
			return err
		}
		service := load.Control(b.Stack.ServiceControl)
		if err := service.Begin(ctx, load.JobsPath+acts); err != nil {
			return err
		}
		began := time.Now()
		err = each(ctx, b.Acted, func(ctx context.Context, n int64) error {
			_, err := m.Merge(ctx, label(n), event(n, time.Now()))
			return err
		})
		if err != nil {
			return err
		}
		patched := float64(b.Acted) / time.Since(began).Seconds()
		if err := b.drain(ctx, service, threads, patched, base); err != nil {
			return err
		}
	}
	return nil
}

// posts measures the baseline: such POSTs straight to the service, per second.
func (b *Bench) posts(ctx context.Context, connections int) (float64, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // which closes the connections
	l := load.Load{Window: b.Baseline, Senders: load.JobPosts(ctx, "http://"+b.Stack.Service, connections)}
	got, err := l.Run(ctx)
	return got.PerSecond(), err
}

// drain has a worker do what is to be done for the labels that were patched.
func (b *Bench) drain(ctx context.Context, service load.Control, threads int, patched, base float64) error {
	var done load.Samples
	spent, err := b.Stack.Spend(ctx, func() (err error) {
		if err := b.Stack.StartWorker(ctx, fmt.Sprintf("ROUTEMASTER_MACHINE_THREADS=%d", threads)); err != nil {
			return err
		}
		finishProfile := b.Stack.Profile(ctx, b.Table.Scenario, fmt.Sprint(threads), b.Measured)
		if done, err = b.Stack.Follow(ctx, service, b.Acted); err != nil {
			return err
		}
		return finishProfile()
	})
	if err != nil {
		return err
	}
	spent.Events = b.Acted
	rate := done.Rate(max(1, b.Acted/10), b.Acted)
	fate, err := b.fate(ctx, service, b.Acted)
	if err != nil {
		return err
	}
	b.Table.Add(report.Cells("threads", threads, "patched/s", patched, "acted/s", rate, "POST/s", base, "÷ POST", rate/base),
		costCells(spent), fate)
	return b.Stack.Stop(stack.Worker)
}

// fate counts the webhooks that were not called, and those called again, and returns them as cells.
func (b *Bench) fate(ctx context.Context, service load.Control, count int64) (report.Row, error) {
	tally, err := service.Tally(ctx)
	if err != nil {
		return nil, err
	}
	lost := count - tally.Distinct
	b.Report.Add(report.Lost, lost)
	b.Report.Add(report.Duplicates, tally.Duplicates)
	b.Report.Add(report.Unreadable, tally.Unreadable)
	return report.Cells("lost", lost, "dup.", tally.Duplicates), nil
}

// latency measures the time from a patch that opens a gate to the webhook of the action behind it,
// on a bus that has nothing else to do.
func (b *Bench) latency(ctx context.Context) error {
	if err := b.Stack.StartWorker(ctx); err != nil {
		return err
	}
	service := load.Control(b.Stack.ServiceControl)
	if err := service.Begin(ctx, load.JobsPath+acts); err != nil {
		return err
	}
	m := b.machine(acts)
	n := int64(0)
	send := func(due time.Time) error {
		n++
		_, err := m.Merge(ctx, label(n%b.Acted), event(n, due))
		return err
	}
	var tally load.Tally
	l := load.Load{Window: b.Window, Rate: latencyRate, Senders: []load.Sender{send}}
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
	if _, err := b.Stack.Follow(ctx, service, n); err != nil {
		return err
	}
	if tally, err = service.Tally(ctx); err != nil {
		return err
	}
	fate, err := b.fate(ctx, service, n)
	if err != nil {
		return err
	}
	b.Table.Add(report.Cells("patched, to the webhook, at", latencyRate, "p50 ms", tally.P50, "p99 ms", tally.P99, "max ms", tally.Max,
		"answered p50 ms", got.Latency.Percentile(50), "p99 ms", got.Latency.Percentile(99)), fate)
	b.Report.Set(report.ToWebhook, tally.P50)
	return b.Stack.Stop(stack.Worker)
}
