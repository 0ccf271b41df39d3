package top

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/overview"
	"routemaster/internal/terminal"
)

var update = flag.Bool("update", false, "write the screens that the tests see to testdata")

var start = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// sample is an [overview.Sample] that tests add to.
type sample struct{ overview.Sample }

// at makes a sample of so many seconds after the start.
func at(seconds float64) sample {
	return sample{overview.Sample{At: start.Add(time.Duration(seconds * float64(time.Second)))}}
}

func (s sample) topic(name string, events int64) sample {
	s.Topics = append(s.Topics, overview.TopicState{Name: name, Publisher: "warehouse", Events: events})
	return s
}

func (s sample) subscriber(sub overview.SubscriberState) sample {
	s.Subscribers = append(s.Subscribers, sub)
	return s
}

// figuresOf returns the figures of a bus with these samples.
func figuresOf(samples ...sample) (f overview.Figures) {
	var s overview.Sampler
	for _, one := range samples {
		f = s.Add(one.Sample)
	}
	return f
}

func known(n float64) *float64 { return &n }

// busy are two samples of a bus, 2 s apart, with all that a screen can show.
func busy() (before, after sample) {
	for i, s := range []*sample{&before, &after} {
		n := int64(i)
		later := start.Add(time.Minute)
		*s = at(float64(2*i)).
			topic("widgets", 1_000_000+3000*n).topic("parcels", 42+n).topic("idle", 0).topic("a_topic_with_a_name_that_is_as_long_as_one_may_be_and_even_longer", 7)
		s.Topics[2].Publisher = ""
		*s = s.
			subscriber(overview.SubscriberState{Name: "shop", Topics: []string{"widgets", "parcels"}, Timeout: time.Second, Sent: 990_000 + 2400*n,
				Queued: 12_345, Batches: 124, Dead: 1203, Health: 100, OldestAt: start.Add(-2 * time.Second), AttemptedAt: start, Paced: later,
				Counts: overview.Counts{Succeeded: 100 + 30*n, Failed: 2}}).
			subscriber(overview.SubscriberState{Name: "search-index", Topics: []string{"widgets"}, Sent: 500, Queued: 65_000, Batches: 650,
				Health: 12 - 4*int(n), OldestAt: start.Add(-8 * time.Minute), AttemptedAt: start.Add(-9 * time.Second), Throttled: later,
				Counts: overview.Counts{Failed: 2 * n, Dropped: 10_000 + 2345*n}}).
			subscriber(overview.SubscriberState{Name: "mailer", Topics: []string{"parcels"}, Sent: 42 + n, Health: 71 + int(n), AttemptedAt: start,
				Throttled: later, Counts: overview.Counts{Succeeded: 42 + n}}).
			subscriber(overview.SubscriberState{Name: "a-client-with-a-very-long-name-that-has-no-room-anywhere", Health: 100})
		s.Due = 3
		s.Queues = []overview.Queue{{Name: "main", Instant: 2, Scheduled: 772}, {Name: "jobs"}, {Name: "aux", Scheduled: 1}}
		s.Memory = &overview.Memory{Used: 61_200_000, Max: 100_000_000, High: 90_000_000, Low: 80_000_000}
	}
	return before, after
}

// withJobs adds job types to a sample; ended counts their ended jobs.
func (s sample) withJobs(ended int64) sample {
	s.JobTypes = []overview.JobTypeState{
		{Name: "invoices", Queued: 1_204_000, Waiting: 12, InProgress: 50, Concurrency: 50, OldestAt: s.At.Add(-4 * time.Minute),
			Succeeded: 90_000 + 400*ended, Failed: 7 + ended},
		{Name: "labels", Queued: 3, Concurrency: 1, Paused: true, OldestAt: s.At.Add(-26 * time.Hour)},
	}
	s.Queues = slices.Clone(s.Queues)
	s.Queues[1] = overview.Queue{Name: "jobs", Instant: 12, Scheduled: 1_204_041}
	return s
}

// withMachines adds state machines to a sample, whose labels have made steps.
func (s sample) withMachines(steps int64) sample {
	s.Machines = []overview.MachineState{
		{Name: "drip_feed", Labels: 1_204_000, Errored: 12, Unpublished: 3, Moved: 90_000 + 400*steps, Failed: 7 + steps},
		{Name: "trial", Labels: 7, Moved: 5},
	}
	s.Queues = append(slices.Clone(s.Queues), overview.Queue{Name: "machines", Instant: 4, Scheduled: 1500})
	return s
}

