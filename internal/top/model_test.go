package top

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/overview"
)

// named are the keys that are not one character.
var named = map[string]tea.Key{
	"tab": {Code: tea.KeyTab}, "shift+tab": {Code: tea.KeyTab, Mod: tea.ModShift}, "enter": {Code: tea.KeyEnter}, "esc": {Code: tea.KeyEscape}, "backspace": {Code: tea.KeyBackspace},
	"down": {Code: tea.KeyDown}, "up": {Code: tea.KeyUp}, "pgdown": {Code: tea.KeyPgDown}, "pgup": {Code: tea.KeyPgUp}, "home": {Code: tea.KeyHome},
	"end": {Code: tea.KeyEnd}, "ctrl+c": {Code: 'c', Mod: tea.ModCtrl}, "space": {Code: tea.KeySpace, Text: " "},
}

// press sends keys, and returns the command of the last.
func (m *Model) press(keys ...string) (cmd tea.Cmd) {
	for _, k := range keys {
		event, ok := named[k]
		if !ok {
			event = tea.Key{Code: []rune(k)[0], Text: k}
		}
		_, cmd = m.Update(tea.KeyPressMsg(event))
	}
	return cmd
}

func TestKeys(t *testing.T) {
	for _, test := range []struct {
		name, keys string
		want       func(m *Model) any
		is         any
	}{
		{"s sorts by the next column", "s", func(m *Model) any { return m.tables[0].columns[m.tables[0].sortBy].name }, "oldest"},
		{"and after the last by the first", "s s s s s s s s s s s s s", func(m *Model) any { return m.tables[0].columns[m.tables[0].sortBy].name }, "name"},
		{"only in the table with the focus", "tab s", func(m *Model) any { return m.tables[0].columns[m.tables[0].sortBy].name }, "queued"},
		{"r reverses", "r", func(m *Model) any { return m.tables[0].names()[3] }, "search-index"},
		{"S too", "S", func(m *Model) any { return m.tables[0].names()[3] }, "search-index"},
		{"twice is not at all", "r r", func(m *Model) any { return m.tables[0].names()[0] }, "search-index"},
		{"another column begins in its own order", "r s", func(m *Model) any { return m.tables[0].reversed }, false},
		{"tab moves the focus", "tab", func(m *Model) any { return m.focus }, 1},
		{"and back", "tab tab", func(m *Model) any { return m.focus }, 0},
		{"2 goes to the topics", "2 2", func(m *Model) any { return m.focus }, 1},
		{"1 to the subscribers", "2 1", func(m *Model) any { return m.focus }, 0},
		{"a filter acts while it is typed", "/ s h", func(m *Model) any { return m.tables[0].names() }, []string{"shop"}},
		{"keys are text then", "/ q", func(m *Model) any { return m.filter }, "q"},
		{"it can be corrected", "/ s x backspace", func(m *Model) any { return m.filter }, "s"},
		{"enter keeps it", "/ s h enter p", func(m *Model) any { return fmt.Sprint(m.filter, m.filtering, m.paused) }, "shfalse true"},
		{"and / goes on with it", "/ s h enter / o", func(m *Model) any { return m.filter }, "sho"},
		{"esc gives it up", "/ s h esc", func(m *Model) any { return fmt.Sprint(m.filter, m.filtering, len(m.tables[0].rows)) }, "false 4"},
		{"also later", "/ s h enter esc", func(m *Model) any { return fmt.Sprint(m.filter, len(m.tables[0].rows)) }, "4"},
		{"? shows the help", "?", func(m *Model) any { return strings.Contains(m.render(), "What is not known") }, true},
		{"and hides it", "? ?", func(m *Model) any { return m.help }, false},
		{"esc too", "? esc", func(m *Model) any { return m.help }, false},
		{"+ waits longer", "+", func(m *Model) any { return m.interval }, 4 * time.Second},
		{"- shorter", "-", func(m *Model) any { return m.interval }, time.Second},
		{"with an end", "- - - - -", func(m *Model) any { return m.interval }, MinInterval},
		{"at both sides", strings.Repeat("+ ", 20) + "+", func(m *Model) any { return m.interval }, MaxInterval},
		{"a key of no meaning", "x", func(m *Model) any { return m.focus }, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := screen(80, 24)
			m.press(strings.Fields(test.keys)...)
			assert.Equal(t, test.is, test.want(m))
		})
	}
	for _, keys := range [][]string{{"q"}, {"ctrl+c"}, {"/", "ctrl+c"}, {"?", "q"}} {
		cmd := screen(80, 24).press(keys...)
		require.NotNil(t, cmd, keys)
		assert.IsType(t, tea.QuitMsg{}, cmd(), keys)
	}
}

