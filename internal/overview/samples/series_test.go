package samples

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/overview"
	"routemaster/internal/rdb"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store/storetest"
)

// bigSlot is a slot of so many subscribers and topics, all of them active.
func bigSlot(at time.Time, subscribers, topics int) overview.Slot {
	random := rand.New(rand.NewPCG(1, 2))
	s := overview.Slot{At: at, Events: 5, Used: 6, AllSubscribers: int64(subscribers), AllTopics: int64(topics)}
	for i := range subscribers {
		s.Subscribers = append(s.Subscribers, overview.NamedTotals{Name: fmt.Sprintf("service-%d", i), Totals: overview.Totals{
			Sent:   random.Int64N(1e9),
			Counts: overview.Counts{Succeeded: random.Int64N(1e7), Failed: random.Int64N(1e4), Dropped: random.Int64N(1e4)},
			Times:  overview.Times{Took: random.Int64N(1e9), Waited: random.Int64N(1e10)},
			Queued: random.Int64N(1e5), Oldest: time.Duration(random.Int64N(1e6)) * time.Millisecond, Health: random.IntN(101),
		}})
	}
	for i := range topics {
		s.Topics = append(s.Topics, overview.TopicEvents{Name: fmt.Sprintf("topic-%d", i), Events: random.Int64N(1e9)})
	}
	return s
}

func TestASlotIsPacked(t *testing.T) {
	slot := bigSlot(storetest.Start, 3, 2)
	slot.Bus = overview.Totals{Sent: -1, Queued: 7, Oldest: time.Second, Health: 8}
	slot.Unreadable, slot.Scrubbed, slot.Waiting, slot.Busy, slot.Threads, slot.Dead = 9, 10, 11, 12, 13, 14
	slot.JobTypes = []overview.JobTypeState{{Name: "mail", Succeeded: 22, Failed: 23, Expired: 24, Waiting: 25, OldestAt: time.UnixMilli(26)}}
	slot.Machines = []overview.MachineState{{Name: "trial", Moved: 27, Failed: 28, Unpublished: 29}}
	packed := string(pack(slot, 1000))
	unpacked, err := unpack(packed)
	require.NoError(t, err)
	assert.Equal(t, slot, unpacked)
	for i := range packed {
		if cut, err := unpack(packed[:i]); err == nil {
			t.Errorf("of %d bytes: %+v", i, cut)
		}
	}
	huge := appendNumbers(appendTotals(appendNumbers(nil, make([]int64, 11)...), overview.Totals{}), 1<<60, 1<<60)
	for name, wrong := range map[string]string{
		"another version": "\x04" + packed[1:], "no slot": "abc", "more than a slot": string(deflate(append(appendSlot(nil, slot), 0))),
		"too many": string(deflate(huge)), "what never ends": string(deflate(make([]byte, maxUnpacked+1))),
	} {
		_, err := unpack(wrong)
		assert.ErrorIs(t, err, errSlot, name)
	}
}

func TestASlotIsNotTooLarge(t *testing.T) {
	slot := bigSlot(storetest.Start, 1000, 500)
	all := pack(slot, 1<<20)
	t.Logf("1,000 subscribers and 500 topics: %d bytes, %d before compression", len(all), len(appendSlot(nil, slot)))
	for _, max := range []int{len(all), len(all) - 1, 7000, 500, 60} {
		packed := pack(slot, max)
		require.LessOrEqual(t, len(packed), max)
		short, err := unpack(string(packed))
		require.NoError(t, err)
		assert.Equal(t, slot.At, short.At)
		assert.Equal(t, slot.Subscribers[:len(short.Subscribers)], append([]overview.NamedTotals{}, short.Subscribers...))
		assert.Equal(t, []int64{1000, 500}, []int64{short.AllSubscribers, short.AllTopics})
		if max > 400 && max < len(all) {
			assert.Greater(t, 10*len(packed), 8*max, "no room is wasted")
		}
	}
	assert.Nil(t, pack(slot, 5))
}

func TestSeriesTakeAShareOfTheMemory(t *testing.T) {
	for limit, want := range map[int64]int{0: 0, 19_999_999: 0, 20_000_000: 1280 - keySize, 100_000_000: 7168 - keySize, 1 << 40: maxSlotSize - keySize} {
		assert.Equal(t, want, slotSize(limit), "%d", limit)
	}
}

// record writes a slot at a time, as the worker whose turn it is would.
func (f *fixture) record(at time.Time, slot overview.Slot) {
	f.T.Helper()
	slot.At = at
	require.NoError(f.T, newSeries(f.Partition).write(f.T.Context(), slot, slotSize(100_000_000)))
}

