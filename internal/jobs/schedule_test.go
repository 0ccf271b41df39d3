package jobs_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/jobs"
)

func parse(t *testing.T, expression, zone string) jobs.Timetable {
	t.Helper()
	s, err := jobs.ParseSchedule(expression, zone)
	require.NoError(t, err, "%q in %s", expression, zone)
	return s
}

// timeLayout shows a time with its offset, so that both hours of the same name differ.
const timeLayout = "2006-01-02 15:04 -07:00"

func atInZone(t *testing.T, text string) time.Time {
	t.Helper()
	moment, err := time.Parse(timeLayout, text)
	require.NoError(t, err)
	return moment
}

func TestNext(t *testing.T) {
	for name, c := range map[string]struct {
		expression, zone, after string
		want                    []string
	}{
		"every quarter":               {"*/15 * * * *", "", "2026-11-22 10:44 +00:00", []string{"2026-11-22 10:45 +00:00", "2026-11-22 11:00 +00:00"}},
		"after, not at":               {"0 6 * * *", "UTC", "2026-11-22 06:00 +00:00", []string{"2026-11-23 06:00 +00:00"}},
		"either day":                  {"0 0 13 * fri", "", "2026-11-07 00:00 +00:00", []string{"2026-11-13 00:00 +00:00", "2026-11-20 00:00 +00:00"}},
		"both days, a step":           {"0 0 */10 * fri", "", "2026-11-02 00:00 +00:00", []string{"2026-12-11 00:00 +00:00", "2027-01-01 00:00 +00:00"}},
		"both days, the other":        {"0 0 13 * */5", "", "2026-11-02 00:00 +00:00", []string{"2026-11-13 00:00 +00:00", "2026-12-13 00:00 +00:00"}},
		"both days, a step of a list": {"0 0 */15,3 * 2", "", "2026-11-02 00:00 +00:00", []string{"2026-11-03 00:00 +00:00", "2026-12-01 00:00 +00:00"}},
		"either day, a later star":    {"0 0 5,* * 1", "", "2026-11-03 00:00 +00:00", []string{"2026-11-04 00:00 +00:00", "2026-11-05 00:00 +00:00"}},
		"either day, the other":       {"0 0 5 * 1,*", "", "2026-11-03 00:00 +00:00", []string{"2026-11-04 00:00 +00:00", "2026-11-05 00:00 +00:00"}},
		"both days, a star of a list": {"0 0 *,5 * 1", "", "2026-11-03 00:00 +00:00", []string{"2026-11-09 00:00 +00:00", "2026-11-16 00:00 +00:00"}},
		"one day, stars":              {"0 0 * * *,1", "", "2026-11-03 00:00 +00:00", []string{"2026-11-04 00:00 +00:00"}},
		"either day, a later step":    {"0 0 3,*/15 * 2", "", "2026-11-02 00:00 +00:00", []string{"2026-11-03 00:00 +00:00", "2026-11-10 00:00 +00:00"}},
		"Sunday is 7":                 {"0 0 * * 7", "", "2026-11-21 12:00 +00:00", []string{"2026-11-22 00:00 +00:00"}},
		"around":                      {"0 22-1/3 * * *", "", "2026-11-21 12:00 +00:00", []string{"2026-11-21 22:00 +00:00", "2026-11-22 01:00 +00:00"}},
		"leap day":                    {"0 0 29 FEB *", "", "2096-03-01 00:00 +00:00", []string{"2104-02-29 00:00 +00:00"}},
		"half an hour":                {"0 6 * * *", "Asia/Kolkata", "2026-11-22 00:00 +00:00", []string{"2026-11-22 06:00 +05:30"}},

		"left out":            {"30 2 * * *", "Europe/Berlin", "2026-03-28 02:30 +01:00", []string{"2026-03-29 03:00 +02:00", "2026-03-30 02:30 +02:00"}},
		"left out in a range": {"*/30 1-3 * * *", "Europe/Berlin", "2026-03-29 01:00 +01:00", []string{"2026-03-29 01:30 +01:00", "2026-03-29 03:00 +02:00", "2026-03-29 03:30 +02:00"}},
		"left out, evenly":    {"30 * * * *", "Europe/Berlin", "2026-03-29 01:00 +01:00", []string{"2026-03-29 01:30 +01:00", "2026-03-29 03:30 +02:00"}},
		"twice":               {"30 2 * * *", "Europe/Berlin", "2026-10-24 02:30 +02:00", []string{"2026-10-25 02:30 +02:00", "2026-10-26 02:30 +01:00"}},
		"asked between":       {"30 2 * * *", "Europe/Berlin", "2026-10-25 02:10 +01:00", []string{"2026-10-26 02:30 +01:00"}},
		"twice in a range":    {"*/30 2-3 * * *", "Europe/Berlin", "2026-10-25 02:00 +02:00", []string{"2026-10-25 02:30 +02:00", "2026-10-25 03:00 +01:00"}},
		"twice, evenly":       {"*/30 * * * *", "Europe/Berlin", "2026-10-25 02:00 +02:00", []string{"2026-10-25 02:30 +02:00", "2026-10-25 02:00 +01:00", "2026-10-25 02:30 +01:00", "2026-10-25 03:00 +01:00"}},
		"all hours by number": {"30 0-23 * * *", "Europe/Berlin", "2026-10-25 02:00 +02:00", []string{"2026-10-25 02:30 +02:00", "2026-10-25 02:30 +01:00"}},
		"half an hour twice":  {"45 1 * * *", "Australia/Lord_Howe", "2026-04-04 12:00 +11:00", []string{"2026-04-05 01:45 +11:00", "2026-04-06 01:45 +10:30"}},
		"no midnight":         {"0 0 4 * *", "America/Sao_Paulo", "2018-11-03 12:00 -03:00", []string{"2018-11-04 01:00 -02:00", "2018-12-04 00:00 -02:00"}},
		"no such day":         {"0 6 30 12 *", "Pacific/Apia", "2011-12-01 00:00 -10:00", []string{"2011-12-31 00:00 +14:00", "2012-12-30 06:00 +14:00"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := parse(t, c.expression, c.zone)
			next := atInZone(t, c.after)
			for _, want := range c.want {
				next = s.Next(next)
				assert.Equal(t, time.UTC, next.Location())
				assert.Equal(t, want, next.In(atInZone(t, want).Location()).Format(timeLayout))
			}
		})
	}
}