func TestTheTableOfJobTypes(t *testing.T) {
	m := screen(80, 24)
	m.press("3")
	assert.Equal(t, 1, m.focus, "there are no job types")
	withJobTypes(m)
	for _, step := range []struct {
		keys string
		want int
	}{{"tab", 2}, {"tab", 0}, {"shift+tab", 2}, {"shift+tab", 1}, {"3", 2}} {
		m.press(step.keys)
		assert.Equal(t, step.want, m.focus, step.keys)
	}
	assert.Equal(t, []string{"invoices", "labels"}, m.tables[2].names())
	m.press("s", "s", "s", "s", "s", "s", "s")
	assert.Equal(t, []string{"labels", "invoices"}, m.tables[2].names(), "what is paused comes first")
	m.take(answer{figures: busyBus()})
	assert.Equal(t, 1, m.focus, "they are gone")
	assert.NotContains(t, m.render(), "JOB TYPE")
}

// TestTheTableOfMachines goes to it on a bus without job types, whose table is left out.
func TestTheTableOfMachines(t *testing.T) {
	m := withMachines(screen(80, 40))
	for _, step := range []struct {
		keys string
		want int
	}{{"tab", 1}, {"tab", 2}, {"tab", 0}, {"shift+tab", 2}, {"1", 0}, {"4", 2}} {
		m.press(step.keys)
		assert.Equal(t, step.want, m.focus, step.keys)
	}
	assert.Equal(t, []string{"drip_feed", "trial"}, m.tables[3].names())
	m.press("r")
	assert.Equal(t, []string{"trial", "drip_feed"}, m.tables[3].names(), "keys act on the table with the focus")
	m.take(answer{figures: busyBus()})
	assert.NotContains(t, m.render(), "MACHINE")
	assert.Equal(t, 1, m.focus, "they are gone")
}

// TestTheTableOfClients is there once one keeps anything.
func TestTheTableOfClients(t *testing.T) {
	m := screen(80, 40)
	_, after := busy()
	after = after.withClients()
	m.take(answer{figures: figuresOf(after)})
	m.press("5")
	assert.Equal(t, 2, m.focus)
	assert.Equal(t, []string{"billing", "shop", "search-index"}, m.tables[4].names())
	m.press("s", "s")
	assert.Equal(t, []string{"search-index", "shop", "billing"}, m.tables[4].names(), "by what is queued")
	after.Clients = after.Clients[1:2]
	m.take(answer{figures: figuresOf(after)})
	assert.NotContains(t, m.render(), "CLIENT", "who keeps nothing is shown as a subscriber")
}

func TestScrolling(t *testing.T) {
	s := at(0)
	for i := range 1000 {
		s = s.subscriber(overview.SubscriberState{Name: fmt.Sprintf("s%03d", i)})
	}
	m := screen(80, 24)
	m.take(answer{figures: figuresOf(s)})
	top := func(keys ...string) string {
		m.press(keys...)
		for line := range strings.SplitSeq(m.render(), "\n") {
			if strings.HasPrefix(line, "s0") || strings.HasPrefix(line, "s9") {
				return strings.Fields(line)[0]
			}
		}
		return "none"
	}
	assert.Equal(t, "s000", top())
	assert.Equal(t, "s000", top("up"), "there is nothing above")
	assert.Equal(t, "s002", top("down", "j"))
	assert.Equal(t, "s001", top("k"))
	page := m.tables[0].page
	assert.Equal(t, fmt.Sprintf("s%03d", 1+page), top("pgdown"))
	assert.Equal(t, "s001", top("pgup"))
	assert.Equal(t, fmt.Sprintf("s%03d", 1000-page), top("end"))
	assert.Equal(t, fmt.Sprintf("s%03d", 1000-page), top("down"), "nor below")
	assert.Equal(t, "s000", top("home"))
	top("G")
	m.Update(tea.WindowSizeMsg{Width: 80, Height: 50})
	assert.Equal(t, "s9", top()[:2])
	assert.Contains(t, m.render(), "s999", "a larger screen shows more, not emptiness")
	m.take(answer{figures: figuresOf(at(2).subscriber(overview.SubscriberState{Name: "s042"}))})
	assert.Equal(t, "s042", top(), "when the others have gone")
}

