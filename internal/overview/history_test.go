package overview

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
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
		At: epoch.Add(time.Duration(step) * Fast.Step), Bus: totals, Events: events, Used: 99, Busy: 3, Threads: 4, Waiting: 5, Dead: 6,
		Subscribers: []NamedTotals{{"shop", totals}}, Topics: []TopicEvents{{"widgets", events}}, AllSubscribers: 1, AllTopics: 1,
	}
}

// text writes the values of a figure of a track, from the first that is known on; - is unknown.
func text(track Track, f Figure) (values string) {
	for _, v := range track.Values(f) {
		if !math.IsNaN(float64(v)) {
			values += fmt.Sprint(v, " ")
		} else if values != "" {
			values += "- "
		}
	}
	return values
}

// TestNamesOfASlotAreThoseOfRedis has names that no client of the bus can have, but that another
// program may have written.
func TestNamesOfASlotAreThoseOfRedis(t *testing.T) {
	h := NewHistory()
	for step := range int64(2) {
		slot := slotAt(int(step), 10*step, 10*step)
		totals := Totals{Sent: 1000 * step}
		slot.Subscribers = append(slot.Subscribers, NamedTotals{"", totals}, NamedTotals{"shop", totals}, NamedTotals{"../x", totals})
		slot.Topics = append(slot.Topics, TopicEvents{"", 1000 * step}, TopicEvents{"widgets", 1000 * step})
		h.Add(Fast, slot)
	}
	for of, want := range map[Subject]string{{}: "1 ", {Subscriber: "shop"}: "1 ", {Subscriber: "../x"}: "100 "} {
		track, known := h.Track(of, Fast)
		require.True(t, known)
		assert.Equal(t, want, text(track, Out), of)
	}
	track, _ := h.Track(Subject{Topic: "widgets"}, Fast)
	assert.Equal(t, "1 ", text(track, In))
}

func TestRatesOfAHistory(t *testing.T) {
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
			require.Equal(t, Fast.Points, track.Steps, name)
			if of.Topic == "" {
				assert.Equal(t, test.out, text(track, Out), "%s: %v", name, of)
			}
			if of.Subscriber == "" {
				assert.Equal(t, test.in, text(track, In), "%s: %v", name, of)
			}
		}
	}
}

func TestTheLastPointOfATrack(t *testing.T) {
	h := NewHistory()
	h.Add(Slow, slotAt(0, 10, 10))
	h.Add(Slow, slotAt(12, 130, 250))
	for of, want := range map[Subject][figures]float32{
		{}:                   {1, 60, 0, 0, 7, 3, 40, nan, nan, 2, 0, 0, 99, 0.75, 5, 6},
		{Subscriber: "shop"}: {1, 60, 0, 0, 7, 3, 40, nan, nan, nan, nan, nan, nan, nan, nan, nan},
		{Topic: "widgets"}:   {nan, nan, nan, nan, nan, nan, nan, nan, nan, 2, nan, nan, nan, nan, nan, nan},
	} {
		track, known := h.Track(of, Slow)
		require.True(t, known)
		var got [figures]float32
		for f := range figures {
			got[f] = track.Values(f)[Slow.Points-1]
		}
		assert.Equal(t, fmt.Sprint(want), fmt.Sprint(got), of)
		assert.Equal(t, Slow.Step, track.Step)
		assert.True(t, track.End.Equal(epoch.Add(2*Slow.Step)), "%v", track.End)
	}
	_, known := h.Track(Subject{}, Fast)
	assert.False(t, known)
	_, known = h.Track(Subject{Topic: "another"}, Slow)
	assert.False(t, known)
}

func TestTimesAreOfTheShortestRange(t *testing.T) {
	h := NewHistory()
	for step, times := range []Times{{100, 1000}, {150, 1700}, {150, 1700}, {20, 9}, {21, 10}} {
		slot := slotAt(step, 1, 1)
		slot.Subscribers[0].Times = times
		h.Add(Fast, slot)
		slot.At = epoch.Add(time.Duration(step) * Slow.Step)
		h.Add(Slow, slot)
	}
	for name, want := range map[string][]string{"shop": {"50 0 - 1 ", "700 0 - 1 "}, "": {"", ""}} {
		track, _ := h.Track(Subject{Subscriber: name}, Fast)
		assert.Equal(t, want, []string{text(track, Took), text(track, Waited)}, "of %q", name)
	}
	track, _ := h.Track(Subject{Subscriber: "shop"}, Slow)
	assert.Equal(t, []string{"", ""}, []string{text(track, Took), text(track, Waited)})
	assert.Equal(t, "40 40 40 40 40 ", text(track, Health))
}