// fastSlots returns the slots of the fast ring from a number on, by Redis' clock.
func (f *fixture) fastSlots(first int64) []overview.Slot {
	f.T.Helper()
	last := overview.Fast.Number(f.Redis.Time(f.T.Context()).Val())
	first = max(first, last-int64(overview.Fast.Points)+1)
	slots, err := newSeries(f.Partition).readRing(f.T.Context(), fastRing, overview.Fast, first, last)
	require.NoError(f.T, err)
	return slices.DeleteFunc(slots, func(slot overview.Slot) bool { return overview.Fast.Number(slot.At) < first })
}

func TestWorkersWriteSlotsInTurn(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		ctx := t.Context()
		f.AddSubscriber(storetest.Alice, time.Second, 2, "widgets")
		f.PublishEvents("widgets", 1, 3, 7)
		for range 3 {
			require.NoError(t, NewRecorder(f.Collector, f.flush).Tick(ctx))
		}
		keys := f.Redis.Keys(ctx, "series:*").Val()
		assert.Len(t, keys, 4, "one slot in each ring, and the turn: %v", keys)
		for _, key := range keys {
			assert.Positive(t, f.Redis.TTL(ctx, key).Val(), key)
		}
		h := overview.NewHistory()
		require.NoError(t, newSeries(f.Partition).load(ctx, h))
		slots := f.fastSlots(1)
		require.Len(t, slots, 1)
		assert.Equal(t, []overview.NamedTotals{{Name: "alice", Totals: overview.Totals{Queued: 3, Oldest: f.at.Sub(storetest.After(7)), Health: 100}}}, slots[0].Subscribers)
		for _, over := range overview.Ranges {
			track, known := h.Track(overview.Subject{}, over)
			require.True(t, known, over.Name)
			assert.InDelta(t, 3, track.Values(overview.Queued)[over.Points-1], 0)
		}
		_, known := h.Track(overview.Subject{Subscriber: "alice"}, overview.Day)
		assert.False(t, known, "of the day there is the bus only")
		f.RequireSound()

		require.NoError(t, f.Redis.Del(ctx, "series:turn").Err())
		f.config.Memory.Max = 1000
		if m, err := f.Partition.Memory(ctx); err != nil || m.Max == 0 {
			require.NoError(t, f.Redis.FlushAll(ctx).Err())
			require.NoError(t, NewRecorder(f.Collector, f.flush).Tick(ctx))
			assert.Equal(t, []string{"series:turn"}, f.Redis.Keys(ctx, "series:*").Val(), "there is no room")
		}
	})
}

func TestTheHistoryOutlivesProcesses(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		ctx := t.Context()
		now := f.Redis.Time(ctx).Val()
		for step := range 2 * overview.Fast.Points { // each slot is written twice
			slot := bigSlot(now, 1, 1)
			slot.Bus.Sent = int64(100 * step)
			f.record(now.Add(time.Duration(step-2*overview.Fast.Points+1)*overview.Fast.Step), slot)
		}
		require.NoError(t, f.Redis.Set(ctx, "series:fast:"+fmt.Sprint((overview.Fast.Number(now)-2)%90), "damaged", 0).Err())
		series := newSeries(f.Partition)
		var tracks []string
		for range 2 {
			h := overview.NewHistory()
			require.NoError(t, series.load(ctx, h))
			assert.Empty(t, f.fastSlots(h.End(overview.Fast)+1), "there is nothing new")
			require.NoError(t, series.load(ctx, h))
			track, known := h.Track(overview.Subject{}, overview.Fast)
			require.True(t, known)
			out := track.Values(overview.Out)
			tracks = append(tracks, fmt.Sprint(out, track.Values(overview.Queued)))
			assert.InDelta(t, 10, out[50], 0.01)
		}
		assert.Equal(t, tracks[0], tracks[1])
	})
}

// TestAFullHistoryIsBounded fills the rings of a Redis of 100 MB.
func TestAFullHistoryIsBounded(t *testing.T) {
	f := newFixture(t, rdbtest.Real(t))
	ctx, series := t.Context(), newSeries(f.Partition)
	slot := bigSlot(f.Redis.Time(ctx).Val(), 1000, 500)
	packed := pack(slot, slotSize(100_000_000))
	require.NoError(t, f.Partition.Pipelined(ctx, "fill", func(pipe rdb.Commands) {
		for ring, points := range map[string]int{fastRing: overview.Fast.Points, slowRing: overview.Slow.Points} {
			for n := range points {
				pipe.Set(ctx, series.keys.SeriesSlot(ring, int64(n)), packed, time.Hour)
			}
		}
		for n := range overview.Day.Points {
			pipe.HSet(ctx, series.keys.SeriesDay(), n, strings.Repeat("x", 100))
		}
	}))
	var sum int64
	for _, key := range f.Redis.Keys(ctx, "series:*").Val() {
		sum += f.Redis.MemoryUsage(ctx, key).Val()
	}
	t.Logf("%d bytes", sum)
	assert.Less(t, sum, int64(2_100_000))
}

