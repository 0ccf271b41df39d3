package overview

import (
	"fmt"
	"math"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var epoch = time.UnixMilli(1_700_000_000_000).Truncate(Slow.Step)

// slotAt is a slot so many steps after the epoch, of a subscriber and a topic.
func slotAt(step int, sent, events int64) Slot {
	totals := Totals{Sent: sent, Counts: Counts{Succeeded: sent / 2, Failed: 1, Dropped: 2}, Queued: 7, Oldest: 3 * time.Second, Health: 40}
	return Slot{
		At: epoch.Add(time.Duration(step) * Fast.Step), Bus: totals, Events: events, Used: 99, Busy: 3, Threads: 4, Waiting: 5,
		Subscribers: []NamedTotals{{"shop", totals}}, Topics: []TopicEvents{{"widgets", events}},
	}
}

// text writes the values of a column of a track, from the first that is known on; - is unknown.
func text(track Track, column func(Point) float32) (values string) {
	for _, p := range track.Points {
		if v := column(p); !math.IsNaN(float64(v)) {
			values += fmt.Sprint(v, " ")
		} else if values != "" {
			values += "- "
		}
	}
	return values
}

func TestRatesOfAHistory(t *testing.T) {
	out, in := func(p Point) float32 { return p.Out }, func(p Point) float32 { return p.In }
	for name, test := range map[string]struct {
		slots   []Slot
		out, in string
	}{
		"one says nothing":             {[]Slot{slotAt(0, 10, 10)}, "", ""},
		"two are a rate":               {[]Slot{slotAt(0, 10, 10), slotAt(1, 30, 110)}, "2 ", "10 "},
		"a total that fell is a gap":   {[]Slot{slotAt(0, 10, 10), slotAt(1, 30, 0), slotAt(2, 0, 50), slotAt(3, 10, 60)}, "2 - 1 ", "5 1 "},
		"a slot that is lost":          {[]Slot{slotAt(0, 10, 0), slotAt(1, 20, 10), slotAt(3, 40, 30)}, "1 - 1 ", "1 - 1 "},
		"an hour without worker":       {[]Slot{slotAt(0, 10, 0), slotAt(1, 20, 0), slotAt(6, 30, 0), slotAt(7, 40, 0)}, "1 - - - - - 1 ", "0 - - - - - 0 "},
		"the same step, or an old one": {[]Slot{slotAt(1, 10, 0), slotAt(2, 20, 0), slotAt(2, 30, 0), slotAt(0, 50, 0)}, "1 ", "0 "},
		"a day passes":                 {[]Slot{slotAt(0, 10, 0), slotAt(1, 20, 0), slotAt(8640, 30, 0), slotAt(8641, 40, 0)}, "1 ", "0 "},
	} {
		h := NewHistory()
		for _, slot := range test.slots {
			h.Add(Fast, slot)
		}
		for _, of := range []Subject{{}, {Subscriber: "shop"}, {Topic: "widgets"}} {
			track, known := h.Track(of, Fast)
			require.True(t, known, name)
			require.Len(t, track.Points, Fast.Points, name)
			if of.Topic == "" {
				assert.Equal(t, test.out, text(track, out), "%s: %v", name, of)
			}
			if of.Subscriber == "" {
				assert.Equal(t, test.in, text(track, in), "%s: %v", name, of)
			}
		}
	}
}

func TestTheLastPointOfATrack(t *testing.T) {
	h := NewHistory()
	h.Add(Slow, slotAt(0, 10, 10))
	h.Add(Slow, slotAt(12, 130, 250))
	nan := float32(math.NaN())
	for of, want := range map[Subject]Point{
		{}:                   {2, 1, 60, 0, 0, 7, 3, 40, 99, 0, 0, 0.75, 5},
		{Subscriber: "shop"}: {nan, 1, 60, 0, 0, 7, 3, 40, nan, nan, nan, nan, nan},
		{Topic: "widgets"}:   {2, nan, nan, nan, nan, nan, nan, nan, nan, nan, nan, nan, nan},
	} {
		track, known := h.Track(of, Slow)
		require.True(t, known)
		assert.Equal(t, fmt.Sprint(want), fmt.Sprint(track.Points[Slow.Points-1]), of)
		assert.Equal(t, Slow.Step, track.Step)
		assert.True(t, track.End.Equal(epoch.Add(2*Slow.Step)), "%v", track.End)
	}
	_, known := h.Track(Subject{}, Fast)
	assert.False(t, known)
	_, known = h.Track(Subject{Topic: "another"}, Slow)
	assert.False(t, known)
}

func TestWhatIsGoneIsForgotten(t *testing.T) {
	h := NewHistory()
	h.Add(Fast, slotAt(0, 10, 10))
	without := slotAt(1, 10, 10)
	without.Subscribers = nil
	h.Add(Fast, without)
	track, known := h.Track(Subject{Subscriber: "shop"}, Fast)
	require.True(t, known)
	assert.Equal(t, "7 - ", text(track, func(p Point) float32 { return p.Queued }))
	without.At = without.At.Add(time.Duration(Fast.Points) * Fast.Step)
	h.Add(Fast, without)
	_, known = h.Track(Subject{Subscriber: "shop"}, Fast)
	assert.False(t, known)
}

func TestTheMostInterestingIsKeptFirst(t *testing.T) {
	at := epoch
	slot := SlotOf(Sample{
		At: at,
		Subscribers: []SubscriberState{
			{Name: "idle", Sent: 1, Health: 90}, {Name: "tried", AttemptedAt: at, Health: 100},
			{Name: "failing", Failure: "503", Health: 10}, {Name: "waiting", Queued: 2, OldestAt: at.Add(-time.Minute), Health: 100},
		},
		Topics: []TopicState{{Name: "little", Events: 1}, {Name: "much", Events: 9}},
		Memory: &Memory{Used: 5}, Queues: []Queue{{Name: "aux", Instant: 8}, {Name: "main", Instant: 6}}, Unreadable: 3, Scrubbed: 4,
		Processes: []Process{
			{Kind: "worker", Threads: 9, Busy: 7, SeenAt: Time{at}}, {Kind: "web", Threads: 1, SeenAt: Time{at}},
			{Kind: "worker", Threads: 9, Busy: 7, SeenAt: Time{at.Add(-time.Hour)}},
		},
	})
	assert.Equal(t, Totals{Sent: 1, Queued: 2, Oldest: time.Minute, Health: 10}, slot.Bus)
	assert.Equal(t, []int64{10, 3, 4, 5, 6, 7, 9, 6}, []int64{
		slot.Events, slot.Unreadable, slot.Scrubbed, slot.Used, slot.Waiting, slot.Busy, slot.Threads, slot.All,
	})
	names := func() (names []string) {
		for _, sub := range slot.Subscribers {
			names = append(names, sub.Name)
		}
		for _, topic := range slot.Topics {
			names = append(names, topic.Name)
		}
		return names
	}
	assert.Equal(t, []string{"failing", "waiting", "tried", "idle", "much", "little"}, names())
	slot.Shorten(0.5)
	assert.Equal(t, []string{"failing", "waiting", "much"}, names())
	assert.Equal(t, int64(3), slot.Left)
}

// TestAHistoryIsSmall fills the rings of 1,000 subscribers and 500 topics.
func TestAHistoryIsSmall(t *testing.T) {
	slot := Slot{}
	for i := range 1000 {
		slot.Subscribers = append(slot.Subscribers, NamedTotals{Name: fmt.Sprint("subscriber-", i)})
	}
	for i := range 500 {
		slot.Topics = append(slot.Topics, TopicEvents{Name: fmt.Sprint("topic-", i)})
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	h := NewHistory()
	for step := range 2 {
		slot.At = epoch.Add(time.Duration(step) * Slow.Step)
		h.Add(Fast, slot)
		h.Add(Slow, slot)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	assert.Less(t, int64(after.HeapAlloc)-int64(before.HeapAlloc), int64(10<<20))
	t.Logf("%d kB", (int64(after.HeapAlloc)-int64(before.HeapAlloc))>>10)
	runtime.KeepAlive(h)
}

// TestTheBusGrowsAsItsSubscribersDo has subscribers that leave and come back with all they had.
func TestTheBusGrowsAsItsSubscribersDo(t *testing.T) {
	slot := func(step int, left int64, dropped map[string]int64) Slot {
		s := Slot{At: epoch.Add(time.Duration(step) * Fast.Step), Left: left}
		for name, n := range dropped {
			totals := Totals{Sent: 10 * n, Counts: Counts{Dropped: n}}
			s.Subscribers = append(s.Subscribers, NamedTotals{name, totals})
			s.Bus.add(totals)
		}
		return s
	}
	type of = map[string]int64
	for name, test := range map[string]struct {
		left    int64
		dropped []of
		want    string
		out     string
	}{
		"none comes or goes":          {0, []of{{"a": 5, "b": 100}, {"a": 6, "b": 102}}, "3 ", "3 "},
		"one comes with all it had":   {0, []of{{"a": 5}, {"a": 5, "b": 100}, {"a": 6, "b": 101}}, "0 2 ", "0 2 "},
		"one leaves while some drop":  {0, []of{{"a": 5, "b": 100}, {"a": 9}}, "4 ", "4 "},
		"one begins anew":             {0, []of{{"a": 5, "b": 100}, {"a": 7, "b": 0}}, "2 ", "2 "},
		"nobody is there at first":    {0, []of{{}, {"a": 100}, {"a": 101}}, "1 ", "1 "},
		"some are left out: the sums": {1, []of{{"a": 5}, {"a": 9}, {}}, "4 - ", "4 - "},
	} {
		h := NewHistory()
		for i, dropped := range test.dropped {
			h.Add(Fast, slot(i, test.left, dropped))
		}
		track, _ := h.Track(Subject{}, Fast)
		assert.Equal(t, test.want, text(track, func(p Point) float32 { return p.Dropped }), name)
		assert.Equal(t, test.out, text(track, func(p Point) float32 { return p.Out }), name)
	}
}
