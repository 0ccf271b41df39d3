package machines

import "time"

// Latest returns the last instant after one time, but not after now, at which a timed trigger
// fires; false if there is none. So missed instants are made up for once. A trigger whose zone is
// named by metadata needs that zone: nil if a label names none, which never triggers.
func (t Trigger) Latest(after, now time.Time, metadata *time.Location) (time.Time, bool) {
	zone := t.Zone.of(metadata)
	switch {
	case t.Interval > 0:
		at := t.floor(now)
		return at, at.After(after)
	case t.TimeOfDay == nil || zone == nil:
		return time.Time{}, false
	}
	for days := 1; days >= -maxSkipped; days-- {
		if at, ok := t.TimeOfDay.near(now.In(zone), days); ok && !at.After(now) {
			return at, at.After(after)
		}
	}
	return time.Time{}, false
}

// Next returns the first instant after a time at which a timed trigger fires; false if it never
// does. The zone is as for [Trigger.Latest].
func (t Trigger) Next(after time.Time, metadata *time.Location) (time.Time, bool) {
	zone := t.Zone.of(metadata)
	switch {
	case t.Interval > 0:
		return t.floor(after).Add(t.Interval), true
	case t.TimeOfDay == nil || zone == nil:
		return time.Time{}, false
	}
	for days := -1; days <= maxSkipped; days++ {
		if at, ok := t.TimeOfDay.near(after.In(zone), days); ok && at.After(after) {
			return at, true
		}
	}
	return time.Time{}, false
}

// maxSkipped is how many days away the next or last time is at most: a zone that crosses the date
// line leaves out a day.
const maxSkipped = 2

// of is the zone of a label whose metadata names one, or nil if it names none.
func (z Zone) of(metadata *time.Location) *time.Location {
	switch {
	case len(z.Metadata) > 0:
		return metadata
	case z.Location != nil:
		return z.Location
	}
	return time.Local
}

// floor is the last multiple of the interval that is not after a time.
func (t Trigger) floor(at time.Time) time.Time {
	// In ms, since time.Duration reaches to 2262 only.
	ms, interval := at.UnixMilli(), t.Interval.Milliseconds()
	past := ms % interval
	if past < 0 {
		past += interval
	}
	return time.UnixMilli(ms - past)
}

// near is the instant of the time of day some days from a time; false if that day does not exist
// where the time's zone is.
func (t TimeOfDay) near(at time.Time, days int) (time.Time, bool) {
	year, month, day := at.Date()
	day += days
	midnight := TimeOfDay(0).on(year, month, day, at.Location())
	return t.on(year, month, day, at.Location()), midnight.Day() == time.Date(year, month, day, 0, 0, 0, 0, time.UTC).Day()
}

// on is the instant of the time of day on a date: the first of two, and the end of the gap if
// clocks pass over it.
func (t TimeOfDay) on(year int, month time.Month, day int, zone *time.Location) time.Time {
	at := time.Date(year, month, day, 0, 0, int(t), 0, zone) // correct on one side of a change
	start, end := at.ZoneBounds()
	_, offset := at.Zone()
	wanted := time.Date(year, month, day, 0, 0, int(t), 0, time.UTC).Unix()
	switch shown := at.Unix() + int64(offset); {
	case shown > wanted: // at is behind the gap
		return start
	case shown < wanted:
		return end
	case start.IsZero():
		return at
	}
	_, before := start.Add(-1).Zone()
	first := at.Add(time.Duration(offset-before) * time.Second)
	if first.Before(start) { // it is when clocks were not yet set back
		return first
	}
	return at
}
