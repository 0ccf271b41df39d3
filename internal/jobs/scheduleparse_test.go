package jobs_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/jobs"
)

func TestParseSaysWhatToChange(t *testing.T) {
	const (
		count = `a schedule has five fields (minute, hour, day of the month, month, day of the week), not `
		never = "the schedule names a day that never comes: a month does not have it"
		takes = ", as in 5 or 1-5 or */2 or 1,5"
	)
	minute := func(text string) string {
		return `the schedule's field 1, minute, cannot be "` + text + `": it takes *, or some of 0-59` + takes
	}
	for expression, want := range map[string]string{
		"":                       count + `0: "0 6 * * *" is every day at 6:00`,
		"* * * *":                count + `4: "0 6 * * *" is every day at 6:00`,
		"0 * * * * *":            count + `6: "0 6 * * *" is every day at 6:00`,
		"@every 5m":              count + `2: "0 6 * * *" is every day at 6:00`,
		"@daily":                 count + `1: "0 6 * * *" is every day at 6:00`,
		"60 * * * *":             minute("60"),
		"-5 * * * *":             minute("-5"),
		"+5 * * * *":             minute("+5"),
		"*-5 * * * *":            minute("*-5"),
		"1,,2 * * * *":           minute("1,,2"),
		", * * * *":              minute(","),
		"*/0 * * * *":            minute("*/0"),
		"*/61 * * * *":           minute("*/61"),
		"1.5 * * * *":            minute("1.5"),
		"H * * * *":              minute("H"),
		"CRON_TZ=UTC * * * *":    minute("CRON_TZ=UTC"),
		"0 24 * * *":             `the schedule's field 2, hour, cannot be "24": it takes *, or some of 0-23` + takes,
		"0 0 L * *":              `the schedule's field 3, day of the month, cannot be "L": it takes *, or some of 1-31` + takes,
		"0 0 0 * *":              `the schedule's field 3, day of the month, cannot be "0": it takes *, or some of 1-31` + takes,
		"0 0 * 13 *":             `the schedule's field 4, month, cannot be "13": it takes *, or some of 1-12 or jan-dec` + takes,
		"0 0 * * 8":              `the schedule's field 5, day of the week, cannot be "8": it takes *, or some of 0-7 or sun-sat` + takes,
		"0 0 * * 5#3":            `the schedule's field 5, day of the week, cannot be "5#3": it takes *, or some of 0-7 or sun-sat` + takes,
		"0 0 30 2 *":             never,
		"0 0 31 2,4,jun,9,11 *":  never,
		strings.Repeat("*", 257): "a schedule has at most 256 characters",
	} {
		_, err := jobs.ParseSchedule(expression, "Europe/Berlin")
		assert.EqualError(t, err, want, "%q", expression)
	}
	for _, zone := range []string{"Local", "Europe/Bielefeld", "../etc/passwd", "CEST+2"} {
		_, err := jobs.ParseSchedule("* * * * *", zone)
		assert.EqualError(t, err, `there is no time zone "`+zone+`": name one of the IANA database, such as Europe/Berlin or UTC`)
	}
}

func FuzzParse(f *testing.F) {
	for _, expression := range []string{"*/15 1-5,7 1 jan-mar sun", "0 0 29 2 *", "0 0 31 2 1", "@daily", "TZ= * * * *"} {
		f.Add(expression, "America/New_York")
	}
	now := time.Date(2026, 11, 1, 4, 30, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, expression, zone string) {
		s, err := jobs.ParseSchedule(expression, zone)
		if err != nil {
			return
		}
		next := s.Next(now)
		require.True(t, next.After(now))
		require.False(t, s.Next(next.Add(-1)).After(next))
		require.Equal(t, next, s.Latest(now, next))
	})
}