// asked runs a command that must ask the bus, and returns the answer.
func asked(t *testing.T, cmd tea.Cmd) answer {
	t.Helper()
	require.NotNil(t, cmd)
	got, ok := cmd().(answer)
	require.True(t, ok, "it does not ask the bus")
	return got
}

func TestQuestionsNeverPileUp(t *testing.T) {
	m := screen(80, 24)
	m.interval = time.Millisecond
	m.read = func() (overview.Figures, error) { return figuresOf(at(10)), nil }
	first := m.Init()
	_, cmd := m.Update(tick{m.turn})
	assert.Nil(t, cmd, "while it asks, the time to ask is none")
	assert.Nil(t, m.press("-"))
	assert.Nil(t, m.press("p", "p"), "nor is a pause that ends")
	m.interval = time.Millisecond

	_, wait := m.Update(asked(t, first))
	void := wait().(tick)
	quicker := m.press("+")
	_, cmd = m.Update(void)
	assert.Nil(t, cmd, "the interval has been changed")
	_, cmd = m.Update(quickly(t, m, quicker))
	asked(t, cmd)
}

// quickly is the tick that a command waits for, without the wait.
func quickly(t *testing.T, m *Model, cmd tea.Cmd) tick {
	t.Helper()
	require.NotNil(t, cmd)
	return tick{m.turn}
}

func TestPause(t *testing.T) {
	m := screen(80, 24)
	m.read = func() (overview.Figures, error) { return figuresOf(at(10)), nil }
	turn := tick{m.turn}
	assert.Nil(t, m.press("p"))
	assert.Contains(t, m.render(), "PAUSED")
	_, cmd := m.Update(turn)
	assert.Nil(t, cmd)
	assert.Nil(t, m.press("+"), "the interval changes, nothing is asked")
	resumed := m.press("space")
	_, cmd = m.Update(asked(t, resumed))
	assert.NotNil(t, cmd, "and goes on")
	assert.NotContains(t, m.render(), "PAUSED")

	asking := m.ask()
	m.press("p")
	_, cmd = m.Update(asked(t, asking))
	assert.Nil(t, cmd, "an answer that comes in the pause is shown, and none is asked for after it")
	assert.Equal(t, start.Add(10*time.Second), m.figures.At)
}

func TestTheScreenOutlivesTheBus(t *testing.T) {
	m := screen(80, 24)
	good := m.lastGood
	_, cmd := m.Update(answer{err: errors.New("list topics: 401 Unauthorized")})
	require.NotNil(t, cmd, "it asks again")
	assert.Equal(t, good, m.lastGood)
	for _, text := range []string{"401 Unauthorized", "What follows is 12s old, of 12:00:02", "search-index"} {
		assert.Contains(t, m.render(), text)
	}
	_, after := busy()
	after.At = after.At.Add(time.Minute)
	m.Update(answer{figures: figuresOf(after)})
	assert.NotContains(t, m.render(), "401")
	assert.Contains(t, m.render(), "12:01:02")

	fresh := newModel(context.Background(), nil, Options{Bus: "https://bus.example", Interval: time.Second})
	fresh.Update(answer{err: errors.New("no answer within 5s")})
	assert.Contains(t, fresh.render(), "! no answer within 5s")
}
