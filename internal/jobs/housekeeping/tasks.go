package housekeeping

import (
	"context"
	"log/slog"
	"time"

	"routemaster/internal/jobs/jobstore/jobstores"
	"routemaster/internal/telemetry"
)

// Task is what a worker does at an interval, for the first time at once.
type Task struct {
	Interval time.Duration
	Work     func(context.Context) error
}

// TasksOf returns all tasks of a worker. Each partition has what changes it done by itself, so that
// one that is away delays no others. It also returns the archives, by number of their partitions.
// The recorder may be nil.
func TasksOf(
	all *jobstores.Stores, recorder *telemetry.Recorder, log *slog.Logger, now func() time.Time,
) (archives []*Archive, tasks []Task) {
	for _, st := range all.All() {
		archive := NewArchive(st, recorder, now)
		archives = append(archives, archive)
		tasks = append(tasks, Task{PurgeInterval, archive.Purge}, Task{SchedulerInterval, NewScheduler(st, log, now).Tick})
	}
	return archives, append(tasks, Task{SeriesInterval, SeriesOf(all, recorder)})
}
