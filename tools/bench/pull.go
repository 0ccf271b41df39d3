package main

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"routemaster/client/jobs"
	"routemaster/tools/bench/load"
	"routemaster/tools/bench/report"
	"routemaster/tools/bench/stack"
)

// pullThreads is how many jobs a service that fetches them does at once.
const pullThreads = 32

// pullJobs measures how fast jobs are enqueued one by one, and then fetched and reported on by a
// service that does each at once. No worker is needed.
func (b *jobBench) pullJobs(ctx context.Context) error {
	name := b.nextRun().topic
	made := jobs.Type{Name: name, Strategy: jobs.AtLeastOnce, Attempts: 3, Concurrency: usualPublishers * pullThreads}
	if _, err := b.queue.AddType(ctx, made); err != nil {
		return err
	}
	if err := b.enqueueOneByOne(ctx, name); err != nil {
		return err
	}
	queued, err := b.queue.Type(ctx, name)
	if err != nil {
		return err
	}
	count := queued.Counts.Queued
	began := time.Now()
	spent, err := b.stack.Spend(ctx, func() error { return b.work(ctx, name, count) })
	if err != nil {
		return err
	}
	spent.Events = count
	rate := float64(count) / time.Since(began).Seconds()
	ended, err := b.queue.Type(ctx, name)
	if err != nil {
		return err
	}
	left := ended.Counts.Queued + ended.Counts.InProgress
	b.report.Add(report.LeftOver, left)
	b.table.Add(report.Cells("fetched, at once", pullThreads, "jobs", count, "done/s", rate),
		spent.CPUCells(stack.Web, stack.Redis, stack.Load), report.Cells("left", left))
	return nil
}

// enqueueOneByOne enqueues jobs in a closed loop, beside requests to a no-op handler.
func (b *jobBench) enqueueOneByOne(ctx context.Context, name string) error {
	noop, _, err := b.noop(ctx, usualPublishers, 0)
	if err != nil {
		return err
	}
	var sent atomic.Int64
	enqueue := func(due time.Time) error {
		_, err := b.queue.Enqueue(ctx, name, jobs.NewJob{Data: load.JobData(sent.Add(1), due)})
		return err
	}
	got, spent, err := b.stack.Run(ctx, load.Load{Window: b.size.baselineWindow(), Senders: slices.Repeat([]load.Sender{enqueue}, usualPublishers)})
	if err != nil {
		return err
	}
	b.table.Add(report.Cells("enqueued one by one, by", usualPublishers, "jobs/s", got.PerSecond(), "no-op/s", noop,
		"÷ no-op", got.PerSecond()/noop, "p50 ms", got.Latency.Percentile(50), "p99 ms", got.Latency.Percentile(99)),
		spent.CPUCells(stack.Web, stack.Redis, stack.Load))
	return nil
}

// work does so many jobs of a type, each at once.
func (b *jobBench) work(ctx context.Context, name string, count int64) error {
	ctx, cancel := context.WithTimeout(ctx, completeTimeout)
	defer cancel()
	var done atomic.Int64
	err := b.queue.Work(ctx, name, func(context.Context, jobs.Fetched) error {
		if done.Add(1) == count {
			cancel()
		}
		return nil
	}, jobs.WorkOptions{Concurrency: pullThreads, Wait: 100 * time.Millisecond})
	if err == nil && done.Load() < count {
		err = fmt.Errorf("%d of %d jobs were fetched in %s", done.Load(), count, completeTimeout)
	}
	return err
}
