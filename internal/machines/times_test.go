package machines_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/machines"
)

func daily(hour, minute int, zone machines.Zone) machines.Trigger {
	t := machines.TimeOfDay(hour*3600 + minute*60)
	return machines.Trigger{TimeOfDay: &t, Zone: zone}
}

func location(t *testing.T, name string) *time.Location {
	t.Helper()
	zone, err := time.LoadLocation(name)
	require.NoError(t, err)
	return zone
}

func utc(t *testing.T, text string) time.Time {
	t.Helper()
	at, err := time.Parse("2006-01-02 15:04", text)
	require.NoError(t, err)
	return at
}

// TestFirings asks for all instants of a range, once forwards and once backwards.
func TestFirings(t *testing.T) {
	interval := func(d time.Duration) machines.Trigger { return machines.Trigger{Interval: d} }
	in := func(zone string, hour, minute int) machines.Trigger {
		return daily(hour, minute, machines.Zone{Location: location(t, zone)})
	}
	for name, c := range map[string]struct {
		trigger     machines.Trigger
		after, last string
		want        []string
	}{
		"20 minutes":             {interval(20 * time.Minute), "2026-08-01 12:00", "2026-08-01 12:40", []string{"2026-08-01 12:20", "2026-08-01 12:40"}},
		"a week, from 1970":      {interval(7 * 24 * time.Hour), "2026-08-01 00:00", "2026-08-14 00:00", []string{"2026-08-06 00:00", "2026-08-13 00:00"}},
		"before 1970":            {interval(time.Hour), "1969-12-31 22:30", "1970-01-01 00:00", []string{"1969-12-31 23:00", "1970-01-01 00:00"}},
		"daily":                  {in("UTC", 18, 30), "2026-08-01 18:30", "2026-08-03 18:30", []string{"2026-08-02 18:30", "2026-08-03 18:30"}},
		"London in summer":       {in("Europe/London", 13, 0), "2026-08-01 11:59", "2026-08-01 12:01", []string{"2026-08-01 12:00"}},
		"London, an hour early":  {in("Europe/London", 12, 0), "2026-08-01 11:59", "2026-08-01 12:01", nil},
		"London in winter":       {in("Europe/London", 13, 0), "2026-12-01 11:59", "2026-12-01 13:00", []string{"2026-12-01 13:00"}},
		"Tokyo before 09:00":     {in("Asia/Tokyo", 8, 30), "2026-08-01 00:00", "2026-08-02 23:59", []string{"2026-08-01 23:30", "2026-08-02 23:30"}},
		"New York after 20:00":   {in("America/New_York", 21, 15), "2026-08-01 00:00", "2026-08-03 01:15", []string{"2026-08-01 01:15", "2026-08-02 01:15", "2026-08-03 01:15"}},
		"east of the date line":  {in("Pacific/Kiritimati", 0, 5), "2026-08-01 00:00", "2026-08-02 12:00", []string{"2026-08-01 10:05", "2026-08-02 10:05"}},
		"west of the date line":  {in("Etc/GMT+12", 23, 55), "2026-08-01 00:00", "2026-08-02 12:00", []string{"2026-08-01 11:55", "2026-08-02 11:55"}},
		"in the gap":             {in("Europe/Berlin", 2, 30), "2026-03-28 00:00", "2026-03-30 12:00", []string{"2026-03-28 01:30", "2026-03-29 01:00", "2026-03-30 00:30"}},
		"behind the gap":         {in("Europe/Berlin", 3, 0), "2026-03-28 12:00", "2026-03-29 12:00", []string{"2026-03-29 01:00"}},
		"twice":                  {in("Europe/Berlin", 2, 30), "2026-10-24 12:00", "2026-10-26 12:00", []string{"2026-10-25 00:30", "2026-10-26 01:30"}},
		"twice, before midnight": {in("America/Nuuk", 23, 30), "2026-10-24 12:00", "2026-10-26 12:00", []string{"2026-10-25 00:30", "2026-10-26 01:30"}},
		"a gap up to midnight":   {in("America/Nuuk", 23, 30), "2026-03-27 12:00", "2026-03-30 12:00", []string{"2026-03-28 01:30", "2026-03-29 01:00", "2026-03-30 00:30"}},
		"a gap from midnight":    {in("Africa/Cairo", 0, 30), "2026-04-23 12:00", "2026-04-24 22:00", []string{"2026-04-23 22:00", "2026-04-24 21:30"}},
		"twice around midnight":  {in("America/St_Johns", 0, 0), "2010-11-06 12:00", "2010-11-08 12:00", []string{"2010-11-07 02:30", "2010-11-08 03:30"}},
		"a day that is left out": {in("Pacific/Apia", 18, 30), "2011-12-29 12:00", "2012-01-01 12:00", []string{"2011-12-30 04:30", "2011-12-31 04:30", "2012-01-01 04:30"}},
	} {
		t.Run(name, func(t *testing.T) {
			after, last := utc(t, c.after), utc(t, c.last)
			var forwards, backwards []string
			for at := after; ; {
				next, ok := c.trigger.Next(at, nil)
				if !ok || next.After(last) {
					break
				}
				require.True(t, next.After(at))
				forwards, at = append(forwards, next.UTC().Format("2006-01-02 15:04")), next
			}
			for at := last; ; at = at.Add(-time.Nanosecond) {
				latest, ok := c.trigger.Latest(after, at, nil)
				if !ok {
					break
				}
				require.False(t, latest.After(at))
				backwards, at = append([]string{latest.UTC().Format("2006-01-02 15:04")}, backwards...), latest
			}
			assert.Equal(t, c.want, forwards)
			assert.Equal(t, c.want, backwards)
		})
	}
}

func TestALatePollFiresOnce(t *testing.T) {
	trigger := daily(13, 0, machines.Zone{Location: location(t, "Europe/London")})
	poll := utc(t, "2026-08-04 07:00") // three days late
	at, ok := trigger.Latest(utc(t, "2026-08-01 11:00"), poll, nil)
	require.True(t, ok)
	assert.Equal(t, utc(t, "2026-08-03 12:00"), at.UTC())
	_, ok = trigger.Latest(poll, poll.Add(time.Hour), nil)
	assert.False(t, ok)
}

func TestZoneOfMetadata(t *testing.T) {
	trigger := daily(13, 0, machines.Zone{Metadata: []string{"timezone"}})
	after, now := utc(t, "2026-08-01 11:59"), utc(t, "2026-08-01 12:00")
	for name, zone := range map[string]*time.Location{"none": nil, "UTC": time.UTC, "London": location(t, "Europe/London")} {
		_, fires := trigger.Latest(after, now, zone)
		assert.Equal(t, name == "London", fires, name)
	}
	_, ok := trigger.Next(now, nil)
	assert.False(t, ok, "labels without a zone are never triggered")
}

func TestWithoutAZoneItIsTheProcess(t *testing.T) {
	at, ok := daily(13, 0, machines.Zone{}).Next(utc(t, "2026-08-01 00:00"), nil)
	require.True(t, ok)
	assert.Equal(t, 13, at.In(time.Local).Hour())
}

func TestUntimedTriggersNeverFire(t *testing.T) {
	for _, trigger := range []machines.Trigger{{Entry: true}, {Metadata: []string{"a"}}, {Topic: &machines.TopicTrigger{}}} {
		_, next := trigger.Next(time.Now(), nil)
		_, latest := trigger.Latest(time.Time{}, time.Now(), nil)
		assert.False(t, next || latest, trigger.String())
	}
}
