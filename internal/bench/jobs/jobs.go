// Package jobs measures how fast a bus takes jobs and has them done, and what those cost that are
// not due.
package jobs

import (
	"context"
	"fmt"
	"time"

	"routemaster/client"
	"routemaster/client/jobs"
	"routemaster/internal/bench/load"
	"routemaster/internal/bench/report"
	"routemaster/internal/bench/stack"
)

// Bench measures the jobs of a bus.
type Bench struct {
	// Stack runs the bus; no worker runs yet.
	Stack *stack.Stack
	// Publisher is a client of the bus, with its token.
	Publisher *client.Client
	Token     string
	// Report and Table get the results.
	Report *report.Report
	Table  *report.Table
	// Window is how long each thing is measured, Baseline the same for what it is compared to.
	load.Window
	Baseline load.Window
	// InFlight are limits of a type of jobs, Done how many are done with each. Idle are not due.
	InFlight []int
	Done     int64
	Idle     int
	// NextName makes a name that no other measurement has.
	NextName func() string
	// NoOp measures the requests per second of so many clients to a server that does nothing.
	NoOp func(ctx context.Context, clients int) (float64, error)
}

const (
	// senders are the clients that enqueue jobs one by one.
	senders = 16
	// endTimeout is how long the last jobs may take to end.
	endTimeout = 20 * time.Second
)

// bulkJobs is how many jobs one request enqueues.
const bulkJobs = 1000

// Run measures all.
func (b *Bench) Run(ctx context.Context) error {
	if err := b.Stack.StartService(ctx, b.Token); err != nil {
		return err
	}
	queue := jobs.New(b.Publisher)
	for _, inFlight := range b.InFlight {
		base, err := b.jobPosts(ctx, inFlight)
		if err != nil {
			return err
		}
		for _, later := range []bool{false, true} {
			if err := b.doJobs(ctx, queue, inFlight, later, base); err != nil {
				return err
			}
		}
	}
	b.Table.Note("Jobs are enqueued in arrays of up to %d by one client. POST/s is the same POSTs straight to the service, "+
		"on as many connections; commands are all that Redis ran, in scripts and by clients. web µs, redis µs and so on are "+
		"CPU time per job.", bulkJobs)
	if err := b.pullJobs(ctx, queue); err != nil {
		return err
	}
	return b.idleJobs(ctx, queue)
}

// jobPosts measures the baseline: the same jobs straight to the service, per second.
func (b *Bench) jobPosts(ctx context.Context, connections int) (float64, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // which closes the connections
	l := load.Load{Window: b.Baseline, Senders: load.JobPosts(ctx, "http://"+b.Stack.Service, connections)}
	got, err := l.Run(ctx)
	return got.PerSecond(), err
}

// newJobType makes a type whose jobs go to the service.
func (b *Bench) newJobType(ctx context.Context, queue *jobs.Jobs, inFlight int, suffix string) (name string, err error) {
	name = b.NextName() + suffix
	below := ""
	_, err = queue.AddType(ctx, jobs.Type{
		Name: name, Strategy: jobs.AtLeastOnce, Attempts: 3, Concurrency: inFlight, URL: &below,
	})
	return name, err
}

// enqueue adds so many jobs, for a time.
func enqueue(ctx context.Context, queue *jobs.Jobs, name string, count int64, runAfter time.Time) error {
	for n := int64(0); n < count; {
		list := make([]jobs.NewJob, min(bulkJobs, count-n))
		for i := range list {
			list[i] = jobs.NewJob{Data: load.JobData(n, time.Now()), RunAfter: runAfter}
			n++
		}
		if _, err := queue.EnqueueAll(ctx, name, list); err != nil {
			return err
		}
	}
	return nil
}

