package view

import (
	"fmt"
	"html/template"
	"strings"
	"time"

	"routemaster/internal/format"
	"routemaster/internal/overview"
)

// Functions are the functions for templates.
func Functions() template.FuncMap {
	return template.FuncMap{
		"icon": Icon, "icons": Icons, "arrow": arrow, "definition": Definition, "definitions": definitions, "column": ColumnHead, "state": State, "severityIcon": SeverityIcon,
		"sparkline": Sparkline, "bar": Bar,
		"clock": Clock, "clockMinute": ClockMinute, "ago": Ago, "agoAt": AgoAt, "span": Span,
		"slug":  slug,
		"count": anyCount, "plural": plural, "rate": format.Rate, "age": format.Age, "share": format.Share,
		"megabytes": format.Megabytes, "brief": format.Brief,
	}
}

// anyCount writes an integer of any of the types that figures have. A nil pointer is not known.
func anyCount(n any) string {
	if known, ok := integer(n); ok {
		return format.Count(known)
	}
	return format.Unknown
}

// plural is [anyCount] with the name of the counted things.
func plural(n any, thing string) string {
	if known, ok := integer(n); ok {
		return format.Plural(known, thing)
	}
	return format.Unknown
}

func integer(n any) (value int64, known bool) {
	switch n := n.(type) {
	case int:
		return int64(n), true
	case int64:
		return n, true
	case *int64:
		if n != nil {
			return *n, true
		}
	}
	return 0, false
}

// slug makes a word that can be a class or an id.
func slug(word any) string {
	return strings.ReplaceAll(strings.ToLower(fmt.Sprint(word)), " ", "-")
}

// Clock writes a time of day in UTC, to the second. Where the reader wants his own time zone, a
// script rewrites it from its datetime attribute.
func Clock(at any) template.HTML {
	return element(at, "", func(t time.Time) string { return t.Format("15:04:05") })
}

// ClockMinute is [Clock] to the minute.
func ClockMinute(at any) template.HTML {
	return element(at, "", func(t time.Time) string { return t.Format("15:04") })
}

// Ago writes how long before now a time was; the time itself is in its title.
func Ago(at any, now time.Time) template.HTML {
	return element(at, "data-ago ", func(t time.Time) string { return Span(now.Sub(t)) + " ago" })
}

// AgoAt is [Ago] with the time itself beside it, where there is room, for visitors without a
// pointer.
func AgoAt(at any, now time.Time) template.HTML {
	exact := element(at, "data-exact ", func(t time.Time) string { return t.Format(exactly) })
	if exact == format.Unknown {
		return exact
	}
	return Ago(at, now) + ` <small class="exact">` + exact + `</small>`
}

// exactly is how times are written in full, in UTC.
const exactly = "2006-01-02 15:04:05 UTC"

// element is a time element.
func element(at any, attribute string, write func(time.Time) string) template.HTML {
	t := timeOf(at)
	if t.IsZero() {
		return format.Unknown
	}
	t = t.UTC()
	return template.HTML(`<time ` + attribute + `datetime="` + t.Format("2006-01-02T15:04:05.000Z") + `" title="` +
		t.Format(exactly) + `">` + write(t) + `</time>`)
}

// Span writes a duration as a number of its largest unit.
func Span(d time.Duration) string {
	switch seconds := d.Seconds(); {
	case seconds < 10:
		seconds = max(seconds, 0)
		return format.Age(&seconds)
	case d < time.Minute:
		return format.Count(int64(seconds)) + " s"
	case d < time.Hour:
		return format.Count(int64(d.Minutes())) + " min"
	case d < 48*time.Hour:
		return format.Count(int64(d.Hours())) + " h"
	default:
		return format.Count(int64(d.Hours())/24) + " d"
	}
}

func timeOf(at any) time.Time {
	switch at := at.(type) {
	case time.Time:
		return at
	case overview.Time:
		return at.Time
	}
	return time.Time{}
}
