package main

import (
	"context"
	"fmt"
	"time"

	"routemaster/client/jobs"
	"routemaster/tools/bench/load"
	"routemaster/tools/bench/report"
	"routemaster/tools/bench/stack"
)

// jobBench measures how fast a bus accepts jobs and gets them done, and the cost of jobs that are
// not due.
type jobBench struct {
	*environment
	queue *jobs.Jobs
}

// bulkJobs is how many jobs one request enqueues.
const bulkJobs = 1000

// jobs measures jobs.
func (e *environment) jobs(ctx context.Context) error {
	if err := e.stack.StartService(ctx, e.token); err != nil {
		return err
	}
	b := &jobBench{e, jobs.New(e.publisher)}
	for _, inFlight := range e.size.inFlight {
		base, err := e.servicePosts(ctx, inFlight)
		if err != nil {
			return err
		}
		for _, later := range []bool{false, true} {
			if err := b.doJobs(ctx, inFlight, later, base); err != nil {
				return err
			}
		}
	}
	e.table.Note("Jobs are enqueued in arrays of up to %d by one client. POST/s is the same POSTs straight to the service, "+
		"on as many connections; commands are all that Redis ran, in scripts and by clients. web µs, redis µs and so on are "+
		"CPU time per job.", bulkJobs)
	if err := b.pullJobs(ctx); err != nil {
		return err
	}
	return b.idleJobs(ctx)
}

// newJobType makes a type whose jobs go to the service.
func (b *jobBench) newJobType(ctx context.Context, inFlight int, suffix string) (name string, err error) {
	name = b.nextRun().topic + suffix
	below := ""
	_, err = b.queue.AddType(ctx, jobs.Type{
		Name: name, Strategy: jobs.AtLeastOnce, Attempts: 3, Concurrency: inFlight, URL: &below,
	})
	return name, err
}

// enqueue adds count jobs, to run after a time.
func (b *jobBench) enqueue(ctx context.Context, name string, count int64, runAfter time.Time) error {
	for n := int64(0); n < count; {
		list := make([]jobs.NewJob, min(bulkJobs, count-n))
		for i := range list {
			list[i] = jobs.NewJob{Data: load.JobData(n, time.Now()), RunAfter: runAfter}
			n++
		}
		if _, err := b.queue.EnqueueAll(ctx, name, list); err != nil {
			return err
		}
	}
	return nil
}

// doJobs fills a queue of jobs, and measures how fast they are done with inFlight of them in
// flight. The service reports in its response, or later.
func (b *jobBench) doJobs(ctx context.Context, inFlight int, later bool, base float64) error {
	suffix, reported := "", "in the answer"
	if later {
		suffix, reported = load.LaterSuffix, "later"
	}
	name, err := b.newJobType(ctx, inFlight, suffix)
	if err != nil {
		return err
	}
	service := load.Control(b.stack.ServiceControl)
	if err := service.Begin(ctx, load.JobsPath+name); err != nil {
		return err
	}
	count := b.size.doneJobs
	began := time.Now()
	if err := b.enqueue(ctx, name, count, time.Time{}); err != nil {
		return err
	}
	enqueued := float64(count) / time.Since(began).Seconds()
	done, spent, err := b.workOff(ctx, service, count, fmt.Sprintf("%d%s", inFlight, suffix),
		fmt.Sprintf("ROUTEMASTER_JOB_THREADS=%d", inFlight))
	if err != nil {
		return err
	}
	fate, err := b.jobFate(ctx, name, service, count)
	if err != nil {
		return err
	}
	rate := done.Rate(max(1, count/10), count)
	b.table.Add(report.Cells("in flight", inFlight, "reported", reported, "enqueued/s", enqueued, "done/s", rate,
		"POST/s", base, "÷ POST", rate/base), spent.CPUCells(stack.Web, stack.Redis, stack.Worker, stack.Service),
		spent.CommandCells("job"), fate)
	if inFlight == 300 && !later {
		b.report.Set(report.JobsDone, rate)
	}
	return b.stack.Stop(stack.Worker)
}

// jobFate is [environment.serviceFate], and counts the jobs that have not ended in time.
func (b *jobBench) jobFate(ctx context.Context, name string, service load.Control, count int64) (report.Row, error) {
	row, err := b.serviceFate(ctx, service, count)
	if err != nil {
		return nil, err
	}
	var left int64
	err = await(ctx, func() (bool, error) {
		t, err := b.queue.Type(ctx, name)
		left = t.Counts.Queued + t.Counts.InProgress
		return left == 0, err
	})
	if err != nil {
		return nil, err
	}
	b.report.Add(report.LeftOver, left)
	return append(row, report.Cell{Name: "left", Value: left}), nil
}

// idleJobs measures a worker that has nothing to do, without and with many jobs that are not due.
func (b *jobBench) idleJobs(ctx context.Context) error {
	name, err := b.newJobType(ctx, usualPublishers, "")
	if err != nil {
		return err
	}
	for _, count := range []int64{0, b.size.idleJobs} {
		began := time.Now()
		filled, err := b.stack.Spend(ctx, func() error {
			return b.enqueue(ctx, name, count, time.Now().Add(24*time.Hour))
		})
		if err != nil {
			return err
		}
		each, rate := any(nil), any(nil)
		if count > 0 {
			each, rate = float64(filled.Redis.Memory)/float64(count), float64(count)/time.Since(began).Seconds()
		}
		idle, err := b.stack.Idle(ctx, b.size.Measured)
		if err != nil {
			return err
		}
		b.table.Add(report.Cells("not due", count, "enqueued/s", rate, "bytes/job", each), idle.RateCells(b.size.Measured))
	}
	return b.queue.DeleteTypeAndJobs(ctx, name)
}