// doJobs fills a queue of jobs, and has them done with so many in flight. The service reports in
// its answer, or later.
func (b *Bench) doJobs(ctx context.Context, queue *jobs.Jobs, inFlight int, later bool, base float64) error {
	suffix, reported := "", "in the answer"
	if later {
		suffix, reported = load.LaterSuffix, "later"
	}
	name, err := b.newJobType(ctx, queue, inFlight, suffix)
	if err != nil {
		return err
	}
	service := load.Control(b.Stack.ServiceControl)
	if err := service.Begin(ctx, load.JobsPath+name); err != nil {
		return err
	}
	count := b.Done
	began := time.Now()
	if err := enqueue(ctx, queue, name, count, time.Time{}); err != nil {
		return err
	}
	enqueued := float64(count) / time.Since(began).Seconds()
	var done load.Samples
	drained, err := b.Stack.Spend(ctx, func() (err error) {
		if err := b.Stack.StartWorker(ctx, fmt.Sprintf("ROUTEMASTER_JOB_THREADS=%d", inFlight)); err != nil {
			return err
		}
		finishProfile := b.Stack.Profile(ctx, b.Table.Scenario, fmt.Sprintf("%d%s", inFlight, suffix), b.Measured)
		if done, err = b.Stack.Follow(ctx, service, count); err != nil {
			return err
		}
		return finishProfile()
	})
	if err != nil {
		return err
	}
	drained.Events = count
	fate, err := b.jobFate(ctx, queue, name, service, count)
	if err != nil {
		return err
	}
	rate := done.Rate(max(1, count/10), count)
	b.Table.Add(report.Cells("in flight", inFlight, "reported", reported, "enqueued/s", enqueued, "done/s", rate,
		"POST/s", base, "÷ POST", rate/base),
		drained.CPUCells(stack.Web, stack.Redis, stack.Worker, stack.Service),
		report.Cells("scripts/job", float64(drained.Redis.Scripts)/float64(count),
			"commands/job", float64(drained.Redis.Commands)/float64(count),
			"script µs/job", float64(drained.Redis.ScriptTime.Nanoseconds())/1000/float64(count)), fate)
	if inFlight == 300 && !later {
		b.Report.Set(report.JobsDone, rate)
	}
	return b.Stack.Stop(stack.Worker)
}

// jobFate counts the lost and duplicated jobs, and those that have not ended, and returns them as
// cells.
func (b *Bench) jobFate(
	ctx context.Context, queue *jobs.Jobs, name string, service load.Control, count int64,
) (report.Row, error) {
	tally, err := service.Tally(ctx)
	if err != nil {
		return nil, err
	}
	var left int64
	for deadline := time.Now().Add(endTimeout); ; {
		t, err := queue.Type(ctx, name)
		if err != nil {
			return nil, err
		}
		if left = t.Counts.Queued + t.Counts.InProgress; left == 0 || time.Now().After(deadline) {
			break
		}
		if err := load.Sleep(ctx, stack.PollInterval); err != nil {
			return nil, err
		}
	}
	lost := count - tally.Distinct
	b.Report.Add(report.Lost, lost)
	b.Report.Add(report.Duplicates, tally.Duplicates)
	b.Report.Add(report.Unreadable, tally.Unreadable)
	b.Report.Add(report.LeftOver, left)
	return report.Cells("lost", lost, "dup.", tally.Duplicates, "left", left), nil
}

// idleJobs measures a worker that has nothing to do, without and with many jobs that are not due.
func (b *Bench) idleJobs(ctx context.Context, queue *jobs.Jobs) error {
	name, err := b.newJobType(ctx, queue, senders, "")
	if err != nil {
		return err
	}
	for _, count := range []int{0, b.Idle} {
		began := time.Now()
		filled, err := b.Stack.Spend(ctx, func() error {
			return enqueue(ctx, queue, name, int64(count), time.Now().Add(24*time.Hour))
		})
		if err != nil {
			return err
		}
		each, rate := any(nil), any(nil)
		if count > 0 {
			each, rate = float64(filled.Redis.Memory)/float64(count), float64(count)/time.Since(began).Seconds()
		}
		idle, err := b.Stack.Idle(ctx, b.Measured)
		if err != nil {
			return err
		}
		b.Table.Add(report.Cells("not due", count, "enqueued/s", rate, "bytes/job", each), idle.RateCells(b.Measured))
	}
	return queue.DeleteTypeAndJobs(ctx, name)
}
