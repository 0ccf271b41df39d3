package main

import (
	"context"

	"routemaster/tools/bench/load"
	"routemaster/tools/bench/report"
	"routemaster/tools/bench/stack"
)

// servicePosts is the baseline of jobs and webhooks: such POSTs straight to the service, a second.
func (e *environment) servicePosts(ctx context.Context, connections int) (float64, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // which closes the connections
	l := load.Load{Window: e.size.baselineWindow(), Senders: load.JobPosts(ctx, "http://"+e.stack.Service, connections)}
	got, err := l.Run(ctx)
	return got.PerSecond(), err
}

// workOff has a new worker call the service as often as is due, and returns how that went on, and
// its cost. The worker goes on running.
func (e *environment) workOff(
	ctx context.Context, service load.Control, count int64, label string, settings ...string,
) (done load.Samples, spent stack.Cost, err error) {
	spent, err = e.stack.Spend(ctx, func() (err error) {
		if err := e.stack.StartWorker(ctx, settings...); err != nil {
			return err
		}
		finishProfile := e.stack.Profile(ctx, e.table.Scenario, label, e.size.Measured)
		if done, err = e.stack.Follow(ctx, service, count); err != nil {
			return err
		}
		return finishProfile()
	})
	spent.Events = count
	return done, spent, err
}

// serviceFate counts the calls that the service did not get, and those it got again, and returns
// them as cells.
func (e *environment) serviceFate(ctx context.Context, service load.Control, count int64) (report.Row, error) {
	tally, err := service.Tally(ctx)
	if err != nil {
		return nil, err
	}
	lost := count - tally.Distinct
	e.report.Add(report.Lost, lost)
	e.report.Add(report.Duplicates, tally.Duplicates)
	e.report.Add(report.Unreadable, tally.Unreadable)
	return report.Cells("lost", lost, "dup.", tally.Duplicates), nil
}
