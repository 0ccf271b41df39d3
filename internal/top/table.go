package top

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"routemaster/internal/format"
)

// level says how a cell is to be looked at.
type level int

const (
	usual level = iota
	warning
	alarming
	// idle is a zero or an unknown value.
	idle
)

// cell is a place in a table.
type cell struct {
	text string
	// value sorts rows; without one the text does. Unknown values stand last.
	value   float64
	unknown bool
	level   level
}

// row is one of a table: a cell for each column, and which of the figures' topics, subscribers,
// job types or machines it is.
type row struct {
	cells []cell
	of    int
}

func (r row) name() string { return r.cells[0].text }

// column is one of a table.
type column struct {
	// name is the column's name for --sort.
	name, title string
	// width is in characters of the terminal. The first column takes its rows' width, and the
	// remaining space.
	width int
	// textual columns stand at the left, and begin with a.
	textual bool
	// rising columns sort small values first, because these matter.
	rising bool
	// spare columns are left out of a narrow screen, the highest number first; 0 stays.
	spare int
}

// table is one of the lists of the screen.
type table struct {
	title   string
	columns []column
	// all are all rows, rows the ones that pass the filter, in order.
	all, rows []row

	sortBy   int
	reversed bool
	// first is the row at the top of the screen, page how many it shows.
	first, page int
}

// gap is between columns.
const gap = 2

// minName is the minimum width of the first column, if there is room. Other columns are left out
// until it has nameRoom, or less if its names are shorter.
const (
	minName  = 10
	nameRoom = 16
)

// filter must match the names: a regular expression, or a text if it is none, whatever the case.
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
		return t.title + "S " + format.Count(int64(len(t.all)))
	}
	return t.title + "S " + format.Count(int64(len(t.rows))) + " of " + format.Count(int64(len(t.all)))
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
