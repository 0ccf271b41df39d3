package top

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"routemaster/internal/terminal"
	"routemaster/internal/top/stats"
)

// level says how a cell is to be looked at.
type level int

const (
	usual level = iota
	warning
	alarming
	// idle is what is nothing, or not known.
	idle
)

// cell is a place in a table.
type cell struct {
	text string
	// value is what rows are sorted by; without one the text is. What is not known stands last.
	value   float64
	unknown bool
	level   level
}

// row is one of a table: a cell for each column, and which topic, subscriber or job type of the
// figures it is.
type row struct {
	cells []cell
	of    int
}

func (r row) name() string { return r.cells[0].text }

// column is one of a table.
type column struct {
	// name is what --sort calls it.
	name, title string
	// width is in characters of the terminal. The first column takes what it needs, and what is left.
	width int
	// textual columns stand at the left, and begin with a.
	textual bool
	// rising columns have what matters at the small end.
	rising bool
	// spare columns are left out of a narrow screen, those with the highest number first; 0 stays.
	spare int
}

// table is one of the lists of the screen.
type table struct {
	title   string
	columns []column
	// all are the rows there are, rows those that pass the filter, in order.
	all, rows []row

	sortBy   int
	reversed bool
	// first is the row at the top of the screen, page how many it shows.
	first, page int
}

// gap is between columns.
const gap = 2

// minName is what the first column takes at least, if there is room; nameRoom is the width for
// which others are not left out.
const (
	minName  = 10
	nameRoom = 16
)

func newSubscriberTable() *table {
	return &table{title: "SUBSCRIBER", sortBy: 1, columns: []column{
		{name: "name", textual: true},
		{name: "queued", title: "QUEUED", width: 10},
		{name: "oldest", title: "OLDEST", width: 7, spare: 3},
		{name: "rate", title: "OUT/S", width: 8, spare: 1},
		{name: "failed", title: "FAILED", width: 7, spare: 4},
		{name: "health", title: "HEALTH", width: 8, rising: true, spare: 2},
		{name: "state", title: "STATE", width: 9, spare: 5},
		{name: "tried", title: "TRIED", width: 7, rising: true, spare: 6},
		{name: "dead", title: "DEAD", width: 7, spare: 7},
		{name: "dropped", title: "DROPPED", width: 9, spare: 8},
		{name: "batches", title: "BATCHES", width: 8, spare: 10},
		{name: "sent", title: "SENT", width: 13, spare: 9},
		{name: "topics", title: "TOPICS", width: 7, spare: 11},
	}}
}

func newTopicTable() *table {
	return &table{title: "TOPIC", sortBy: 1, columns: []column{
		{name: "name", textual: true},
		{name: "rate", title: "IN/S", width: 8},
		{name: "events", title: "EVENTS", width: 13, spare: 1},
		{name: "subscribers", title: "SUBSCRIBERS", width: 12, spare: 2},
		{name: "publisher", title: "PUBLISHER", width: 20, textual: true, spare: 3},
	}}
}

func newJobTypeTable() *table {
	return &table{title: "JOB TYPE", sortBy: 1, columns: []column{
		{name: "name", textual: true},
		{name: "queued", title: "QUEUED", width: 10},
		{name: "waiting", title: "WAITING", width: 10, spare: 4},
		{name: "in_progress", title: "IN PROGRESS", width: 15, spare: 1},
		{name: "oldest", title: "OLDEST", width: 7, spare: 5},
		{name: "done", title: "DONE/S", width: 8, spare: 2},
		{name: "failed", title: "FAILED/S", width: 9, spare: 6},
		{name: "expired", title: "EXPIRED/S", width: 10, spare: 7},
		{name: "state", title: "STATE", width: 7, spare: 3},
	}}
}

func number(n int64) cell {
	c := cell{text: count(n), value: float64(n)}
	if n == 0 {
		c.level = idle
	}
	return c
}

