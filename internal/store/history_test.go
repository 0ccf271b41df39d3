package store_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store"
	"routemaster/internal/store/storetest"
	"routemaster/internal/wire"
)

// historyBench is a bus with the histories of its topics.
type historyBench struct {
	*storetest.Bus
	history *store.History
}

func eachHistoryBench(t *testing.T, test func(t *testing.T, b *historyBench)) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		b := storetest.NewBus(t, server)
		test(t, &historyBench{b, store.NewHistory(b.Store)})
	})
}

const widgets = bus.TopicName("widgets")

// put sets the limits of widgets' history, which the publisher asks for, at a time in ms.
func (b *historyBench) put(l store.HistoryLimits, ms int) {
	b.T.Helper()
	require.NoError(b.T, b.history.Put(b.T.Context(), widgets, storetest.Publisher, l, storetest.After(ms)))
}

// positions reads all of widgets' history from a position on, and requires that event n has
// position n.
func (b *historyBench) positions(from int64) (positions []int64) {
	b.T.Helper()
	for {
		s, err := b.history.Read(b.T.Context(), widgets, from, 100)
		require.NoError(b.T, err)
		for _, entry := range s.Entries {
			positions = append(positions, entry.Position)
			assert.EqualValues(b.T, entry.Position, storetest.Number(b.T, entry.Event))
		}
		if len(s.Entries) == 0 {
			return positions
		}
		from = s.Entries[len(s.Entries)-1].Position + 1
	}
}

func (b *historyBench) status() store.HistoryStatus {
	b.T.Helper()
	s, err := b.history.Get(b.T.Context(), widgets)
	require.NoError(b.T, err)
	return s
}

func upTo(first, last int64) (all []int64) {
	for i := first; i <= last; i++ {
		all = append(all, i)
	}
	return all
}

func TestAHistoryKeepsItsLimit(t *testing.T) {
	eachHistoryBench(t, func(t *testing.T, b *historyBench) {
		ctx := t.Context()
		b.AddSubscriber(storetest.Alice, time.Hour, 10_000, widgets)
		require.NoError(t, b.history.Put(ctx, widgets, "", store.HistoryLimits{Events: 1000}, storetest.Start))
		assert.Equal(t, store.HistoryStatus{Limits: store.HistoryLimits{Events: 1000}, First: 1}, b.status())

		b.PublishEvents(widgets, 1, 1000, 10)
		b.PublishEvents(widgets, 1001, 1500, 20)
		s := b.status()
		assert.Equal(t, []int64{501, 1500, 1000}, []int64{s.First, s.Last, s.Events})
		assert.Equal(t, storetest.After(10), s.OldestAt)
		size := int64(0)
		for i := 501; i <= 1500; i++ {
			size += int64(len(storetest.Packed(t, widgets, i)) + 8)
		}
		assert.Equal(t, size, s.Bytes)
		assert.Equal(t, upTo(501, 1500), b.positions(1), "it begins at its first")
		assert.Equal(t, upTo(1499, 1500), b.positions(1499))
		assert.Empty(t, b.positions(1501))
		for since, want := range map[int]int64{-1: 501, 10: 501, 11: 1001, 20: 1001, 21: 1501} {
			at, err := b.history.PositionAt(ctx, widgets, storetest.After(since))
			require.NoError(t, err)
			assert.Equal(t, want, at, "since %d", since)
		}
		b.RequireSound()
	})
}

// TestTheTimeOfAHistoryDoesNotGoBack publishes while the clock does.
func TestTheTimeOfAHistoryDoesNotGoBack(t *testing.T) {
	eachHistoryBench(t, func(t *testing.T, b *historyBench) {
		b.PublishEvents(widgets, 1, 1, 0)
		b.put(store.HistoryLimits{Events: 10}, 0)
		for i, ms := range []int{5, 3, 9} {
			b.PublishEvents(widgets, i+2, i+2, ms)
		}
		s, err := b.history.Read(t.Context(), widgets, 0, 10)
		require.NoError(t, err)
		var at []int64
		for _, entry := range s.Entries {
			at = append(at, entry.ReceivedAt-storetest.Start.UnixMilli())
		}
		assert.Equal(t, []int64{5, 5, 9}, at)
		assert.Equal(t, []int64{2, 4}, []int64{s.First, s.Last}, "what came before it was put is not there")
	})
}

