package top

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/terminal"
	"routemaster/internal/top/stats"
)

var update = flag.Bool("update", false, "write the screens that the tests see to testdata")

var start = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// snapshot is a [stats.Snapshot] that tests add to.
type snapshot struct{ stats.Snapshot }

// at makes a snapshot of so many seconds after the start.
func at(seconds float64) snapshot {
	return snapshot{stats.Snapshot{At: start.Add(time.Duration(seconds * float64(time.Second)))}}
}

func (s snapshot) topic(name string, events int64) snapshot {
	s.Topics = append(s.Topics, stats.TopicState{Name: name, Publisher: "warehouse", Events: events})
	return s
}

func (s snapshot) subscriber(sub stats.SubscriberState) snapshot {
	s.Subscribers = append(s.Subscribers, sub)
	return s
}

func known(n float64) *float64 { return &n }

// busy are two looks at a bus, 2 s apart, with all that a screen can show.
func busy() (before, after snapshot) {
	due := int64(3)
	for i, s := range []*snapshot{&before, &after} {
		n := int64(i)
		*s = at(float64(2*i)).
			topic("widgets", 1_000_000+3000*n).topic("parcels", 42+n).topic("idle", 0).topic("a_topic_with_a_name_that_is_as_long_as_one_may_be_and_even_longer", 7)
		s.Topics[2].Publisher = ""
		*s = s.
			subscriber(stats.SubscriberState{Name: "shop", Topics: []string{"widgets", "parcels"}, Timeout: time.Second, Sent: 990_000 + 2400*n,
				Queued: 12_345, Health: 100, OldestAt: start.Add(-2 * time.Second), AttemptedAt: start}).
			subscriber(stats.SubscriberState{Name: "search-index", Topics: []string{"widgets"}, Sent: 500, Queued: 65_000, Health: 12 - 4*int(n),
				OldestAt: start.Add(-8 * time.Minute), AttemptedAt: start.Add(-9 * time.Second)}).
			subscriber(stats.SubscriberState{Name: "mailer", Topics: []string{"parcels"}, Sent: 42 + n, Health: 71 + int(n), AttemptedAt: start}).
			subscriber(stats.SubscriberState{Name: "a-client-with-a-very-long-name-that-has-no-room-anywhere", Health: 100})
		s.Bus = stats.Metrics{
			Counts: map[string]stats.Counts{
				"shop": {Succeeded: 100 + float64(30*n), Failed: 2}, "search-index": {Failed: float64(2 * n), Dropped: 10_000 + float64(2345*n)}, "mailer": {Succeeded: 42 + float64(n)},
			},
			Batches: map[string]int64{"shop": 124, "search-index": 650, "mailer": 0}, Due: &due,
			Dead:   map[string]int64{"shop": 1203, "mailer": 0},
			States: map[string]string{"shop": stats.Paced, "search-index": stats.Throttled, "mailer": stats.Throttled},
			Jobs:   []stats.Jobs{{Queue: "main", Instant: 2, Scheduled: 772}, {Queue: "jobs"}, {Queue: "aux", Scheduled: 1}},
			Memory: &stats.Memory{Used: 61_200_000, Max: 100_000_000, High: 90_000_000, Low: 80_000_000},
		}
	}
	return before, after
}

// withJobs adds job types to a snapshot, of which jobs have ended.
func (s snapshot) withJobs(ended float64) snapshot {
	s.Bus.Types = []stats.JobTypeState{
		{Name: "invoices", Queued: 1_204_000, Waiting: 12, InProgress: 50, Concurrency: 50, OldestAge: 4 * time.Minute,
			Ended: map[string]float64{"succeeded": 90_000 + 400*ended, "failed": 7 + ended, "expired": 0}},
		{Name: "labels", Queued: 3, Concurrency: 1, Paused: true, OldestAge: 26 * time.Hour},
	}
	s.Bus.Jobs[1] = stats.Jobs{Queue: "jobs", Instant: 12, Scheduled: 1_204_041}
	return s
}

// withMachines adds state machines to a snapshot, whose labels have made steps.
func (s snapshot) withMachines(steps float64) snapshot {
	s.Bus.Machines = []stats.MachineState{
		{Name: "drip_feed", Labels: 1_204_000, Errored: 12, Unpublished: 3, Steps: map[string]float64{stats.Moved: 90_000 + 400*steps, stats.Failed: 7 + steps}},
		{Name: "trial", Labels: 7, Steps: map[string]float64{stats.Moved: 5, stats.Failed: 0}},
	}
	s.Bus.Jobs = append(s.Bus.Jobs, stats.Jobs{Queue: "machines", Instant: 4, Scheduled: 1500})
	return s
}

