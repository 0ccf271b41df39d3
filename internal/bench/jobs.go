package bench

import (
	"context"
	"fmt"
	"time"

	"routemaster/client/jobs"
	"routemaster/internal/bench/load"
	"routemaster/internal/bench/report"
	"routemaster/internal/bench/stack"
)

// bulkJobs is how many jobs one request enqueues.
const bulkJobs = 1000

// jobs measures how fast jobs are enqueued and done, and what those cost that are not due.
func (e *environment) jobs(ctx context.Context) error {
	if err := e.stack.StartService(ctx, e.token); err != nil {
		return err
	}
	queue := jobs.New(e.publisher)
	for _, inFlight := range e.size.inFlight {
		base, err := e.jobPosts(ctx, inFlight)
		if err != nil {
			return err
		}
		for _, later := range []bool{false, true} {
			if err := e.doJobs(ctx, queue, inFlight, later, base); err != nil {
				return err
			}
		}
	}
	e.table.Note("Jobs are enqueued in arrays of up to %d by one client. POST/s is the same POSTs straight to the service, "+
		"on as many connections; commands are all that Redis ran, in scripts and by clients.", bulkJobs)
	if err := e.pullJobs(ctx, queue); err != nil {
		return err
	}
	return e.idleJobs(ctx, queue)
}

// jobPosts measures the baseline: the same jobs straight to the service, per second.
func (e *environment) jobPosts(ctx context.Context, connections int) (float64, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // which closes the connections
	l := load.Load{Window: e.size.baselineWindow(), Senders: load.JobPosts(ctx, "http://"+e.stack.Service, connections)}
	got, err := l.Run(ctx)
	return got.PerSecond(), err
}

// newJobType makes a type whose jobs go to the service.
func (e *environment) newJobType(ctx context.Context, queue *jobs.Jobs, inFlight int, suffix string) (name string, err error) {
	name = e.nextRun().topic + suffix
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
func (e *environment) doJobs(ctx context.Context, queue *jobs.Jobs, inFlight int, later bool, base float64) error {
	suffix, reported := "", "in the answer"
	if later {
		suffix, reported = load.LaterSuffix, "later"
	}
	name, err := e.newJobType(ctx, queue, inFlight, suffix)
	if err != nil {
		return err
	}
	service := load.Control(e.stack.ServiceControl)
	if err := service.Begin(ctx, load.JobsPath+name); err != nil {
		return err
	}
	count := e.size.doneJobs
	began := time.Now()
	if err := enqueue(ctx, queue, name, count, time.Time{}); err != nil {
		return err
	}
	enqueued := float64(count) / time.Since(began).Seconds()
	var done samples
	drained, err := e.spend(ctx, func() (err error) {
		if err := e.startWorker(ctx, fmt.Sprintf("ROUTEMASTER_JOB_THREADS=%d", inFlight)); err != nil {
			return err
		}
		finishProfile := e.stack.Profile(ctx, e.table.Scenario, fmt.Sprintf("%d%s", inFlight, suffix), e.size.Measured)
		if done, err = e.followAt(ctx, service, count); err != nil {
			return err
		}
		return finishProfile()
	})
	if err != nil {
		return err
	}
	drained.events = count
	fate, err := e.jobFate(ctx, queue, name, service, count)
	if err != nil {
		return err
	}
	rate := done.rate(max(1, count/10), count)
	e.table.Add(report.Cells("in flight", inFlight, "reported", reported, "enqueued/s", enqueued, "done/s", rate,
		"POST/s", base, "÷ POST", rate/base),
		drained.cpuCells(stack.Web, stack.Redis, stack.Worker, stack.Service),
		report.Cells("scripts/job", float64(drained.redis.Scripts)/float64(count),
			"commands/job", float64(drained.redis.Commands)/float64(count),
			"script µs/job", float64(drained.redis.ScriptTime.Nanoseconds())/1000/float64(count)), fate)
	if inFlight == 300 && !later {
		e.report.Set(report.JobsDone, rate)
	}
	return e.stack.Stop(stack.Worker)
}

// jobFate counts the lost and duplicated jobs, and those that have not ended, and returns them as
// cells.
func (e *environment) jobFate(
	ctx context.Context, queue *jobs.Jobs, name string, service load.Control, count int64,
) (report.Row, error) {
	tally, err := service.Tally(ctx)
	if err != nil {
		return nil, err
	}
	var left int64
	for deadline := time.Now().Add(completeTimeout); ; {
		t, err := queue.Type(ctx, name)
		if err != nil {
			return nil, err
		}
		if left = t.Counts.Queued + t.Counts.InProgress; left == 0 || time.Now().After(deadline) {
			break
		}
		if err := load.Sleep(ctx, pollInterval); err != nil {
			return nil, err
		}
	}
	lost := count - tally.Distinct
	e.report.Add(report.Lost, lost)
	e.report.Add(report.Duplicates, tally.Duplicates)
	e.report.Add(report.Unreadable, tally.Unreadable)
	e.report.Add(report.LeftOver, left)
	return report.Cells("lost", lost, "dup.", tally.Duplicates, "left", left), nil
}

// idleJobs measures a worker that has nothing to do, without and with many jobs that are not due.
func (e *environment) idleJobs(ctx context.Context, queue *jobs.Jobs) error {
	name, err := e.newJobType(ctx, queue, usualPublishers, "")
	if err != nil {
		return err
	}
	for _, count := range []int{0, e.size.idleJobs} {
		began := time.Now()
		filled, err := e.spend(ctx, func() error {
			return enqueue(ctx, queue, name, int64(count), time.Now().Add(24*time.Hour))
		})
		if err != nil {
			return err
		}
		each, rate := any(nil), any(nil)
		if count > 0 {
			each, rate = float64(filled.redis.Memory)/float64(count), float64(count)/time.Since(began).Seconds()
		}
		idle, err := e.idle(ctx)
		if err != nil {
			return err
		}
		seconds := e.size.Measured.Seconds()
		e.table.Add(report.Cells("not due", count, "enqueued/s", rate, "bytes/job", each,
			"worker ms/s", float64(idle.cpu[stack.Worker].Milliseconds())/seconds,
			"redis ms/s", float64(idle.cpu[stack.Redis].Milliseconds())/seconds,
			"commands/s", float64(idle.redis.Commands)/seconds, "scripts/s", float64(idle.redis.Scripts)/seconds))
	}
	return queue.DeleteTypeAndJobs(ctx, name)
}

// idle is the cost of a worker that has nothing to do, once it has started.
func (e *environment) idle(ctx context.Context) (cost, error) {
	if err := e.startWorker(ctx); err != nil {
		return cost{}, err
	}
	if err := load.Sleep(ctx, e.size.Measured/2); err != nil {
		return cost{}, err
	}
	spent, err := e.spend(ctx, func() error { return load.Sleep(ctx, e.size.Measured) })
	if err != nil {
		return cost{}, err
	}
	return spent, e.stack.Stop(stack.Worker)
}
