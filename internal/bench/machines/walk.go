package machines

import (
	"context"
	"time"

	"routemaster/internal/bench/load"
	"routemaster/internal/bench/report"
	"routemaster/internal/bench/stack"
)

// opened is how many gates a walk opens, evenly among all: by their webhooks it is followed.
const opened = 100

// wait measures a worker that has nothing to do, without and with many labels that wait, and then a
// walk over these.
func (b *Bench) wait(ctx context.Context) error {
	for _, count := range []int64{0, b.Waiting} {
		began := time.Now()
		filled, err := b.Stack.Spend(ctx, func() error { return create(ctx, b.machine(walks), count) })
		if err != nil {
			return err
		}
		rate, bytes := any(nil), any(nil)
		if count > 0 {
			size := float64(filled.Redis.Memory) / float64(count)
			rate, bytes = float64(count)/time.Since(began).Seconds(), size
			b.Report.Set(report.LabelBytes, size)
		}
		idle, err := b.Stack.Idle(ctx, b.Measured)
		if err != nil {
			return err
		}
		b.Table.Add(report.Cells("waiting", count, "made/s", rate, "bytes/label", bytes), idle.RateCells(b.Measured))
	}
	return b.walk(ctx)
}

// walk has a trigger be due for all labels, of which it opens the gates of some.
func (b *Bench) walk(ctx context.Context) error {
	m := b.machine(walks)
	for n := range int64(opened) {
		if _, err := m.Merge(ctx, label(n*(b.Waiting-1)/(opened-1)), event(n, time.Now())); err != nil {
			return err
		}
	}
	// The walk of the old interval has its time already. That of a new one is begun by a worker.
	if err := b.define(ctx, "2d"); err != nil {
		return err
	}
	if err := b.Stack.BeginWalk(ctx, walks+"/waiting interval 48h0m0s"); err != nil {
		return err
	}
	service := load.Control(b.Stack.ServiceControl)
	if err := service.Begin(ctx, load.JobsPath+walks); err != nil {
		return err
	}
	if err := b.Stack.WatchScripts(ctx); err != nil {
		return err
	}
	var progress load.Samples
	spent, err := b.Stack.Spend(ctx, func() (err error) {
		if err := b.Stack.StartWorker(ctx); err != nil {
			return err
		}
		finishProfile := b.Stack.Profile(ctx, b.Table.Scenario, "walk", b.Measured)
		if progress, err = b.Stack.Follow(ctx, service, opened); err != nil {
			return err
		}
		return finishProfile()
	})
	if err != nil {
		return err
	}
	spent.Events = b.Waiting
	return b.walked(ctx, service, spent, progress)
}

// walked reports a walk.
func (b *Bench) walked(ctx context.Context, service load.Control, spent stack.Cost, progress load.Samples) error {
	longest, slow, err := b.Stack.LongestScript(ctx, walks, "waiting") // those of slices: machine and state
	if err != nil {
		return err
	}
	fate, err := b.fate(ctx, service, opened)
	if err != nil {
		return err
	}
	took := progress.Reached(opened).Sub(progress.Reached(1)).Seconds()
	peak, known := b.Stack.Peak(stack.Worker)
	memory := any(nil)
	if known {
		memory = float64(peak) / 1e6
		b.Report.Set(report.WalkPeak, float64(peak)/1e6)
	}
	b.Table.Add(report.Cells("walked", b.Waiting, "seconds", took, "labels/s", float64(b.Waiting)/took,
		"longest script of it ms", longest.Seconds()*1000, "of 1 ms or more", slow, "worker peak MB", memory),
		costCells(spent), fate)
	b.Report.Set(report.WalkScript, longest.Seconds()*1000)
	return b.Stack.Stop(stack.Worker)
}
