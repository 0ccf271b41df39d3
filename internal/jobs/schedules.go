package jobs

import (
	"context"
	"time"

	"routemaster/internal/rdb"
)

// Schedule is a type that has one.
type Schedule struct {
	// Type has no ScheduleData: the step that enqueues the job reads it.
	Type Type
	// Since is the time that was enqueued last or, if none was, when the type was given its schedule.
	Since time.Time
}

// Schedules returns the types that have a schedule. Without any it costs one command. It fails with
// [bus.ErrUnavailable].
func (s *Store) Schedules(ctx context.Context) ([]Schedule, error) {
	since, err := s.redis.HGetAll(ctx, s.keys.Schedules()).Result()
	if err != nil || len(since) == 0 {
		return nil, rdb.Wrap("list schedules", err)
	}
	names := make([]string, 0, len(since))
	for name := range since {
		names = append(names, name)
	}
	types, err := s.readTypes(ctx, names...)
	schedules := make([]Schedule, len(types))
	for i, t := range types {
		schedules[i] = Schedule{t, fromMicros(since[string(t.Name)])}
	}
	return schedules, err
}

// Turn is the result of a time of a schedule.
type Turn string

// The turns.
const (
	// Enqueued is a time whose job was enqueued.
	Enqueued Turn = "enqueued"
	// Skipped is a time without a job: see [SkipReason].
	Skipped Turn = "skipped"
	// Elsewhere is a time that another process has dealt with, or that is over as the schedule was
	// changed meanwhile.
	Elsewhere Turn = "elsewhere"
)

// EnqueueScheduled enqueues the job of a schedule for a time, or skips that, which is then what
// [Schedule].Since says. It fails with [bus.ErrUnavailable].
func (s *Store) EnqueueScheduled(ctx context.Context, of Schedule, at, now time.Time) (Turn, error) {
	turn, err := s.redis.Run(ctx, scriptScheduleEnqueue, string(of.Type.Name), micros(of.Since), micros(at),
		string(ScheduledID(of.Type.Name, at.UnixMilli())), micros(now), MaxScheduledOpen).Value()
	return Turn(rdb.Text(turn)), rdb.Wrap("enqueue scheduled job", err)
}
