package bus

import (
	"regexp"
	"strings"
	"time"
)

// rfc3339 is the format, except for the number of days in a month. Package time also accepts other
// texts, such as hours of one digit and a comma before fractions (https://go.dev/issue/54580).
var rfc3339 = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$`)

// ParseTime reads a time in the format of RFC 3339, section 5.6, which allows t and z as well as T
// and Z, and the leap second at the end of a month.
func ParseTime(text string) (t time.Time, ok bool) {
	const seconds = len("2026-01-31T18:00")
	text = strings.ToUpper(text)
	if !rfc3339.MatchString(text) {
		return t, false
	}
	leap := text[seconds:seconds+3] == ":60"
	if leap {
		text = text[:seconds] + ":59" + text[seconds+3:]
	}
	if err := t.UnmarshalText([]byte(text)); err != nil {
		return t, false
	}
	if leap { // clocks here have none: it is the second after it
		t = t.Add(time.Second)
		utc := t.UTC()
		return t, utc.Day() == 1 && utc.Hour() == 0 && utc.Minute() == 0
	}
	return t, true
}
