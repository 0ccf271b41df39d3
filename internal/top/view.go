package top

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/format"
	"routemaster/internal/overview"
	"routemaster/internal/terminal"
)

// Minimum size of a screen that shows anything, in characters.
const (
	minWidth  = 20
	minHeight = 5
)

// minTable is how many lines the summary leaves for an empty line, the table, and the last line.
const minTable = 6

// clock is how times of day are written, in the operator's own zone.
const clock = "15:04:05"

// perTable is the number of lines for each table from which all of them are shown.
const perTable = 6

// shownProblems is how many problems the screen has lines for.
const shownProblems = 2

// problemLines lists the problems, worst first. If there are more problems than lines, the last
// line says how many.
func problemLines(problems []overview.Problem, limit int, paint painter) (lines []string) {
	for i, p := range problems[:min(len(problems), limit)] {
		text := "! "
		if more := len(problems) - limit; i == limit-1 && more > 0 { // first, so that a narrow screen does not cut it
			text += fmt.Sprintf("(%d more) ", more)
		}
		text += terminal.Escape(p.Title + " " + p.Detail)
		lines = append(lines, paint.cell(text, problemLevels[p.Severity]))
	}
	return lines
}

var problemLevels = map[overview.Severity]level{overview.Critical: alarming, overview.Warning: warning, overview.Note: idle}

// summary is the part of the screen above the tables that has the figures of the whole bus.
func summary(f overview.Figures, paint painter) []string {
	events := fmt.Sprintf("Events  in %s/s   out %s/s   queued %s   oldest %s", format.Rate(f.Published), format.Rate(f.Delivered), format.Count(f.Queued), format.Age(f.OldestAge))
	if f.Dropped != nil && *f.Dropped > 0 {
		events += "   " + paint.cell("dropped "+format.Count(*f.Dropped), alarming)
	}
	jobs := "Jobs    " + format.Unknown
	if len(f.Queues) > 0 {
		var queues []string
		for _, q := range f.Queues {
			optional := q.Name == string(bus.QueueJobs) || q.Name == string(bus.QueueMachines)
			if optional && q.Instant+q.Scheduled == 0 {
				continue // many buses have no jobs of services, and no labels
			}
			queues = append(queues, fmt.Sprintf("%s %s/%s", terminal.Escape(q.Name), format.Count(q.Instant), format.Count(q.Scheduled)))
		}
		jobs = "Jobs    "
		if f.Due != nil { // first, so that a narrow screen does not cut it
			jobs += "due " + format.Count(*f.Due) + "   "
		}
		jobs += "instant/scheduled: " + strings.Join(queues, "   ")
	}
	lines := []string{events, jobs, "Redis   " + memoryLine(f.Memory, paint)}
	for _, text := range f.Warnings {
		lines = append(lines, paint.cell("! "+terminal.Escape(text), warning))
	}
	return lines
}

// barWidth is the width of the bar of Redis' memory, in characters.
const barWidth = 20

// memoryLine shows how full Redis is, and the marks: above the high one events are dropped, until
// the low one.
func memoryLine(m *overview.Memory, paint painter) string {
	if m == nil {
		return format.Unknown
	}
	if m.Max <= 0 {
		return format.Megabytes(m.Used)
	}
	at := func(bytes int64) int { return int(min(max(bytes, 0), m.Max) * barWidth / m.Max) }
	bar := []byte(strings.Repeat("#", at(m.Used)) + strings.Repeat(".", barWidth-at(m.Used)))
	bar[min(at(m.High), barWidth-1)] = '|'
	l := usual
	switch {
	case m.Used > m.High:
		l = alarming
	case m.Used > m.High/10*9: // as the example alerts have it
		l = warning
	}
	return fmt.Sprintf("%s of %s%s   drops from %s to %s",
		paint.cell("["+string(bar)+"] "+format.Megabytes(m.Used), l), format.Megabytes(m.Max), fullest(m), strings.TrimSuffix(format.Megabytes(m.High), " MB"), format.Megabytes(m.Low))
}

// fullest says which node's memory it is, if there are several.
func fullest(m *overview.Memory) string {
	switch {
	case m.Nodes < 2:
		return ""
	case m.Node == "": // it is for the operator only
		return fmt.Sprintf("   fullest of %d nodes", m.Nodes)
	}
	return fmt.Sprintf("   fullest of %d: %s", m.Nodes, terminal.Escape(m.Node))
}