// withClients adds clients to a sample, one of them near its limit.
func (s sample) withClients() sample {
	s.Clients = []overview.Client{
		{Name: "billing", Kept: 24_300_000, Limit: new(int64(25_000_000)), Queued: 544},
		{Name: "search-index", Limit: new(int64(34_100_000)), Queued: 9_840_000},
		{Name: "shop", Kept: 1_200_000, Queued: 2_100_000},
	}
	return s
}

// busyBus are the figures of a busy bus, in conditions that a verdict could set.
func busyBus() overview.Figures { return judged(figuresOf(busy())) }

// withAll returns the figures of a bus that has job types and state machines, too.
func withAll() overview.Figures {
	before, after := busy()
	return judged(figuresOf(before.withJobs(0).withMachines(0), after.withJobs(1).withMachines(1)))
}

func judged(f overview.Figures) overview.Figures {
	for i, state := range []overview.State{overview.OK, overview.Failing, overview.Flaky, overview.Idle} {
		f.Subscribers[i].State = state
	}
	return f
}

// withMachines has a model see a busy bus that has state machines, too, and no job types.
func withMachines(m *Model) *Model {
	before, after := busy()
	m.take(answer{figures: judged(figuresOf(before.withMachines(0), after.withMachines(1)))})
	return m
}

// withJobTypes has a model see a busy bus that has job types, too.
func withJobTypes(m *Model) *Model {
	before, after := busy()
	m.take(answer{figures: judged(figuresOf(before.withJobs(0), after.withJobs(1)))})
	return m
}

// screen is a model that has seen a busy bus.
func screen(width, height int) *Model {
	m := newModel(context.Background(), nil, Options{Bus: "https://bus.example", Interval: 2 * time.Second})
	m.paint, m.width, m.height = painter{}, width, height
	m.now = func() time.Time { return start.Add(2 * time.Second) }
	m.take(answer{figures: busyBus()})
	m.now = func() time.Time { return start.Add(14 * time.Second) }
	return m
}

// problems are of each severity.
var problems = []overview.Problem{
	{Rule: "events-dropped", Severity: overview.Critical, Title: "Events are being lost.", Detail: "2,345 events of search-index were dropped in the last 5 min."},
	{Rule: "failing", Severity: overview.Warning, Title: "search-index is failing.", Detail: "It answers 503. 65,000 events wait.", Subscriber: "search-index"},
	{Rule: "dead-letters", Severity: overview.Note, Title: "There are dead letters.", Detail: "1,203 events of shop."},
}

func TestScreens(t *testing.T) {
	for name, m := range map[string]*Model{
		"80x24":      screen(80, 24),
		"140x40":     screen(140, 40),
		"40x12":      screen(40, 12),
		"20x5":       screen(20, 5),
		"topics":     screen(80, 14),
		"away":       screen(80, 24),
		"unread":     screen(80, 24),
		"help":       screen(80, 24),
		"filter":     screen(80, 24),
		"jobs":       withJobTypes(screen(110, 34)),
		"jobs-80x20": withJobTypes(screen(80, 20)),
		"problems":   screen(80, 24),
		"machines":   withMachines(screen(80, 34)),
		"all":        screen(80, 40),
		"clients":    screen(80, 40),
		"first":      newModel(context.Background(), nil, Options{Bus: "https://bus.example", Interval: time.Minute}),
	} {
		switch name {
		case "topics":
			m.focus = 1
		case "jobs-80x20":
			m.focus = 2
		case "all":
			m.take(answer{figures: withAll()})
			m.focus = 3
		case "clients":
			before, after := busy()
			m.take(answer{figures: judged(figuresOf(before.withClients(), after.withClients()))})
			m.focus = 2
		case "away":
			m.take(answer{err: errors.New("list topics: 503 Service Unavailable: Redis\x1b[31m is away")})
		case "unread":
			f := busyBus()
			f.Memory, f.Warnings = nil, []string{"The memory of Redis could not be read: no answer."}
			m.take(answer{figures: f})
			m.paused = true
		case "problems":
			f := busyBus()
			f.Problems = problems
			m.take(answer{figures: f})
		case "help":
			m.help = true
		case "filter":
			m.filter = "^S"
			m.arrange()
		}
		got := m.render() + "\n"
		golden := filepath.Join("testdata", name+".golden")
		if *update {
			require.NoError(t, os.WriteFile(golden, []byte(got), 0o644))
		}
		want, err := os.ReadFile(golden)
		require.NoError(t, err)
		assert.Equal(t, string(want), got, "%s: go test ./internal/top -update writes it anew", golden)
	}
}

