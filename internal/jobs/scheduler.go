package jobs

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"routemaster/internal/bus"
)

// SchedulerInterval is how often a worker calls [Scheduler.Tick], and so how late a job of a
// schedule may be.
const SchedulerInterval = 200 * time.Millisecond

// A scheduler looks at the schedules as each minute begins, since that is when their times come,
// and once more settleTime later: a schedule that was set just before the minute by the clock of
// another host, or whose step was still on its way, is seen then. All other ticks ask nothing of
// Redis.
const settleTime = 2 * time.Second

// steadyLimit is for how long a worker may not have looked, for whatever reason, and still enqueue
// each time that has come meanwhile. After longer it makes up for the last one only.
const steadyLimit = 2 * time.Minute

// Scheduler enqueues the jobs of types of a partition that have a schedule. Each worker has one for
// each partition, so that one that is away delays no others; it must not be used concurrently.
type Scheduler struct {
	store *Store
	log   *slog.Logger
	now   func() time.Time
	// look is the time of the last look that succeeded, as lookOf has it, and looked when that was;
	// zero before the first.
	look, looked time.Time
}

// NewScheduler makes a scheduler.
func NewScheduler(store *Store, log *slog.Logger, now func() time.Time) *Scheduler {
	return &Scheduler{store: store, log: log, now: now}
}

// Tick enqueues the jobs whose time has come since the last tick, of this worker or any other one:
// a job for each time, or for the last of them if no worker has run for a while. If it fails, the
// next tick does the rest. A clock that is set back or forward neither repeats a time nor, if by
// less than two minutes, leaves one out.
func (s *Scheduler) Tick(ctx context.Context) error {
	now := s.now().Round(0) // the wall clock, which may be set
	look := lookOf(now)
	if look.Equal(s.look) {
		return nil
	}
	schedules, err := s.store.Schedules(ctx)
	if err != nil {
		return err
	}
	for _, of := range schedules {
		if err := s.enqueueDue(ctx, of, now); errors.Is(err, bus.ErrUnavailable) || ctx.Err() != nil {
			return err
		} else if err != nil { // the next look tries again; others must not wait for that
			s.log.Error("could not enqueue the job of a schedule", "job_type", of.Type.Name, "error", err)
		}
	}
	s.look, s.looked = look, now
	return nil
}

// lookOf returns when a look should have been taken last.
func lookOf(now time.Time) time.Time {
	minute := now.Truncate(time.Minute)
	if now.Sub(minute) < settleTime {
		return minute
	}
	return minute.Add(settleTime)
}

// enqueueDue enqueues the jobs of one schedule that are due.
func (s *Scheduler) enqueueDue(ctx context.Context, of Schedule, now time.Time) error {
	times, err := ParseSchedule(of.Type.Schedule, of.Type.Timezone)
	if err != nil {
		return err
	}
	if of.Since.Sub(now) > steadyLimit {
		return s.enqueueAnew(ctx, of, times, now)
	}
	latest := times.Latest(of.Since, now)
	if latest.IsZero() {
		return nil
	}
	for at := times.Next(s.from(of, latest, now)); !at.After(now); at = times.Next(at) {
		turn, err := s.store.EnqueueScheduled(ctx, of, at, now)
		if err != nil || turn == Elsewhere {
			return err // another worker is at it, or the schedule was changed
		}
		if turn == Skipped {
			s.log.Warn("a schedule skipped its time: too many of its jobs have not ended",
				"job_type", of.Type.Name, "time", at, "open", MaxScheduledOpen)
		}
		of.Since = at
	}
	return nil
}

// enqueueAnew is enqueueDue for a schedule that was enqueued last for a time in the future, by a
// clock that was wrong: it goes on as if that had been at the last look.
func (s *Scheduler) enqueueAnew(ctx context.Context, of Schedule, times Timetable, now time.Time) error {
	if s.looked.IsZero() || s.looked.After(now) {
		return nil // the next look has something to go by
	}
	at := times.Latest(s.looked, now)
	if at.IsZero() {
		return nil
	}
	_, err := s.store.EnqueueScheduled(ctx, of, at, now)
	return err
}

// from returns after what time jobs are enqueued, if there is a latest time to enqueue one for.
func (s *Scheduler) from(of Schedule, latest, now time.Time) time.Time {
	from := latest.Add(-time.Nanosecond)
	if s.looked.Before(from) && now.Sub(s.looked) <= steadyLimit {
		from = s.looked
	}
	if from.Before(of.Since) {
		from = of.Since
	}
	return from
}