func TestLimitsByBytesAndAge(t *testing.T) {
	eachHistoryBench(t, func(t *testing.T, b *historyBench) {
		b.PublishEvents(widgets, 1, 1, 0)
		b.put(store.HistoryLimits{Bytes: 1000}, 0)
		entry := int64(len(storetest.Packed(t, widgets, 10)) + 8)
		for i := 2; i <= 40; i++ {
			b.PublishEvents(widgets, i, i, i)
		}
		s := b.status()
		assert.Equal(t, 1000/entry, s.Events)
		assert.Equal(t, s.Events*entry, s.Bytes)

		b.put(store.HistoryLimits{Age: time.Second, Events: 100}, 40)
		b.PublishEvents(widgets, 41, 41, 1038)
		assert.Equal(t, upTo(38, 41), b.positions(0), "a second is not more than a second")
		b.PublishEvents(widgets, 42, 42, 5000)
		assert.Equal(t, upTo(42, 42), b.positions(0))
		assert.Equal(t, store.HistoryLimits{Age: time.Second, Events: 100}, b.status().Limits)
	})
}

// TestChangedLimitsTrim lowers a limit by more than one step removes.
func TestChangedLimitsTrim(t *testing.T) {
	eachHistoryBench(t, func(t *testing.T, b *historyBench) {
		b.PublishEvents(widgets, 1, 1, 0)
		b.put(store.HistoryLimits{Events: 3000}, 0)
		for from := 2; from < 2500; from += 833 {
			b.PublishEvents(widgets, from, from+832, from)
		}
		b.put(store.HistoryLimits{Events: 100, Age: time.Minute}, 3000)
		assert.EqualValues(t, 1002, b.status().First, "a step")
		steps := 0
		goesOn := func() bool { steps++; return steps <= 1 }
		trimmed, err := b.history.Trim(t.Context(), storetest.After(3000), goesOn)
		require.NoError(t, err)
		assert.Equal(t, store.DroppedHistory{widgets: 1000}, trimmed)
		steps = -5
		trimmed, err = b.history.Trim(t.Context(), storetest.After(3000), goesOn)
		require.NoError(t, err)
		assert.Equal(t, store.DroppedHistory{widgets: 399}, trimmed)
		assert.Equal(t, upTo(2401, 2500), b.positions(0))

		trimmed, err = b.history.Trim(t.Context(), storetest.After(100_000), goesOn)
		require.NoError(t, err)
		assert.Equal(t, 100, trimmed.Events(), "the topic is idle, and what it has grows old")
		assert.Equal(t, store.HistoryStatus{Limits: store.HistoryLimits{Events: 100, Age: time.Minute}, First: 2501, Last: 2500}, b.status())
		b.PublishEvents(widgets, 2501, 2502, 100_000)
		assert.Equal(t, upTo(2501, 2502), b.positions(0))
		b.RequireSound()
	})
}

func TestWhoMayKeepAHistory(t *testing.T) {
	eachHistoryBench(t, func(t *testing.T, b *historyBench) {
		ctx := t.Context()
		limits := store.HistoryLimits{Events: 1}
		put := func(topic bus.TopicName, by bus.Token) error {
			return b.history.Put(ctx, topic, by, limits, storetest.Start)
		}
		assert.ErrorIs(t, put(widgets, ""), bus.ErrTopicUnknown)
		assert.ErrorIs(t, put("limits:widgets", ""), bus.ErrTopicUnknown)
		b.AddSubscriber(storetest.Alice, 0, 1, widgets)
		assert.ErrorIs(t, put(widgets, storetest.Alice), bus.ErrTopicClaimed, "nobody publishes to it")
		b.PublishEvents(widgets, 1, 1, 0)
		assert.ErrorIs(t, put(widgets, storetest.Alice), bus.ErrTopicClaimed)
		_, err := b.history.Get(ctx, widgets)
		assert.ErrorIs(t, err, store.ErrNoHistory)
		require.NoError(t, b.PutToken(ctx, "publisher--2", "publisher"))
		require.NoError(t, put(widgets, "publisher--2"), "another token of the publisher")
		assert.ErrorIs(t, b.history.Delete(ctx, widgets, storetest.Alice), bus.ErrTopicClaimed)
		topics, err := b.history.Topics(ctx)
		require.NoError(t, err)
		assert.Equal(t, []bus.TopicName{widgets}, topics)
		require.NoError(t, b.history.Delete(ctx, widgets, "publisher--2"))
		assert.ErrorIs(t, b.history.Delete(ctx, widgets, ""), store.ErrNoHistory)
		assert.ErrorIs(t, b.history.Delete(ctx, "none", ""), bus.ErrTopicUnknown)
		_, err = b.history.Read(ctx, widgets, 0, 1)
		assert.ErrorIs(t, err, store.ErrNoHistory)
		_, err = b.history.PositionAt(ctx, widgets, storetest.Start)
		assert.ErrorIs(t, err, store.ErrNoHistory)
		_, err = b.history.Get(ctx, "none")
		assert.ErrorIs(t, err, bus.ErrTopicUnknown)
		_, err = b.history.Read(ctx, "none", 0, 1)
		assert.ErrorIs(t, err, bus.ErrTopicUnknown)
		assert.Empty(t, b.Redis.Keys(ctx, "history*").Val())
		b.RequireSound()
	})
}