func TestAScreenNeverOverflows(t *testing.T) {
	before, after := busy()
	for _, s := range []*sample{&before, &after} {
		*s = s.topic("\x1b[2J\r\n店店店店店店店店店店店店店店店店店店店", 5).subscriber(overview.SubscriberState{Name: "e\u0301\u202e店\t👩‍👩‍👧", Queued: 1 << 60, Sent: 1 << 62})
		s.Unread = []overview.Unread{{Part: "a\x1b]0;title\x07"}, {Part: strings.Repeat("店", 300)}}
	}
	for range 100 {
		after = after.subscriber(overview.SubscriberState{Name: fmt.Sprint("s", len(after.Subscribers)), Queued: 1})
	}
	for _, styled := range []bool{false, true} {
		m := screen(80, 24)
		m.paint = painter{styled}
		m.bus = "https://bus.example/\x1b[2J"
		f := figuresOf(before.withJobs(0).withMachines(0), after.withJobs(1).withMachines(1).withClients())
		f.Problems = append(slices.Clone(problems), overview.Problem{Title: "\x1b[2J\n店"})
		f.Subscribers[0].Hold, f.Subscribers[1].State = "\x1b[2J\n", "店\t"
		m.take(answer{figures: f})
		m.err = errors.New("gone\r\n\x1b[2J")
		for width := 0; width < 130; width += 1 + width/20 {
			for height := 0; height < 40; height += 1 + height/10 {
				m.width, m.height, m.focus = width, height, height%5
				text := m.render()
				if height >= minHeight && width >= minWidth {
					require.Equal(t, height, strings.Count(text, "\n")+1)
				}
				for line := range strings.SplitSeq(text, "\n") {
					require.LessOrEqual(t, ansi.StringWidth(line), width, line)
					require.Equal(t, terminal.Escape(ansi.Strip(line)), ansi.Strip(line), "nothing but styles acts on the terminal")
					if !styled {
						require.NotContains(t, line, "\x1b")
					}
				}
			}
		}
	}
}

func TestTheBarOfRedisMemory(t *testing.T) {
	for used, want := range map[int64]string{
		0: "[..................|.] 0.0 MB of 100.0 MB", 50_000_000: "[##########........|.] 50.0 MB of", 99_000_000: "[##################|.] 99.0 MB", 300_000_000: "[##################|#] 300.0 MB",
	} {
		assert.Contains(t, memoryLine(&overview.Memory{Used: used, Max: 100_000_000, High: 90_000_000, Low: 80_000_000}, painter{}), want)
	}
	for node, want := range map[string]string{"10.0.0.1:7000": " of 100.0 MB   fullest of 3: 10.0.0.1:7000   drops", "": " of 100.0 MB   fullest of 3 nodes   drops"} {
		assert.Contains(t, memoryLine(&overview.Memory{Used: 1, Max: 100_000_000, High: 90_000_000, Node: node, Nodes: 3}, painter{}), want)
	}
	assert.Equal(t, "5.0 MB", memoryLine(&overview.Memory{Used: 5_000_000}, painter{}), "a bus that does not tell its marks")
	assert.Contains(t, memoryLine(&overview.Memory{Used: 95, Max: 100, High: 90, Low: 80}, painter{true}), "\x1b[1;31m[", "above the high mark")
	assert.Contains(t, memoryLine(&overview.Memory{Used: 8500, Max: 10000, High: 9000, Low: 8000}, painter{true}), "\x1b[33m[")
}

func BenchmarkScreenOfThousands(b *testing.B) {
	s := at(0)
	for i := range 1000 {
		s = s.topic(fmt.Sprint("topic", i), int64(i)).subscriber(overview.SubscriberState{Name: fmt.Sprint("subscriber", i), Queued: int64(i)})
	}
	m := screen(120, 50)
	for b.Loop() {
		s.At = s.At.Add(time.Second)
		m.take(answer{figures: figuresOf(s)})
		m.render()
	}
}