func maybeNumber(n *int64) cell {
	if n == nil {
		return cell{text: unknown, unknown: true, level: idle}
	}
	return number(*n)
}

func maybe(n *float64, write func(*float64) string) cell {
	if n == nil {
		return cell{text: unknown, unknown: true, level: idle}
	}
	c := cell{text: write(n), value: *n}
	if *n == 0 {
		c.level = idle
	}
	return c
}

func subscriberRow(s stats.Subscriber) []cell {
	oldest, failed, dropped := maybe(s.OldestAge, age), maybe(s.Failed, share), maybeNumber(s.Dropped)
	oldest.level = oldestLevel(s)
	if s.Failed != nil && *s.Failed > 0 {
		failed.level = warning
		if *s.Failed >= 0.5 {
			failed.level = alarming
		}
	}
	if dropped.value > 0 {
		dropped.level = alarming
	}
	dead := maybeNumber(s.Dead)
	if dead.value > 0 {
		dead.level = warning
	}
	return []cell{
		{text: terminal.Escape(s.Name)}, number(s.Queued), oldest, maybe(s.Rate, rate), failed, healthCell(s), stateCell(s),
		maybe(s.SinceAttempt, age), dead, dropped, maybeNumber(s.Batches), number(s.Sent), number(int64(len(s.Topics))),
	}
}

// oldestLevel rates the age of an event, compared with the time that the subscriber lets it wait.
// The alarm is that of the example alerts.
func oldestLevel(s stats.Subscriber) level {
	switch {
	case s.OldestAge == nil:
		return idle
	case *s.OldestAge > s.Timeout+300:
		return alarming
	case *s.OldestAge > s.Timeout+30:
		return warning
	default:
		return usual
	}
}

func healthCell(s stats.Subscriber) cell {
	c := cell{text: strconv.Itoa(s.Health), value: float64(s.Health)}
	if s.Trend != 0 {
		c.text = fmt.Sprintf("%+d %d", s.Trend, s.Health)
	}
	switch {
	case s.Health < 25:
		c.level = alarming
	case s.Health < 75:
		c.level = warning
	}
	return c
}

// states are in the order that they are sorted in, most important last.
var states = []string{stats.Ready, stats.Paced, stats.Throttled, stats.Paused, stats.Blocked}

func stateCell(s stats.Subscriber) cell {
	if s.State == nil {
		return cell{text: unknown, unknown: true, level: idle}
	}
	c := cell{text: *s.State, value: float64(slices.Index(states, *s.State)), level: warning}
	switch *s.State {
	case stats.Ready:
		c.level = idle
	case stats.Paced:
		c.level = usual
	}
	return c
}

func topicRow(t stats.Topic) []cell {
	return []cell{
		{text: terminal.Escape(t.Name)}, maybe(t.Rate, rate), number(t.Events), number(int64(t.Subscribers)), {text: terminal.Escape(t.Publisher)},
	}
}

func jobTypeRow(t stats.JobType) []cell {
	inProgress := number(t.InProgress)
	inProgress.text += " of " + count(t.Concurrency)
	failed, state := maybe(t.Failed, rate), cell{text: stats.Ready, level: idle}
	if failed.value > 0 {
		failed.level = warning
	}
	if t.Paused {
		state = cell{text: stats.Paused, value: 1, level: warning}
	}
	return []cell{
		{text: terminal.Escape(t.Name)}, number(t.Queued), number(t.Waiting), inProgress, maybe(t.OldestAge, age),
		maybe(t.Succeeded, rate), failed, maybe(t.Expired, rate), state,
	}
}

// filter is what names must match: a regular expression, or a text if it is none, whatever the
// case.
func compileFilter(text string) *regexp.Regexp {
	pattern, err := regexp.Compile("(?i)" + text)
	if err != nil {
		return regexp.MustCompile("(?i)" + regexp.QuoteMeta(text))
	}
	return pattern
}