// withMachines has a model see a busy bus that has state machines, too, and no job types.
func withMachines(m *Model) *Model {
	before, after := busy()
	m.sampler = stats.Sampler{}
	m.take(sampled{snapshot: before.withMachines(0).Snapshot})
	m.take(sampled{snapshot: after.withMachines(1).Snapshot})
	return m
}

// withJobTypes has a model see a busy bus that has job types, too.
func withJobTypes(m *Model) *Model {
	before, after := busy()
	m.sampler = stats.Sampler{}
	m.take(sampled{snapshot: before.withJobs(0).Snapshot})
	m.take(sampled{snapshot: after.withJobs(1).Snapshot})
	return m
}

// screen is a model that has seen a busy bus.
func screen(width, height int) *Model {
	m := newModel(context.Background(), nil, Options{Bus: "https://bus.example", Interval: 2 * time.Second})
	m.paint, m.width, m.height = painter{}, width, height
	m.now = func() time.Time { return start.Add(14 * time.Second) }
	before, after := busy()
	after.At = after.At.In(time.UTC)
	m.take(sampled{snapshot: before.Snapshot})
	m.take(sampled{snapshot: after.Snapshot})
	return m
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
		"machines":   withMachines(screen(80, 34)),
		"all":        screen(80, 40),
		"first":      newModel(context.Background(), nil, Options{Bus: "https://bus.example", Interval: time.Minute}),
	} {
		switch name {
		case "topics":
			m.focus = 1
		case "jobs-80x20":
			m.focus = 2
		case "all":
			before, after := busy()
			m.sampler = stats.Sampler{}
			m.take(sampled{snapshot: before.withJobs(0).withMachines(0).Snapshot})
			m.take(sampled{snapshot: after.withJobs(1).withMachines(1).Snapshot})
			m.focus = 3
		case "away":
			m.take(sampled{err: errors.New("list topics: 503 Service Unavailable: Redis\x1b[31m is away")})
		case "unread":
			_, s := busy()
			s.At, s.Bus, s.Warnings = s.At.Add(2*time.Second), stats.Metrics{}, []string{"The bus's metrics are missing: read metrics: 404 Not Found."}
			m.take(sampled{snapshot: s.Snapshot})
			m.paused = true
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
	for _, s := range []*snapshot{&before, &after} {
		*s = s.topic("\x1b[2J\r\n店店店店店店店店店店店店店店店店店店店", 5).subscriber(stats.SubscriberState{Name: "e\u0301\u202e店\t👩‍👩‍👧", Queued: 1 << 60, Sent: 1 << 62})
		s.Warnings = []string{"a\x1b]0;title\x07", strings.Repeat("店", 300)}
	}
	for range 100 {
		after = after.subscriber(stats.SubscriberState{Name: fmt.Sprint("s", len(after.Subscribers)), Queued: 1})
	}
	for _, styled := range []bool{false, true} {
		m := screen(80, 24)
		m.paint = painter{styled}
		m.bus = "https://bus.example/\x1b[2J"
		m.take(sampled{snapshot: before.withJobs(0).withMachines(0).Snapshot})
		m.take(sampled{snapshot: after.withJobs(1).withMachines(1).Snapshot})
		m.err = errors.New("gone\r\n\x1b[2J")
		for width := 0; width < 130; width += 1 + width/20 {
			for height := 0; height < 40; height += 1 + height/10 {
				m.width, m.height, m.focus = width, height, height%4
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
		assert.Contains(t, memoryLine(&stats.Memory{Used: used, Max: 100_000_000, High: 90_000_000, Low: 80_000_000}, painter{}), want)
	}
	assert.Equal(t, "5.0 MB", memoryLine(&stats.Memory{Used: 5_000_000}, painter{}), "a bus that does not tell its marks")
	assert.Contains(t, memoryLine(&stats.Memory{Used: 95, Max: 100, High: 90, Low: 80}, painter{true}), "\x1b[1;31m[", "above the high mark")
	assert.Contains(t, memoryLine(&stats.Memory{Used: 8500, Max: 10000, High: 9000, Low: 8000}, painter{true}), "\x1b[33m[")
}

func BenchmarkScreenOfThousands(b *testing.B) {
	s := at(0)
	for i := range 1000 {
		s = s.topic(fmt.Sprint("topic", i), int64(i)).subscriber(stats.SubscriberState{Name: fmt.Sprint("subscriber", i), Queued: int64(i)})
	}
	m := screen(120, 50)
	for b.Loop() {
		s.At = s.At.Add(time.Second)
		m.take(sampled{snapshot: s.Snapshot})
		m.render()
	}
}