func TestLimitsAreChecked(t *testing.T) {
	n := func(n int64) *int64 { return &n }
	for _, c := range []struct {
		events, age, bytes *int64
		want               store.HistoryLimits
	}{
		{n(1), nil, nil, store.HistoryLimits{Events: 1}},
		{n(10_000_000), n(2_592_000_000), n(1_000_000_000), store.HistoryLimits{Events: 10_000_000, Age: 30 * 24 * time.Hour, Bytes: 1_000_000_000}},
		{nil, n(1000), n(1000), store.HistoryLimits{Age: time.Second, Bytes: 1000}},
	} {
		limits, err := store.NewHistoryLimits(c.events, c.age, c.bytes)
		require.NoError(t, err)
		assert.Equal(t, c.want, limits)
	}
	for _, c := range []struct {
		events, age, bytes *int64
		pointer            string
	}{
		{nil, nil, nil, ""}, {n(0), n(1000), nil, "/events"}, {n(10_000_001), nil, nil, "/events"},
		{n(1), n(999), nil, "/age"}, {nil, n(1 << 62), nil, "/age"},
		{nil, nil, n(999), "/bytes"}, {n(1), nil, n(1_000_000_001), "/bytes"},
	} {
		_, err := store.NewHistoryLimits(c.events, c.age, c.bytes)
		var invalid *bus.Invalid
		require.ErrorAs(t, err, &invalid)
		assert.Equal(t, c.pointer, invalid.Pointer)
	}
}

// TestATopicTakesItsHistoryAlong deletes topics, in every possible way, and creates one again.
func TestATopicTakesItsHistoryAlong(t *testing.T) {
	eachHistoryBench(t, func(t *testing.T, b *historyBench) {
		ctx := t.Context()
		b.PublishEvents(widgets, 1, 1, 0)
		b.put(store.HistoryLimits{Events: 10}, 0)
		b.PublishEvents(widgets, 2, 5, 0)
		require.NoError(t, b.DeleteTopic(ctx, widgets, storetest.Publisher))
		assert.Empty(t, b.Redis.Keys(ctx, "history*").Val())
		assert.Empty(t, b.Redis.HGetAll(ctx, "plans").Val())
		b.PublishEvents(widgets, 1, 1, 0)
		_, err := b.history.Get(ctx, widgets)
		assert.ErrorIs(t, err, store.ErrNoHistory)
		b.put(store.HistoryLimits{Events: 10}, 0)
		b.PublishEvents(widgets, 2, 2, 0)
		assert.Equal(t, upTo(2, 2), b.positions(0))

		b.AddSubscriber(storetest.Alice, 0, 1, "gadgets")
		require.NoError(t, b.history.Put(ctx, "gadgets", "", store.HistoryLimits{Events: 1}, storetest.Start))
		require.NoError(t, b.DeleteSubscriber(ctx, storetest.Alice))
		for _, now := range []time.Time{storetest.Start, storetest.Start.Add(25 * time.Hour)} {
			_, err = b.SweepTopics(ctx, []string{"gadgets"}, now)
			require.NoError(t, err)
		}
		assert.Equal(t, []string{"history:limits:widgets", "history:widgets"}, slices.Sorted(slices.Values(b.Redis.Keys(ctx, "history*").Val())))
		b.RequireSound()
	})
}

// TestAHistoryBeginsAnewWhereItDoesNotFollow publishes events without it, as by a version that
// knows no history, and overwrites its keys. Publishing goes on in any case.
func TestAHistoryBeginsAnewWhereItDoesNotFollow(t *testing.T) {
	eachHistoryBench(t, func(t *testing.T, b *historyBench) {
		ctx := t.Context()
		b.PublishEvents(widgets, 1, 1, 0)
		b.put(store.HistoryLimits{Events: 10}, 0)
		b.PublishEvents(widgets, 2, 4, 0)
		require.NoError(t, b.Redis.HIncrBy(ctx, "topic:widgets", "counter", 2).Err())
		b.PublishEvents(widgets, 7, 8, 1)
		assert.Equal(t, upTo(7, 8), b.positions(0))
		require.NoError(t, b.Redis.Set(ctx, "history:widgets", "x", 0).Err())
		dropped, err := b.history.DropOldest(ctx, storetest.Start)
		require.NoError(t, err)
		assert.Empty(t, dropped)
		b.PublishEvents(widgets, 9, 9, 2)
		assert.Equal(t, upTo(9, 9), b.positions(0))
		assert.EqualValues(t, 8+len(storetest.Packed(t, widgets, 9)), b.status().Bytes)
		b.RequireSound()
		require.NoError(t, b.Redis.Set(ctx, "history:limits:widgets", "x", 0).Err())
		b.PublishEvents(widgets, 10, 10, 3)
		trimmed, err := b.history.Trim(ctx, storetest.Start, func() bool { return true })
		require.NoError(t, err)
		assert.Empty(t, trimmed)
	})
}

