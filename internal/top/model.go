package top

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"charm.land/bubbles/v2/textinput"
	tea "charm.land/bubbletea/v2"

	"routemaster/internal/format"
	"routemaster/internal/overview"
)

// Bounds of the interval. A watched bus takes a sample every 2 to 3.5 s, for all its watchers.
const (
	MinInterval = 500 * time.Millisecond
	MaxInterval = time.Hour
)

// Options say how the screen begins.
type Options struct {
	// Bus is the bus's name on the screen.
	Bus string
	// Interval is the time from an answer to the next request.
	Interval time.Duration
	// Sort names a column, of one table or of several; empty sorts by the queue, and topics by their
	// rate.
	Sort string
	// Filter is a regular expression that the names shown match, whatever the case, or a part of them.
	Filter string
}

// Validate returns an error that says what to change.
func (o Options) Validate() error {
	if o.Interval < MinInterval || o.Interval > MaxInterval {
		return fmt.Errorf("an interval is from %v to %v", format.Brief(MinInterval), format.Brief(MaxInterval))
	}
	if names := SortNames(); o.Sort != "" && !slices.Contains(names, o.Sort) {
		return fmt.Errorf("there is no column %q to sort by; there are %s", o.Sort, strings.Join(names, ", "))
	}
	return nil
}

// SortNames are the columns that the tables can be sorted by.
func SortNames() []string {
	var names []string
	for _, t := range newTables(Options{}) {
		for _, c := range t.columns {
			if !slices.Contains(names, c.name) {
				names = append(names, c.name)
			}
		}
	}
	return names
}

// newTables makes the [tables].
func newTables(o Options) tables {
	tables := tables{newSubscriberTable(), newTopicTable(), newJobTypeTable(), newMachineTable(), newClientTable()}
	for _, t := range tables {
		if i := slices.IndexFunc(t.columns, func(c column) bool { return c.name == o.Sort }); i >= 0 {
			t.sortBy = i
		}
	}
	return tables
}

// tables show subscribers, topics, job types, state machines, and clients.
type tables [5]*table

// fill puts figures into the tables.
func (ts tables) fill(f overview.Figures, filter *regexp.Regexp) {
	ts[0].all, ts[1].all = rowsOf(f.Subscribers, subscriberRow), rowsOf(f.Topics, topicRow)
	ts[2].all, ts[3].all = rowsOf(f.JobTypes, jobTypeRow), rowsOf(f.Machines, machineRow)
	ts[4].all = rowsOf(f.Clients, clientRow)
	for _, t := range ts {
		t.arrange(filter)
	}
}

func rowsOf[T any](all []T, cells func(T) []cell) []row {
	rows := make([]row, len(all))
	for i, one := range all {
		rows[i] = row{cells(one), i}
	}
	return rows
}

// shown returns the tables on the screen: many buses have no job types, and no state machines.
// Clients that keep nothing have queues only, which are shown as subscribers.
func (ts tables) shown() []*table {
	shown := slices.Clone(ts[:2])
	for _, t := range ts[2:4] {
		if len(t.all) > 0 {
			shown = append(shown, t)
		}
	}
	if slices.ContainsFunc(ts[4].all, func(r row) bool { return r.cells[1].value > 0 }) {
		shown = append(shown, ts[4])
	}
	return shown
}

// Model is the live screen, in Bubble Tea's terms.
type Model struct {
	// read returns the figures, within a bounded time.
	read func() (overview.Figures, error)
	now  func() time.Time
	// ended is closed when the screen is no longer shown.
	ended <-chan struct{}

	bus      string
	interval time.Duration
	paint    painter
	width    int
	height   int

	figures *overview.Figures
	// lastGood is when figures were read, by the clock of this host.
	lastGood time.Time
	err      error
	// reading is whether the bus is being asked: there is never more than one question under way.
	reading bool
	// turn numbers the ticks: a new tick makes older ones void.
	turn int

	tables tables
	// focus is the place of a table that is shown.
	focus     int
	filter    string
	input     textinput.Model
	filtering bool
	paused    bool
	help      bool
}

// newModel makes a screen that reads from a source until the context is done.
func newModel(ctx context.Context, source Source, o Options) *Model {
	input := textinput.New()
	input.Prompt = "filter by a name or a regular expression: "
	return &Model{
		read: func() (overview.Figures, error) { return source.Read(ctx) }, now: time.Now, ended: ctx.Done(),
		bus: o.Bus, interval: o.Interval, filter: o.Filter, paint: painter{styled: true}, width: 80, height: 24,
		tables: newTables(o), input: input,
	}
}

// answer is the result of a read.
type answer struct {
	figures overview.Figures
	err     error
}

// tick says that it is time to ask.
type tick struct{ turn int }

// Init is part of [tea.Model].
func (m *Model) Init() tea.Cmd { return m.ask() }

