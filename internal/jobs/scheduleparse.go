package jobs

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	cron "github.com/netresearch/go-cron"
)

// cronFields are the fields of an expression, and their values.
var cronFields = [...]struct{ name, values string }{
	{"minute", "0-59"},
	{"hour", "0-23"},
	{"day of the month", "1-31"},
	{"month", "1-12 or jan-dec"},
	{"day of the week", "0-7 or sun-sat"},
}

// maxExpression bounds an expression, in bytes.
const maxExpression = 256

// cronParser reads expressions. Within eight years, each date comes that there is: also 29
// February, around a year such as 2100.
var cronParser = cron.MustNewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.DowOrDom).WithMaxSearchYears(8)

// cronField matches the form of one field. The parser, which also checks the values, allows more.
var cronField = regexp.MustCompile(`^` + cronItem + `(,` + cronItem + `)*$`)

const cronItem = `(\*|[0-9A-Za-z]+(-[0-9A-Za-z]+)?)(/[0-9]+)?`

// starBit marks a field that has a * in the library's schedules.
const starBit = 1 << 63

// allHours are the bits of the hours of a day.
const allHours = 1<<24 - 1

// ParseSchedule reads a cron expression of five fields, whose times are in a zone of the IANA
// database, or in UTC if none is given. The error says how to correct the expression.
func ParseSchedule(expression, timezone string) (Timetable, error) {
	zone, err := loadZone(timezone)
	if err != nil {
		return Timetable{}, err
	}
	if len(expression) > maxExpression {
		return Timetable{}, fmt.Errorf("a schedule has at most %d characters", maxExpression)
	}
	texts := strings.Fields(expression)
	if len(texts) != len(cronFields) {
		return Timetable{}, fmt.Errorf("a schedule has five fields (minute, hour, day of the month, month, day of the week), not %d: "+
			`"0 6 * * *" is every day at 6:00`, len(texts))
	}
	for i, text := range texts {
		if err := checkField(i, text); err != nil {
			return Timetable{}, err
		}
	}
	parsed, err := cronParser.Parse(strings.Join(texts, " "))
	if err != nil {
		return Timetable{}, fmt.Errorf("the schedule cannot be read: %w", err)
	}
	times, ok := parsed.(*cron.SpecSchedule)
	if !ok {
		return Timetable{}, errors.New("the schedule has to name its times")
	}
	// As cronie's entry.c: the first character decides. The library marks a field with a * anywhere.
	times.DowOrDom = !strings.HasPrefix(texts[2], "*") && !strings.HasPrefix(texts[4], "*")
	times.Dom, times.Dow = times.Dom&^starBit, times.Dow&^starBit
	s := Timetable{times: times, zone: zone, everyHour: times.Hour&allHours == allHours}
	if s.times.Next(time.Unix(0, 0).UTC()).IsZero() {
		return Timetable{}, errors.New("the schedule names a day that never comes: a month does not have it")
	}
	return s, nil
}

// checkField checks one field by itself, so that the error can name it.
func checkField(i int, text string) error {
	others := [...]string{"*", "*", "*", "*", "*"}
	others[i] = text
	_, err := cronParser.Parse(strings.Join(others[:], " "))
	if err == nil && cronField.MatchString(text) {
		return nil
	}
	f := cronFields[i]
	return fmt.Errorf("the schedule's field %d, %s, cannot be %q: it takes *, or some of %s, as in 5 or 1-5 or */2 or 1,5",
		i+1, f.name, text, f.values)
}

// loadZone returns a time zone. It refuses Local of time.LoadLocation, which differs between hosts.
func loadZone(name string) (*time.Location, error) {
	if name == "" {
		return time.UTC, nil
	}
	zone, err := time.LoadLocation(name)
	if err != nil || zone == time.Local {
		return nil, fmt.Errorf("there is no time zone %q: name one of the IANA database, such as Europe/Berlin or UTC", name)
	}
	return zone, nil
}