// TestDropOldestOfHistories uses the histories of two topics, each with events older than some of
// the other's.
func TestDropOldestOfHistories(t *testing.T) {
	eachHistoryBench(t, func(t *testing.T, b *historyBench) {
		ctx := t.Context()
		const gadgets = bus.TopicName("gadgets")
		for _, topic := range []bus.TopicName{widgets, gadgets} {
			b.PublishEvents(topic, 1, 1, 0)
			require.NoError(t, b.history.Put(ctx, topic, "", store.HistoryLimits{Events: 10_000}, storetest.Start))
		}
		b.PublishEvents(widgets, 2, 901, 1)
		b.PublishEvents(gadgets, 2, 601, 2)
		b.PublishEvents(widgets, 902, 1301, 3)
		for _, want := range []store.DroppedHistory{{widgets: 1000}, {gadgets: 600}, {widgets: 300}, {}} {
			dropped, err := b.history.DropOldest(ctx, storetest.Start)
			require.NoError(t, err)
			assert.Equal(t, want, dropped)
		}
		assert.EqualValues(t, 1302, b.status().First)
		b.PublishEvents(widgets, 1302, 1302, 4)
		assert.Equal(t, upTo(1302, 1302), b.positions(0))
		b.RequireSound()
	})
}

// TestLargeEventsAreReadInParts reads a history of more bytes than one call does.
func TestLargeEventsAreReadInParts(t *testing.T) {
	b := &historyBench{Bus: storetest.NewBus(t, rdbtest.Real(t))}
	b.history = store.NewHistory(b.Store)
	b.PublishEvents(widgets, 1, 1, 0)
	b.put(store.HistoryLimits{Events: 1000}, 0)
	p := store.Publication{Topic: widgets, Publisher: storetest.Publisher, ReceivedAt: 1}
	for range 150 {
		p.Events = append(p.Events, wire.PackedEvent(make([]byte, 50_000)))
	}
	require.NoError(t, b.Publish(t.Context(), p))
	from, parts := int64(0), 0
	for ; ; parts++ {
		s, err := b.history.Read(t.Context(), widgets, from, 1000)
		require.NoError(t, err)
		if len(s.Entries) == 0 {
			break
		}
		assert.LessOrEqual(t, len(s.Entries), 100)
		from = s.Entries[len(s.Entries)-1].Position + 1
	}
	assert.Equal(t, []int64{2, 152}, []int64{int64(parts), from})
}

// TestAFullRedisKeepsNoNewHistory uses a Redis without free memory.
func TestAFullRedisKeepsNoNewHistory(t *testing.T) {
	b := &historyBench{Bus: storetest.NewBus(t, rdbtest.Real(t))}
	b.history = store.NewHistory(b.Store)
	ctx := t.Context()
	b.PublishEvents(widgets, 1, 1, 0)
	b.put(store.HistoryLimits{Events: 1000}, 0)
	b.PublishEvents(widgets, 2, 9, 0)
	full := func(limit string) { require.NoError(t, b.Redis.ConfigSet(ctx, "maxmemory", limit).Err()) }
	full("1")
	put := func(ctx context.Context) error {
		return b.history.Put(ctx, widgets, "", store.HistoryLimits{Events: 1}, storetest.Start)
	}
	assert.ErrorIs(t, put(ctx), bus.ErrUnavailable)
	if _, err := b.history.Get(ctx, widgets); err != nil { // a full Redis refuses transactions that only read; Valkey does not
		assert.ErrorIs(t, err, bus.ErrUnavailable)
	}
	dropped, err := b.history.DropOldest(ctx, storetest.Start)
	require.NoError(t, err)
	assert.Equal(t, 8, dropped.Events())
	require.NoError(t, b.history.Delete(ctx, widgets, ""))
	full("0")
	require.NoError(t, put(ctx))
}
