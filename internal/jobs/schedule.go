package jobs

import (
	"time"

	_ "time/tzdata" // 410 kB of program, so that a host without zone files knows the same zones

	cron "github.com/netresearch/go-cron"
)

// Timetable is the times of a cron expression in a time zone. It is safe for concurrent use.
//
// An expression has five fields: minute (0-59), hour (0-23), day of the month (1-31), month (1-12
// or jan-dec) and day of the week (0-7 or sun-sat; 0 and 7 are Sunday). A field is *, or numbers,
// ranges and steps (5, 1-5, */15, 10-40/10) with commas between them; 22-2 and fri-mon go around.
// If both days are given, a time comes on either; if one of them begins with *, on days that are
// both. This is as in crontab(5).
//
// Where clocks are changed, a schedule follows the clock on the wall: a time that comes twice
// counts the first time, and a time that is left out counts as the moment of the change. One for
// every hour of the day does not: its times are evenly spaced, so both hours of the same name
// count, and the hour that is left out does not.
type Timetable struct {
	// times are computed on a clock that never changes: UTC stands for the clock on the wall.
	times     *cron.SpecSchedule
	zone      *time.Location
	everyHour bool
}

// clockPeriod is a time during which the clocks of a zone are not changed.
type clockPeriod struct {
	start, end time.Time // zero for no start, or no end
	offset     time.Duration
	// first is where the clock on the wall stood when the period began, at the earliest reading that
	// counts; as UTC. It is zero if start is.
	first time.Time
}

// cronStep is the step of package cron, whose times begin after the one that is given.
const cronStep = time.Second

// Next returns the first time after a time, in UTC.
func (s Timetable) Next(after time.Time) time.Time {
	p := s.period(after)
	wall := after.UTC().Add(p.offset)
	if earliest := p.first.Add(-cronStep); earliest.After(wall) {
		wall = earliest // hours that were repeated by a change of the clocks do not count
	}
	for {
		wall = s.times.Next(wall)
		if wall.IsZero() {
			return wall // not for a schedule of [ParseSchedule]
		}
		at := wall.Add(-p.offset)
		if at.Before(p.start) {
			at = p.start // the clock on the wall left it out
		}
		if p.end.IsZero() || at.Before(p.end) {
			return at
		}
		p = s.period(p.end)
		wall = p.first.Add(-cronStep)
	}
}

func (s Timetable) period(at time.Time) (p clockPeriod) {
	at = at.In(s.zone)
	p.start, p.end = at.ZoneBounds()
	_, offset := at.Zone()
	p.offset = time.Duration(offset) * time.Second
	if p.start.IsZero() {
		return p
	}
	p.start = p.start.UTC()
	p.first = p.start.Add(p.offset)
	if !s.everyHour {
		// The clock goes on where it stood before, as far as this schedule is concerned.
		_, before := p.start.Add(-1).In(s.zone).Zone()
		p.first = p.start.Add(time.Duration(before) * time.Second)
	}
	return p
}

// Latest returns the last time that is after one time and not after another; zero if there is none.
// It takes some time steps, however far apart they are.
func (s Timetable) Latest(after, until time.Time) (latest time.Time) {
	for back := time.Minute; latest.IsZero(); back *= 2 {
		from := until.Add(-back)
		if from.Before(after) {
			from = after
		}
		for at := s.Next(from); !at.IsZero() && !at.After(until); at = s.Next(at) {
			latest = at
		}
		if from.Equal(after) {
			break
		}
	}
	return latest
}