func TestWhatIsGoneIsForgotten(t *testing.T) {
	h := NewHistory()
	h.Add(Fast, slotAt(0, 10, 10))
	without := slotAt(1, 10, 10)
	without.Subscribers = nil
	h.Add(Fast, without)
	track, known := h.Track(Subject{Subscriber: "shop"}, Fast)
	require.True(t, known)
	assert.Equal(t, "7 - ", text(track, Queued))
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
		Ever: Ever{Published: 10, Acknowledged: 11},
	})
	assert.Equal(t, Totals{Sent: 11, Queued: 2, Oldest: time.Minute, Health: 10}, slot.Bus)
	assert.Equal(t, []int64{10, 3, 4, 5, 6, 7, 9, 4, 2}, []int64{
		slot.Events, slot.Unreadable, slot.Scrubbed, slot.Used, slot.Waiting, slot.Busy, slot.Threads, slot.AllSubscribers, slot.AllTopics,
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
	assert.Equal(t, Coverage{2, 4, 1, 2}, slot.coverage())
}

// TestAHistoryIsSmall fills the rings of 1,000 subscribers and 500 topics, whose figures all change
// at every step.
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
	for step := range 4 {
		slot.At = epoch.Add(time.Duration(step) * Slow.Step)
		n := int64(step * step * 100_001)
		for i := range slot.Subscribers {
			slot.Subscribers[i].Totals = Totals{n, Counts{n, n, n}, Times{n, n}, n, time.Duration(n) * time.Second, step}
		}
		for i := range slot.Topics {
			slot.Topics[i].Events = n
		}
		h.Add(Slow, slot)
		slot.At = epoch.Add(time.Duration(step) * Fast.Step)
		h.Add(Fast, slot)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	assert.Less(t, int64(after.HeapAlloc)-int64(before.HeapAlloc), int64(10<<20))
	t.Logf("%d kB", (int64(after.HeapAlloc)-int64(before.HeapAlloc))>>10)
	runtime.KeepAlive(h)
}

// TestTheBusCountsByItself has subscribers and topics that come and go with all that they ever had.
func TestTheBusCountsByItself(t *testing.T) {
	h := NewHistory()
	for step, names := range [][]string{{"a", "b"}, {"a"}, {"a", "b", "c"}} {
		n := int64(600 * step)
		s := Sample{At: epoch.Add(time.Duration(step) * Day.Step), Ever: Ever{n, 2 * n, Counts{n, n + 1, n + 2}}}
		for _, name := range names {
			s.Subscribers = append(s.Subscribers, SubscriberState{Name: name, Sent: 1e6, Counts: Counts{1e6, 1e6, 1e6}})
			s.Topics = append(s.Topics, TopicState{Name: name, Events: 1e6})
		}
		h.Add(Day, SlotOf(s))
	}
	track, _ := h.Track(Subject{}, Day)
	for f, want := range map[Figure]string{In: "1 1 ", Out: "2 2 ", Succeeded: "600 600 ", Failed: "600 600 ", Dropped: "600 600 "} {
		assert.Equal(t, want, text(track, f), f)
	}
}

// TestASubscriberThatWasLeftOut expects its events of the meantime when it returns.
func TestASubscriberThatWasLeftOut(t *testing.T) {
	for name, test := range map[string]struct {
		steps       []int
		out, failed string
	}{
		"soon":  {[]int{0, 1, 3, 4}, "1 - 1 1 ", "10 10 10 10 "},
		"later": {[]int{0, 1, 9, 10}, "1 - - - - - - - - 1 ", "10 - - - - - - - - 10 "},
	} {
		h := NewHistory()
		for step := range 11 {
			slot := slotAt(step, int64(10*step), 0)
			slot.Subscribers[0].Failed = int64(10 * step)
			if !slices.Contains(test.steps, step) {
				slot.Shorten(0)
			}
			h.Add(Fast, slot)
		}
		track, _ := h.Track(Subject{Subscriber: "shop"}, Fast)
		shown := func(f Figure) string {
			return strings.TrimRight(text(track, f), "- ") + " "
		}
		assert.Equal(t, test.out, shown(Out), name)
		assert.Equal(t, test.failed, shown(Failed), name)
	}
}

func TestWhatIsNotKnownIsAGap(t *testing.T) {
	sample := at(0).subscriber(SubscriberState{Name: "shop", Queued: 5}).subscriber(SubscriberState{Name: "idle"})
	slot := SlotOf(sample)
	h := NewHistory()
	h.Add(Fast, slot)
	for name, oldest := range map[string]string{"": "", "shop": "", "idle": "0 "} {
		track, known := h.Track(Subject{Subscriber: name}, Fast)
		require.True(t, known)
		assert.Equal(t, oldest, text(track, Oldest), "the oldest of %q", name)
	}
	track, _ := h.Track(Subject{}, Fast)
	assert.Empty(t, text(track, Used))
	assert.Equal(t, &Coverage{2, 2, 0, 0}, h.Coverage())
	assert.Nil(t, NewHistory().Coverage())
}