// render draws the whole screen: never more lines, nor wider ones, than it has.
func (m *Model) render() string {
	if m.width < minWidth || m.height < minHeight {
		return cut("too small", m.width)
	}
	var lines []string
	switch {
	case m.help:
		lines = slices.Clone(help)
	default:
		lines = append([]string{m.titleLine()}, m.stateLines()...)
		if m.figures != nil {
			limit := max(len(lines), m.height-minTable)
			lines = append(lines, problemLines(m.figures.Problems, shownProblems, m.paint)...)
			lines = append(lines, summary(*m.figures, m.paint)...)
			lines = append(lines[:min(len(lines), limit)], "")
			lines = append(lines, m.tableLines(m.height-1-len(lines))...)
		}
	}
	lines = lines[:min(len(lines), m.height-1)]
	for len(lines) < m.height-1 {
		lines = append(lines, "")
	}
	lines = append(lines, m.footer())
	for i, line := range lines {
		lines[i] = cut(line, m.width)
	}
	return strings.Join(lines, "\n")
}

func (m *Model) titleLine() string {
	title := terminal.Escape(m.bus)
	if m.figures != nil {
		title += "   " + m.figures.At.Format(clock)
	}
	title += "   every " + format.Brief(m.interval)
	if m.paused {
		title += "   " + m.paint.cell("PAUSED", warning)
	}
	return title
}

// stateLines list the bus's problems, and the age of the rest of the screen.
func (m *Model) stateLines() []string {
	switch {
	case m.err != nil:
		lines := []string{"! " + terminal.Escape(m.err.Error())}
		if m.figures != nil {
			old := format.Brief(m.now().Sub(m.lastGood).Round(time.Second))
			lines = append([]string{fmt.Sprintf("! What follows is %s old, of %s.", old, m.figures.At.Format(clock))}, lines...)
		}
		for i := range lines {
			lines[i] = m.paint.cell(lines[i], alarming)
		}
		return lines
	case m.figures == nil:
		return []string{"Asking the bus ..."}
	default:
		return nil
	}
}

// tableLines draws the table that has the focus, and the others below and above it if there is
// room.
func (m *Model) tableLines(height int) (lines []string) {
	shown := m.tables.shown()
	if height < perTable*len(shown) {
		return shown[m.focus].window(m.width, height, m.paint, true)
	}
	for i, size := range split(shown, m.focus, height) {
		if i > 0 {
			lines = append(lines, "")
		}
		lines = append(lines, shown[i].window(m.width, size, m.paint, m.focus == i)...)
	}
	return lines
}

// split shares a height among tables with an empty line between them: the one with the focus gets
// twice as much of it as each of the others, unless one of them needs less.
func split(shown []*table, focus, height int) []int {
	height -= len(shown) - 1
	sizes, left := make([]int, len(shown)), height
	give := func(i, most int) {
		left += sizes[i]
		sizes[i] = min(most, left, 1+len(shown[i].rows))
		left -= sizes[i]
	}
	for i := range shown {
		if i != focus {
			give(i, height/(len(shown)+1))
		}
	}
	give(focus, height)
	for i := range shown {
		if i != focus {
			give(i, height)
		}
	}
	return sizes
}

// window draws as much of a table as fits, and keeps its scroll position within the table.
func (t *table) window(width, height int, paint painter, focused bool) []string {
	t.page = max(height-1, 1)
	t.first = max(min(t.first, len(t.rows)-t.page), 0)
	return t.lines(width, t.page, paint, focused)
}

func (m *Model) footer() string {
	if m.filtering {
		return m.input.View()
	}
	if m.filter != "" {
		return m.paint.cell("filter "+terminal.Escape(m.filter), warning) + "  " + footer
	}
	return footer
}

const footer = "q quit  tab table  s sort  r reverse  / filter  p pause  + - interval  ? help"

// help is no wider than 80 characters, and no longer than 23 lines.
var help = strings.Split(`rtm top shows a bus over its HTTP API. What is not known is shown as -.

q            quit                        s      sort by the next column
tab, 1 to 5  go to another table         r      reverse the order
p            stop asking, and go on      + -    double the interval, halve it
/            filter the names            esc    remove the filter, close this

The arrow keys, or k and j, scroll by a line, pgup and pgdn by a screen, and
home and end, or g and G, go all the way.

QUEUED       events that wait; OLDEST is the age of the oldest of them
OUT/S        events acknowledged a second
FAILED       share of the last minute's deliveries that failed
HEALTH       0 to 100, after what it has changed by in the last minute
STATE        paused; blocked by a failed batch in strict order; throttled; paced
CONDITION    gone, paused, stalled, failing, behind, flaky, idle, or ok
TRIED        time since the last delivery; DEAD are events in dead letters
DROPPED      events dropped in the last minute, because Redis was nearly full
BATCHES      batches that wait; SENT are the events ever acknowledged
IN/S         events published a second; EVENTS are those ever published
WAITING      due jobs held back by limit or pause; DONE/S is of the last minute
ERRORED      labels whose action is not tried again; FAILED/S are webhooks and
             evaluations of the last minute; UNPUBLISHED are moves to publish`, "\n")