// The clocks of each zone are watched over a change, minute by minute.
func TestNextFollowsTheClockOnTheWall(t *testing.T) {
	for zone, change := range map[string]string{
		"Europe/Berlin": "2026-03-29 01:00 +00:00", "Europe/London": "2026-10-25 01:00 +00:00", "America/New_York": "2026-11-01 06:00 +00:00",
		"Australia/Lord_Howe": "2026-04-04 15:00 +00:00", "America/Sao_Paulo": "2018-11-04 03:00 +00:00", "Pacific/Apia": "2011-12-30 10:00 +00:00",
	} {
		clock, err := time.LoadLocation(zone)
		require.NoError(t, err)
		begin := atInZone(t, change).Add(-4 * time.Hour)
		for _, expression := range []string{"*/20 * * * *", "0 * * * *", "10 0-3 * * *", "*/45 */2 * * *", "0 0 * * *", "15,30 2 * * 0"} {
			s, wall := parse(t, expression, zone), parse(t, expression, "UTC")
			shown := func(moment time.Time) time.Time {
				_, offset := moment.In(clock).Zone()
				return moment.UTC().Add(time.Duration(offset) * time.Second)
			}
			everyHour := expression[len(expression)-len("* * * *"):] == "* * * *"
			latest, next := shown(begin), s.Next(begin)
			for moment := begin.Add(time.Minute); moment.Before(begin.Add(8 * time.Hour)); moment = moment.Add(time.Minute) {
				reading := shown(moment)
				from := latest
				if everyHour {
					from = reading.Add(-time.Minute)
				}
				if comes := wall.Next(from); !comes.After(reading) {
					assert.Equal(t, moment.UTC(), next, "%s in %s", expression, zone)
					next = s.Next(next)
				}
				if reading.After(latest) {
					latest = reading
				}
			}
			assert.False(t, next.Before(begin.Add(8*time.Hour)), "%s in %s", expression, zone)
		}
	}
}

func TestLatest(t *testing.T) {
	const until = "2026-11-22 10:30 +00:00"
	for _, c := range []struct{ expression, after, want string }{
		{"* * * * *", "2026-11-22 10:29 +00:00", until},
		{"* * * * *", "2020-01-01 00:00 +00:00", until},
		{"* * * * *", until, ""},
		{"* * * * *", "2026-11-22 10:31 +00:00", ""}, // a clock was set back
		{"0 6 * * *", "2026-11-20 06:00 +00:00", "2026-11-22 06:00 +00:00"},
		{"0 6 * * *", "2026-11-22 06:00 +00:00", ""},
		{"*/7 5 * * *", "2026-11-20 06:00 +00:00", "2026-11-22 05:56 +00:00"},
		{"0 0 29 2 *", "1970-01-01 00:00 +00:00", "2024-02-29 00:00 +00:00"},
	} {
		latest := parse(t, c.expression, "").Latest(atInZone(t, c.after), atInZone(t, until))
		if c.want == "" {
			assert.Zero(t, latest, "%s after %s", c.expression, c.after)
			continue
		}
		assert.Equal(t, c.want, latest.Format(timeLayout), "%s after %s", c.expression, c.after)
	}
	assert.Equal(t, atInZone(t, until).UTC(), parse(t, "* * * * *", "").Latest(time.Time{}, atInZone(t, until)))
}
