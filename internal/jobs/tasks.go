package jobs

import (
	"context"
	"log/slog"
	"time"

	"routemaster/internal/telemetry"
)

// SpareTask is a task that a worker runs at an interval, for the first time at once.
type SpareTask struct {
	Interval time.Duration
	Work     func(context.Context) error
}

// SpareTasksOf returns all tasks of a worker. Steps that change a partition run for each partition
// by itself, so that an unreachable one delays no others. It also returns the archives, by number
// of their partitions. The recorder may be nil.
func SpareTasksOf(
	all *Bus, recorder *telemetry.Recorder, log *slog.Logger, now func() time.Time,
) (archives []*Archive, tasks []SpareTask) {
	for _, st := range all.All() {
		archive := NewArchive(st, recorder, now)
		archives = append(archives, archive)
		tasks = append(tasks, SpareTask{PurgeInterval, archive.Purge}, SpareTask{SchedulerInterval, NewScheduler(st, log, now).Tick})
	}
	return archives, append(tasks, SpareTask{SeriesInterval, SeriesOf(all, recorder)})
}