// ask reads the figures.
func (m *Model) ask() tea.Cmd {
	m.reading = true
	m.turn++
	read := m.read
	return func() tea.Msg {
		figures, err := read()
		return answer{figures, err}
	}
}

// wait asks after an interval.
func (m *Model) wait() tea.Cmd {
	m.turn++
	turn := m.turn
	timer := time.NewTimer(m.interval)
	return func() tea.Msg { // tea.Tick would outlive the program
		defer timer.Stop()
		select {
		case <-timer.C:
			return tick{turn}
		case <-m.ended:
			return nil
		}
	}
}

// View is part of [tea.Model].
func (m *Model) View() tea.View {
	view := tea.NewView(m.render())
	view.AltScreen = true
	view.WindowTitle = "rtm top"
	return view
}

// Update is part of [tea.Model].
func (m *Model) Update(message tea.Msg) (tea.Model, tea.Cmd) {
	switch message := message.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = message.Width, message.Height
		return m, nil
	case answer:
		m.reading = false
		m.take(message)
		if m.paused {
			return m, nil
		}
		return m, m.wait()
	case tick:
		if message.turn != m.turn || m.paused || m.reading {
			return m, nil
		}
		return m, m.ask()
	case tea.KeyPressMsg:
		if m.filtering {
			return m, m.typed(message)
		}
		return m, m.pressed(message)
	default:
		if m.filtering {
			var cmd tea.Cmd
			m.input, cmd = m.input.Update(message)
			return m, cmd
		}
		return m, nil
	}
}

// take shows the result of a read. After an error the screen keeps the figures, and shows the
// error.
func (m *Model) take(a answer) {
	if m.err = a.err; m.err != nil {
		return
	}
	m.figures, m.lastGood = &a.figures, m.now()
	m.tables.fill(a.figures, compileFilter(m.filter))
	m.focus = min(m.focus, len(m.tables.shown())-1)
}

// arrange sorts and filters again.
func (m *Model) arrange() {
	filter := compileFilter(m.filter)
	for _, t := range m.tables {
		t.arrange(filter)
	}
}

// pressed handles a key.
func (m *Model) pressed(press tea.KeyPressMsg) tea.Cmd {
	shown := m.tables.shown()
	t := shown[m.focus]
	switch press.String() {
	case "q", "ctrl+c":
		return tea.Quit
	case "?", "h":
		m.help = !m.help
	case "esc":
		m.help, m.filter = false, ""
		m.arrange()
	case "tab":
		m.focus = (m.focus + 1) % len(shown)
	case "shift+tab":
		m.focus = (m.focus + len(shown) - 1) % len(shown)
	case "1", "2", "3", "4", "5":
		m.focus = min(int(press.String()[0]-'1'), len(shown)-1)
	case "s":
		t.sortBy, t.reversed = (t.sortBy+1)%len(t.columns), false
		m.arrange()
	case "r", "S":
		t.reversed = !t.reversed
		m.arrange()
	case "/":
		m.help, m.filtering = false, true
		m.input.SetValue(m.filter)
		m.input.CursorEnd()
		return m.input.Focus()
	case "p", "space":
		return m.pause()
	case "+", "=":
		return m.pace(m.interval * 2)
	case "-":
		return m.pace(m.interval / 2)
	default:
		t.scroll(press.String())
	}
	return nil
}

// scroll moves the rows, within the table.
func (t *table) scroll(key string) {
	switch key {
	case "up", "k":
		t.first--
	case "down", "j":
		t.first++
	case "pgup", "ctrl+b":
		t.first -= t.page
	case "pgdown", "ctrl+f":
		t.first += t.page
	case "home", "g":
		t.first = 0
	case "end", "G":
		t.first = len(t.rows)
	}
	t.first = max(min(t.first, len(t.rows)-t.page), 0)
}

// typed edits the filter, which acts at once.
func (m *Model) typed(press tea.KeyPressMsg) (cmd tea.Cmd) {
	switch press.String() {
	case "ctrl+c":
		return tea.Quit
	case "enter":
		m.filtering = false
	case "esc":
		m.filtering = false
		m.input.Reset()
	default:
		m.input, cmd = m.input.Update(press)
	}
	if !m.filtering {
		m.input.Blur()
	}
	m.filter = m.input.Value()
	m.arrange()
	return cmd
}

// pause stops reading, or resumes it at once.
func (m *Model) pause() tea.Cmd {
	m.paused = !m.paused
	if m.paused || m.reading {
		return nil
	}
	return m.ask()
}

// pace changes the interval, from now on.
func (m *Model) pace(interval time.Duration) tea.Cmd {
	m.interval = min(max(interval, MinInterval), MaxInterval)
	if m.paused || m.reading {
		return nil
	}
	return m.wait()
}
