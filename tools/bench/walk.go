package main

import (
	"context"
	"time"

	"routemaster/tools/bench/load"
	"routemaster/tools/bench/report"
	"routemaster/tools/bench/stack"
)

// opened is how many gates a walk opens, evenly among all: by their webhooks it is followed.
const opened = 100

// wait measures a worker that has nothing to do, without and with many labels that wait, and then a
// walk over these.
func (b *machineBench) wait(ctx context.Context) error {
	for _, count := range []int64{0, b.size.idleJobs} {
		began := time.Now()
		filled, err := b.stack.Spend(ctx, func() error { return create(ctx, b.machine(walks), count) })
		if err != nil {
			return err
		}
		rate, bytes := any(nil), any(nil)
		if count > 0 {
			size := float64(filled.Redis.Memory) / float64(count)
			rate, bytes = float64(count)/time.Since(began).Seconds(), size
			b.report.Set(report.LabelBytes, size)
		}
		idle, err := b.stack.Idle(ctx, b.size.Measured)
		if err != nil {
			return err
		}
		b.table.Add(report.Cells("waiting", count, "made/s", rate, "bytes/label", bytes), idle.RateCells(b.size.Measured))
	}
	return b.walk(ctx)
}

// walk makes a trigger due for all labels, and opens the gates of some.
func (b *machineBench) walk(ctx context.Context) error {
	m := b.machine(walks)
	for n := range int64(opened) {
		if _, err := m.Merge(ctx, label(n*(b.size.idleJobs-1)/(opened-1)), event(n, time.Now())); err != nil {
			return err
		}
	}
	// The walk of the old interval has its time already. A worker begins the new interval's walk.
	if err := b.define(ctx, "2d"); err != nil {
		return err
	}
	if err := b.stack.BeginWalk(ctx, walks+"/waiting interval 48h0m0s"); err != nil {
		return err
	}
	service := load.Control(b.stack.ServiceControl)
	if err := service.Begin(ctx, load.JobsPath+walks); err != nil {
		return err
	}
	if err := b.stack.WatchScripts(ctx); err != nil {
		return err
	}
	progress, spent, err := b.workOff(ctx, service, opened, "walk")
	if err != nil {
		return err
	}
	spent.Events = b.size.idleJobs
	return b.walked(ctx, service, spent, progress)
}

// walked reports a walk.
func (b *machineBench) walked(ctx context.Context, service load.Control, spent stack.Cost, progress load.Samples) error {
	longest, slow, err := b.stack.LongestScript(ctx, walks, "waiting") // of its slices: machine and state
	if err != nil {
		return err
	}
	fate, err := b.serviceFate(ctx, service, opened)
	if err != nil {
		return err
	}
	took := progress.Reached(opened).Sub(progress.Reached(1)).Seconds()
	peak, known := b.stack.Peak(stack.Worker)
	memory := any(nil)
	if known {
		memory = megabytes(peak)
		b.report.Set(report.WalkPeak, megabytes(peak))
	}
	b.table.Add(report.Cells("walked", b.size.idleJobs, "seconds", took, "labels/s", float64(b.size.idleJobs)/took,
		"longest script of it ms", longest.Seconds()*1000, "of 1 ms or more", slow, "worker peak MB", memory),
		costCells(spent), fate)
	b.report.Set(report.WalkScript, longest.Seconds()*1000)
	return b.stack.Stop(stack.Worker)
}