// arrange filters and sorts the rows.
func (t *table) arrange(filter *regexp.Regexp) {
	t.rows = t.rows[:0]
	for _, row := range t.all {
		if filter.MatchString(row.name()) {
			t.rows = append(t.rows, row)
		}
	}
	by := t.columns[t.sortBy]
	slices.SortFunc(t.rows, func(a, b row) int {
		return cmp.Or(by.compare(a.cells[t.sortBy], b.cells[t.sortBy], t.reversed), strings.Compare(a.name(), b.name()))
	})
}

// compare orders the most important cells first, unless reversed. Unknown ones are always last.
func (c column) compare(a, b cell, reversed bool) int {
	switch {
	case a.unknown || b.unknown:
		return compareBool(a.unknown, b.unknown)
	case reversed:
		a, b = b, a
	}
	switch {
	case c.textual:
		return strings.Compare(a.text, b.text)
	case c.rising:
		return cmp.Compare(a.value, b.value)
	default:
		return cmp.Compare(b.value, a.value)
	}
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	default:
		return 1
	}
}

// shown are the columns that a width has room for, the first of them widened to the longest name.
func (t *table) shown(width int) (columns []int, nameWidth int) {
	longest := max(minName, ansi.StringWidth(t.heading()))
	for _, row := range t.all {
		longest = max(longest, ansi.StringWidth(row.name()))
	}
	for left := range len(t.columns) {
		columns, nameWidth = t.without(left), width
		for _, i := range columns[1:] {
			nameWidth -= gap + t.columns[i].width
		}
		if nameWidth >= min(longest, nameRoom) {
			break
		}
	}
	return columns, max(min(nameWidth, longest), 1)
}

// without leaves out the columns that can best be spared.
func (t *table) without(spared int) (columns []int) {
	highest := 0
	for _, c := range t.columns {
		highest = max(highest, c.spare)
	}
	for i, c := range t.columns {
		if c.spare == 0 || c.spare <= highest-spared {
			columns = append(columns, i)
		}
	}
	return columns
}

// heading is the title of the first column, with how many rows there are.
func (t *table) heading() string {
	if len(t.rows) == len(t.all) {
		return t.title + "S " + count(int64(len(t.all)))
	}
	return t.title + "S " + count(int64(len(t.rows))) + " of " + count(int64(len(t.all)))
}

// lines writes the heading and some of the rows, for a width in characters.
func (t *table) lines(width, rows int, paint painter, focused bool) []string {
	columns, nameWidth := t.shown(width)
	var heading []string
	for _, i := range columns {
		c := t.columns[i]
		title := c.title
		if i == 0 {
			title, c.width = t.heading(), nameWidth
		}
		if i == t.sortBy {
			title += t.arrow()
		}
		heading = append(heading, c.fit(title))
	}
	lines := []string{paint.heading(cut(strings.TrimRight(strings.Join(heading, strings.Repeat(" ", gap)), " "), width), focused)}
	for _, row := range t.rows[t.first:min(t.first+max(rows, 0), len(t.rows))] {
		var cells []string
		for _, i := range columns {
			c := t.columns[i]
			if i == 0 {
				c.width = nameWidth
			}
			cells = append(cells, paint.cell(c.fit(row.cells[i].text), row.cells[i].level))
		}
		lines = append(lines, cut(strings.TrimRight(strings.Join(cells, strings.Repeat(" ", gap)), " "), width))
	}
	return lines
}

// arrow marks the column that rows are sorted by: whether its numbers fall or rise.
func (t *table) arrow() string {
	by := t.columns[t.sortBy]
	if (by.rising || by.textual) != t.reversed {
		return "^"
	}
	return "v"
}

// fit brings a text to the column's width, and marks where it was cut.
func (c column) fit(text string) string {
	text = ansi.Truncate(text, c.width, "~")
	padding := strings.Repeat(" ", c.width-ansi.StringWidth(text))
	if c.textual {
		return text + padding
	}
	return padding + text
}

// cut keeps a line within a width, colours or not.
func cut(line string, width int) string { return ansi.Truncate(line, width, "") }