func TestSlotsAreAGapWhileRedisIsAway(t *testing.T) {
	f := newFixture(t, rdbtest.Real(t))
	f.server.Kill(t)
	require.Error(t, NewRecorder(f.Collector, f.flush).Tick(context.WithoutCancel(t.Context())))
	f.server.Restart(t)
	require.Eventually(t, func() bool { return NewRecorder(f.Collector, f.flush).Tick(t.Context()) == nil }, time.Minute, 10*time.Millisecond)
}

func TestSlotsAreAGapWhileRedisIsFull(t *testing.T) {
	f := newFixture(t, rdbtest.Real(t))
	ctx := t.Context()
	limit := func(bytes string) { require.NoError(t, f.server.Raw.ConfigSet(ctx, "maxmemory", bytes).Err()) }
	slots := func() []string { return f.Redis.Keys(ctx, "series:fast:*").Val() }
	limit("1")
	require.Error(t, NewRecorder(f.Collector, f.flush).Tick(ctx))
	assert.Empty(t, slots())
	limit("100mb")
	require.NoError(t, NewRecorder(f.Collector, f.flush).Tick(ctx))
	assert.Len(t, slots(), 1)
}

// TestTheHistoryGrowsOverWorkers has workers write in turn, one subscriber come back with all that
// it ever had, and one leave; they count for the bus alike.
func TestTheHistoryGrowsOverWorkers(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		ctx := t.Context()
		now := f.Redis.Time(ctx).Val()
		f.AddSubscriber(storetest.Alice, time.Second, 2, "widgets")
		require.NoError(t, f.AddCounters(ctx, map[bus.Counter]int64{dropped("alice"): 5, dropped("bob"): 1000}))
		f.PublishEvents("widgets", 1, 3, 7)
		for i, change := range []func(){
			func() {},
			func() {
				require.NoError(t, f.AddCounters(ctx, map[bus.Counter]int64{everDropped: 4, took("alice"): 84, waited("alice"): 600}))
			},
			func() { f.AddSubscriber(storetest.Bob, time.Second, 2, "gadgets") },
			func() { require.NoError(t, f.DeleteSubscriber(ctx, storetest.Alice)) },
		} {
			change()
			require.NoError(t, NewRecorder(f.collectorOf(f.Store), f.flush).record(ctx, now.Add(time.Duration(i-3)*SeriesInterval)))
		}
		h := overview.NewHistory()
		require.NoError(t, newSeries(f.Partition).load(ctx, h))
		track, known := h.Track(overview.Subject{}, overview.Fast)
		require.True(t, known)
		assert.Equal(t, []float32{4, 0, 0}, track.Values(overview.Dropped)[overview.Fast.Points-3:])
		track, _ = h.Track(overview.Subject{Subscriber: "alice"}, overview.Fast)
		assert.Equal(t, []float32{84, 0}, track.Values(overview.Took)[overview.Fast.Points-3:overview.Fast.Points-1])
		assert.Equal(t, []float32{600, 0}, track.Values(overview.Waited)[overview.Fast.Points-3:overview.Fast.Points-1])
	})
}

// TestAPartThatCannotBeReadLeavesAGap has each of the parts of a slot be damaged.
func TestAPartThatCannotBeReadLeavesAGap(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		ctx := t.Context()
		f.AddSubscriber(storetest.Alice, time.Second, 2, "widgets")
		for _, key := range []string{"topics", "subscribers", "batches:gauges:event", "counters"} {
			f.damage(key, func() {
				require.NoError(t, NewRecorder(f.Collector, f.flush).record(ctx, f.at))
				assert.Empty(t, f.Redis.Keys(ctx, "series:*").Val(), key)
			})
		}
		require.NoError(t, NewRecorder(f.Collector, f.flush).record(ctx, f.at))
		assert.NotEmpty(t, f.Redis.Keys(ctx, "series:*").Val())
	})
}

func TestDamagedKeysDoNotStopTheHistory(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		ctx := t.Context()
		require.NoError(t, f.Redis.Set(ctx, "series:turn", "1", 0).Err())
		require.NoError(t, NewRecorder(f.Collector, f.flush).Tick(ctx))
		assert.Positive(t, f.Redis.TTL(ctx, "series:turn").Val(), "it ends")
		require.NoError(t, f.Redis.Del(ctx, "series:turn").Err())
		require.NoError(t, f.Redis.Set(ctx, "processes", "x", 0).Err())
		require.Error(t, NewRecorder(f.Collector, f.flush).Tick(ctx))
		assert.Len(t, f.Redis.Keys(ctx, "series:fast:*").Val(), 1)
	})
}
