package jobs

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"routemaster/client/jobs"
	"routemaster/internal/bench/load"
	"routemaster/internal/bench/report"
	"routemaster/internal/bench/stack"
)

// pullThreads is how many jobs a service that fetches them does at once.
const pullThreads = 32

// pullJobs measures how fast jobs are enqueued one by one, and then fetched and reported on by a
// service that does each at once. No worker is needed.
func (b *Bench) pullJobs(ctx context.Context, queue *jobs.Jobs) error {
	name := b.NextName()
	made := jobs.Type{Name: name, Strategy: jobs.AtLeastOnce, Attempts: 3, Concurrency: senders * pullThreads}
	if _, err := queue.AddType(ctx, made); err != nil {
		return err
	}
	if err := b.enqueueOneByOne(ctx, queue, name); err != nil {
		return err
	}
	queued, err := queue.Type(ctx, name)
	if err != nil {
		return err
	}
	count := queued.Counts.Queued
	began := time.Now()
	spent, err := b.Stack.Spend(ctx, func() error { return work(ctx, queue, name, count) })
	if err != nil {
		return err
	}
	spent.Events = count
	rate := float64(count) / time.Since(began).Seconds()
	ended, err := queue.Type(ctx, name)
	if err != nil {
		return err
	}
	left := ended.Counts.Queued + ended.Counts.InProgress
	b.Report.Add(report.LeftOver, left)
	b.Table.Add(report.Cells("fetched, at once", pullThreads, "jobs", count, "done/s", rate),
		spent.CPUCells(stack.Web, stack.Redis, stack.Load), report.Cells("left", left))
	return nil
}

// enqueueOneByOne enqueues jobs in a closed loop, beside requests to a no-op handler.
func (b *Bench) enqueueOneByOne(ctx context.Context, queue *jobs.Jobs, name string) error {
	noop, err := b.NoOp(ctx, senders)
	if err != nil {
		return err
	}
	var sent atomic.Int64
	enqueue := func(due time.Time) error {
		_, err := queue.Enqueue(ctx, name, jobs.NewJob{Data: load.JobData(sent.Add(1), due)})
		return err
	}
	got, spent, err := b.Stack.Run(ctx, load.Load{Window: b.Baseline, Senders: slices.Repeat([]load.Sender{enqueue}, senders)})
	if err != nil {
		return err
	}
	b.Table.Add(report.Cells("enqueued one by one, by", senders, "jobs/s", got.PerSecond(), "no-op/s", noop,
		"÷ no-op", got.PerSecond()/noop, "p50 ms", got.Latency.Percentile(50), "p99 ms", got.Latency.Percentile(99)),
		spent.CPUCells(stack.Web, stack.Redis, stack.Load))
	return nil
}

// work does so many jobs of a type, each at once.
func work(ctx context.Context, queue *jobs.Jobs, name string, count int64) error {
	ctx, cancel := context.WithTimeout(ctx, endTimeout)
	defer cancel()
	var done atomic.Int64
	err := queue.Work(ctx, name, func(context.Context, jobs.Fetched) error {
		if done.Add(1) == count {
			cancel()
		}
		return nil
	}, jobs.WorkOptions{Concurrency: pullThreads, Wait: 100 * time.Millisecond})
	if err == nil && done.Load() < count {
		err = fmt.Errorf("%d of %d jobs were fetched in %s", done.Load(), count, endTimeout)
	}
	return err
}
