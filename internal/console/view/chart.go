package view

import (
	"html/template"
	"math"
	"strings"
	"time"

	"routemaster/internal/format"
	"routemaster/internal/overview"
)

// Chart is a chart, and its figures as a table for screen readers.
type Chart struct {
	// Trends describe the lines in words, except lines without data.
	ID, Title, Series string
	// Lines are the series that it draws.
	Lines []Line
	// Ranges are the names of how far back it may go, the first one as the page is opened.
	Ranges []string
	// Trends describe the lines in words, except lines without data.
	Trends []Trend
	// Means stand beside the trends, nil on most charts.
	Means *Means
	// Rows are the rows of a table of the figures of the last minutes, newest first. They are not left
	// to the template, which takes its time for each of so many values.
	Rows template.HTML
}

// Line is a series of a chart.
type Line struct {
	// Name is a column of GET /overview/series; Title is for people. Figure is the name of its
	// definition.
	Name, Title, Figure string

	of    overview.Figure
	write func(*float64) string
}

// The lines of charts.
var (
	In        = Line{"in", "In/s", "in/s", overview.In, format.Rate}
	Out       = Line{"out", "Out/s", "out/s", overview.Out, format.Rate}
	Succeeded = Line{"succeeded", "Delivered", "delivered", overview.Succeeded, whole}
	Failed    = Line{"failed", "Failed", "failed deliveries", overview.Failed, whole}
	Dropped   = Line{"dropped", "Dropped", "dropped", overview.Dropped, whole}
	Queued    = Line{"queued", "Queued", "queued", overview.Queued, whole}
	Oldest    = Line{"oldest", "Oldest", "oldest", overview.Oldest, format.Age}
	Dead      = Line{"dead", "In dead letters", "events in dead letters", overview.Dead, whole}
	Busy      = Line{"busy", "Busy threads", "busy", overview.Busy, format.Share}
)

func whole(n *float64) string {
	if n == nil {
		return format.Unknown
	}
	return format.Count(int64(math.Round(*n)))
}

// tableStep is the time between two rows of a chart's table.
const tableStep = time.Minute

// Figures are the names of the definitions of the lines, and of the means.
func (c Chart) Figures() []string {
	names := c.ofLines(func(l Line) string { return l.Figure })
	if c.Means != nil {
		names = append(names, "mean delivery", "mean age")
	}
	return names
}

// RangeNames are the ranges, as chart.js reads them.
func (c Chart) RangeNames() string { return strings.Join(c.Ranges, " ") }

// LineNames are the names of the lines, as chart.js reads them.
func (c Chart) LineNames() string {
	return strings.Join(c.ofLines(func(l Line) string { return l.Name }), " ")
}

// LineTitles are the titles of the lines, as chart.js reads them.
func (c Chart) LineTitles() string {
	return strings.Join(c.ofLines(func(l Line) string { return l.Title }), "|")
}

func (c Chart) ofLines(of func(Line) string) []string {
	all := make([]string, len(c.Lines))
	for i, line := range c.Lines {
		all[i] = of(line)
	}
	return all
}

// NewChart makes a chart of a subject.
func NewChart(id, title string, of overview.Subject, tracks overview.Tracks, lines ...Line) Chart {
	c := Chart{ID: id, Title: title, Series: series(of), Lines: lines, Ranges: []string{overview.Fast.Name, overview.Slow.Name}}
	if of == (overview.Subject{}) {
		c.Ranges = append(c.Ranges, overview.Day.Name)
	}
	for _, line := range lines {
		if t, known := trendOf(of, tracks, line); known {
			c.Trends = append(c.Trends, t)
		}
	}
	if track, ok := tracks(of, overview.Fast); ok && track.Step > 0 {
		c.Rows = rowsOf(track, lines)
	}
	return c
}

// rowsOf writes the rows of a chart's table.
func rowsOf(track overview.Track, lines []Line) template.HTML {
	values := make([][]float32, len(lines))
	for i, line := range lines {
		values[i] = track.Values(line.of)
	}
	var rows strings.Builder
	rows.Grow(4 << 10)
	for i := track.Steps - 1; i >= 0; i -= max(int(tableStep/track.Step), 1) {
		at := track.End.Add(-time.Duration(track.Steps-1-i) * track.Step)
		rows.WriteString(`<tr><th scope="row">` + string(Clock(at)) + `</th>`)
		for n, line := range lines {
			rows.WriteString(`<td class="number">` + template.HTMLEscapeString(line.write(ifKnown(values[n][i]))) + `</td>`)
		}
		rows.WriteString("</tr>\n")
	}
	return template.HTML(rows.String())
}

// series names a subject as the API does.
func series(of overview.Subject) string {
	switch {
	case of.Subscriber != "":
		return "subscriber/" + of.Subscriber
	case of.Topic != "":
		return "topic/" + of.Topic
	}
	return "bus"
}

// Spark is a line of the last 15 minutes; it is empty if the history has nothing of the subject.
func Spark(of overview.Subject, tracks overview.Tracks, line Line) (values []float32) {
	track, ok := tracks(of, overview.Fast)
	if !ok {
		return nil
	}
	return track.Values(line.of)
}
