package maintenance_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/maintenance"
	"routemaster/internal/queue"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store"
	"routemaster/internal/store/storetest"
	"routemaster/internal/wire"
	"routemaster/internal/wire/wiretest"
)

// fill publishes batches of 100 events until Redis uses so many bytes.
func fill(t *testing.T, st *store.Store, bytes int64) {
	t.Helper()
	ctx := t.Context()
	for _, name := range []string{"publisher", "alice", "bob"} {
		require.NoError(t, st.PutToken(ctx, bus.Token(name+"--1"), bus.ClientName(name)))
	}
	timeout, uuid := time.Hour, "demo"
	for token, topics := range map[bus.Token][]bus.TopicName{"alice--1": {"widgets"}, "bob--1": {"widgets", "gadgets"}} {
		require.NoError(t, st.Subscribe(ctx, token, bus.Subscription{
			Topics: topics, Callback: "https://x.example/", UUID: &uuid, Timeout: &timeout,
		}, time.UnixMilli(0)))
	}
	for i := int64(0); used(t, st) < bytes; i++ {
		var events []wire.PackedEvent
		for range 100 {
			const event = `{"type":"update","url":"https://x.example/%0200d","timestamp":1}`
			events = append(events, wiretest.Pack(t, "widgets", fmt.Sprintf(event, i)))
		}
		require.NoError(t, storetest.Publish(ctx, st, store.Publication{
			Topic: "widgets", Publisher: "publisher--1", Events: events, ReceivedAt: i,
		}))
	}
}

// frozen is a clock that stands still, so that no run of autodrop times out on a slow host.
func frozen() time.Time { return time.UnixMilli(0) }

// noise is by how many bytes Redis' memory varies with its connections' buffers.
const noise = 200_000

func used(t *testing.T, st *store.Store) int64 {
	t.Helper()
	memory, err := st.Partition().Memory(t.Context())
	require.NoError(t, err)
	return memory.Used
}

func TestAutodrop(t *testing.T) {
	server := rdbtest.Real(t)
	st := storetest.Open(t, server)
	ctx := t.Context()
	var log bytes.Buffer
	const mb = 1_000_000
	base := used(t, st)
	limits := bus.MemoryLimits{Max: base + 8*mb, MinFree: 2 * mb}
	recorder := newRecorder(st)
	keeper := maintenance.New(store.NewBus(st), st, storetest.NewQueue(st, 1), limits, recorder, slog.New(slog.NewTextHandler(&log, nil)), frozen)
	queued := func() int64 { return server.Raw.ZCard(ctx, "batches:index").Val() }

	fill(t, st, base+5*mb)
	before := queued()
	assert.Equal(t, queue.Done, keeper.Autodrop(ctx, nil))
	assert.Equal(t, before, queued(), "nothing goes below the high mark")
	assert.Empty(t, log.String())

	fill(t, st, base+7*mb)
	before = queued()
	assert.Equal(t, queue.Done, keeper.Autodrop(ctx, nil))
	assert.LessOrEqual(t, used(t, st), base+4*mb+noise)
	assert.Greater(t, used(t, st), base+3*mb, "not much more than needed")
	oldest := server.Raw.ZRangeWithScores(ctx, "batches:index", 0, 0).Val()
	assert.Greater(t, oldest[0].Score, float64(10), "the oldest went")
	storetest.RequireSound(t, st)
	require.Equal(t, 1, strings.Count(log.String(), "\n"), "one line a run")
	dropped := before - queued()
	assert.Contains(t, log.String(), fmt.Sprintf("batches=%d events=%d subscribers.alice=", dropped, 100*dropped))
	assert.NotContains(t, log.String(), "--1", "names, not tokens")
	counters := flushed(t, st, recorder)
	for _, name := range []string{"events.autodropped", "events.removed"} {
		alice := counters[bus.NewCounter(name, bus.Tag{Name: "queue", Value: "alice"})]
		bob := counters[bus.NewCounter(name, bus.Tag{Name: "queue", Value: "bob"})]
		assert.Equal(t, 100*dropped, alice+bob)
		assert.InDelta(t, alice, bob, 2000, "from both, in turn, as each has as much")
	}
}

func TestAutodropEndsWhenNothingIsLeft(t *testing.T) {
	server := rdbtest.Real(t)
	st := storetest.Open(t, server)
	ctx := t.Context()
	var log bytes.Buffer
	keeper := maintenance.New(store.NewBus(st), st, storetest.NewQueue(st, 1), bus.MemoryLimits{Max: 1000, MinFree: 100}, nil, slog.New(slog.NewTextHandler(&log, nil)), frozen)
	fill(t, st, used(t, st)+100_000)
	assert.Equal(t, queue.Done, keeper.Autodrop(ctx, nil))
	assert.Empty(t, server.Raw.Keys(ctx, "batch*").Val())
	assert.Equal(t, queue.Done, keeper.Autodrop(ctx, nil))
	assert.Equal(t, 1, strings.Count(log.String(), "there is no batch to drop"), "logged once:\n%s", &log)
	storetest.RequireSound(t, st)
}

// TestAutodropTakesFromTheClientThatHasMost has one client's queue fill Redis after another's was
// filled a little, and both be older and younger: the few events of the other stay.
func TestAutodropTakesFromTheClientThatHasMost(t *testing.T) {
	server := rdbtest.Real(t)
	b := storetest.NewBus(t, server)
	ctx, st := t.Context(), b.Store
	var log bytes.Buffer
	b.AddSubscriber(storetest.Alice, time.Hour, 100, "widgets")
	b.AddSubscriber(storetest.Bob, time.Hour, 1, "gadgets")
	b.PublishEvents("gadgets", 1, 20, 0)
	const mb = 1_000_000
	base := used(t, st)
	limits := bus.MemoryLimits{Max: base + 4*mb, MinFree: mb}
	keeper := maintenance.New(store.NewBus(st), st, storetest.NewQueue(st, 1), limits, nil, slog.New(slog.NewTextHandler(&log, nil)), frozen)
	for n := 1; used(t, st) < base+4*mb; n += 1000 {
		b.PublishEvents("widgets", n, n+999, n)
	}
	b.PublishEvents("gadgets", 21, 40, 1_000_000)
	before := server.Raw.HGetAll(ctx, "batches:gauges:event").Val()
	assert.Equal(t, queue.Done, keeper.Autodrop(ctx, nil))
	after := server.Raw.HGetAll(ctx, "batches:gauges:event").Val()
	assert.Equal(t, "40", after[string(storetest.Bob)], "older and younger ones stay")
	assert.NotEqual(t, before[string(storetest.Alice)], after[string(storetest.Alice)])
	assert.LessOrEqual(t, used(t, st), base+2*mb+noise)
	assert.Contains(t, log.String(), "subscribers.alice=")
	assert.NotContains(t, log.String(), "subscribers.bob=")
	b.RequireSound()

	// If that is not enough, the other's batches are dropped, too.
	limits.Max = mb
	keeper = maintenance.New(store.NewBus(st), st, storetest.NewQueue(st, 1), limits, nil, slog.New(slog.NewTextHandler(&log, nil)), frozen)
	assert.Equal(t, queue.Done, keeper.Autodrop(ctx, nil))
	assert.Empty(t, server.Raw.Keys(ctx, "batch*").Val())
	assert.Contains(t, log.String(), "subscribers.bob=40")
}

// TestAutodropGoesOnWhereItWas has the batches of the client with most queued stand behind more of
// another's than one run has the time to pass: a later run gets there.
func TestAutodropGoesOnWhereItWas(t *testing.T) {
	server := rdbtest.Real(t)
	b := storetest.NewBus(t, server)
	st, clock := b.Store, time.UnixMilli(0)
	b.AddSubscriber(storetest.Bob, time.Hour, 1, "gadgets")
	b.AddSubscriber(storetest.Alice, time.Hour, 1000, "widgets")
	for n := 1; n <= 10_000; n += 1000 {
		b.PublishEvents("gadgets", n, n+999, 0)
	}
	const events = 200_000 // more bytes than the other's
	for n := 1; n <= events; n += 1000 {
		b.PublishEvents("widgets", n, n+999, n)
	}
	limits := bus.MemoryLimits{Max: used(t, st) - 500_000, MinFree: 1000}
	keeper := maintenance.New(store.NewBus(st), st, storetest.NewQueue(st, 1), limits, nil, slog.New(slog.DiscardHandler), func() time.Time {
		clock = clock.Add(150 * time.Millisecond) // so that a run looks at some 5,000 batches
		return clock
	})
	runs := 0
	for result := (queue.Result{RetryAt: clock}); !result.RetryAt.IsZero() && runs < 200; runs++ {
		result = keeper.Autodrop(t.Context(), nil)
	}
	assert.Less(t, runs, 200)
	left := server.Raw.HGetAll(t.Context(), "batches:gauges:event").Val()
	assert.Equal(t, "10000", left[string(storetest.Bob)])
	assert.NotEqual(t, fmt.Sprint(events), left[string(storetest.Alice)])
}

// TestAutodropDoesWithoutGauges makes the gauges empty, and of another type: then autodrop drops
// the oldest batches of all clients.
func TestAutodropDoesWithoutGauges(t *testing.T) {
	server := rdbtest.Real(t)
	st := storetest.Open(t, server)
	ctx := t.Context()
	keeper := maintenance.New(store.NewBus(st), st, storetest.NewQueue(st, 1), bus.MemoryLimits{Max: 1000, MinFree: 100}, nil, slog.New(slog.DiscardHandler), frozen)
	for _, damage := range []func(){
		func() { server.Raw.Del(ctx, "batches:gauges:batch", "batches:gauges:event", "batches:gauges:bytes") },
		func() { server.Raw.Set(ctx, "batches:gauges:batch", "x", 0) },
	} {
		fill(t, st, used(t, st)+100_000)
		damage()
		assert.Equal(t, queue.Done, keeper.Autodrop(ctx, nil))
		assert.Empty(t, server.Raw.Keys(ctx, "batch:*").Val())
	}
}

func TestAutodropGoesByRedisOwnLimit(t *testing.T) {
	server := rdbtest.Real(t)
	st := storetest.Open(t, server)
	ctx := t.Context()
	var log bytes.Buffer
	keeper := maintenance.New(store.NewBus(st), st, storetest.NewQueue(st, 1), bus.MemoryLimits{MinFree: 500_000}, nil, slog.New(slog.NewTextHandler(&log, nil)), frozen)
	base := used(t, st)
	fill(t, st, base+3_000_000)
	require.NoError(t, server.Raw.ConfigSet(ctx, "maxmemory", fmt.Sprint(base+3_000_000)).Err())
	assert.Equal(t, queue.Done, keeper.Autodrop(ctx, nil), "though Redis is full")
	assert.LessOrEqual(t, used(t, st), base+2_000_000+noise)
	assert.NotContains(t, log.String(), "maxmemory-policy")

	require.NoError(t, server.Raw.ConfigSet(ctx, "maxmemory-policy", "allkeys-lfu").Err())
	assert.Equal(t, queue.Done, keeper.Autodrop(ctx, nil))
	assert.Contains(t, log.String(), "set its maxmemory-policy to noeviction")
}

// TestAutodropGivesWay stops a run that takes too long, so that it neither keeps the worker from
// stopping nor other housekeeping from running, and has it go on at once.
func TestAutodropGivesWay(t *testing.T) {
	st := storetest.Open(t, rdbtest.Real(t))
	clock := time.UnixMilli(0)
	keeper := maintenance.New(store.NewBus(st), st, storetest.NewQueue(st, 1), bus.MemoryLimits{Max: 1000}, nil, slog.New(slog.DiscardHandler), func() time.Time {
		clock = clock.Add(time.Second)
		return clock
	})
	fill(t, st, used(t, st)+2_000_000)
	result := keeper.Autodrop(t.Context(), nil)
	assert.Equal(t, clock, result.RetryAt)
	rest, err := st.OldestBatches().Drop(t.Context(), clock, nil)
	require.NoError(t, err)
	assert.NotEmpty(t, rest, "it has not dropped all")
}

func TestAutodropIsDisabledWhereMemoryIsUnknown(t *testing.T) {
	st := storetest.Open(t, rdbtest.Embedded(t))
	var log bytes.Buffer
	keeper := maintenance.New(store.NewBus(st), st, storetest.NewQueue(st, 1), bus.MemoryLimits{Max: 1}, nil, slog.New(slog.NewTextHandler(&log, nil)), time.Now)
	for range 3 {
		assert.Equal(t, queue.Done, keeper.Autodrop(t.Context(), nil))
	}
	assert.Equal(t, 1, strings.Count(log.String(), "autodrop disabled"), log.String())
}

func TestAutodropIsTriedAgainWhenRedisIsUnavailable(t *testing.T) {
	server := rdbtest.Real(t)
	st := storetest.Open(t, server)
	server.Kill(t)
	keeper := maintenance.New(store.NewBus(st), st, storetest.NewQueue(st, 1), bus.MemoryLimits{}, nil, slog.New(slog.DiscardHandler), time.Now)
	assert.False(t, keeper.Autodrop(t.Context(), nil).RetryAt.IsZero())
}

// TestIdempotencyKeysGoBeforeAnyBatch publishes with a new key each time until keys have filled
// Redis again and again: its mark is held, and no event of a subscriber goes.
func TestIdempotencyKeysGoBeforeAnyBatch(t *testing.T) {
	const half = 500_000 // of a megabyte
	server := rdbtest.Real(t)
	st := storetest.Open(t, server, func(o *store.Options) { o.IdempotencyKeys = 1_000_000 }) // so that this limit does not help
	ctx := t.Context()
	var log bytes.Buffer
	fill(t, st, used(t, st)+half)
	queued := server.Raw.ZCard(ctx, "batches:index").Val()
	base := used(t, st)
	limits := bus.MemoryLimits{Max: base + 8*half, MinFree: 2 * half}
	_, high, _ := limits.Marks(0)
	recorder := newRecorder(st)
	keeper := maintenance.New(store.NewBus(st), st, storetest.NewQueue(st, 1), limits, recorder, slog.New(slog.NewTextHandler(&log, nil)), time.Now)

	event := wiretest.Pack(t, "unheard", `{"type":"update","url":"https://x.example/1","timestamp":1}`)
	keys, runs := 0, 0
	for n := 0; runs < rdbtest.Fewer(3); n++ {
		publications := make([]store.Publication, 500)
		for i := range publications {
			publications[i] = store.Publication{
				Topic: "unheard", Publisher: "publisher--1", Events: []wire.PackedEvent{event}, ReceivedAt: int64(n),
				IdempotencyKey: &bus.IdempotencyKey{Key: fmt.Sprintf("%d/%d", n, i), Digest: "d"},
			}
		}
		for _, receipt := range st.PublishAll(ctx, publications...) {
			require.NoError(t, receipt.Err)
			require.True(t, receipt.Stored)
			keys++
		}
		over := used(t, st) > high
		for result := keeper.Autodrop(ctx, nil); !result.RetryAt.IsZero(); {
			result = keeper.Autodrop(ctx, nil)
		}
		if over {
			runs++
		}
		require.LessOrEqual(t, used(t, st), high)
	}
	assert.Equal(t, queued, server.Raw.ZCard(ctx, "batches:index").Val(), "every batch is still there")
	assert.NotContains(t, log.String(), "batches=")
	assert.Equal(t, runs, strings.Count(log.String(), "dropped idempotency keys"))
	left := 0
	for _, key := range server.Raw.Keys(ctx, "idempotency:*").Val() {
		left += int(server.Raw.HLen(ctx, key).Val()) - 1
	}
	dropped := flushed(t, st, recorder)[bus.NewCounter("idempotency_keys.dropped", bus.Tag{Name: "reason", Value: "memory"})]
	assert.Equal(t, keys, left+int(dropped), "all that have gone are counted")
	t.Logf("%d keys, of which %d went", keys, dropped)
	storetest.RequireSound(t, st)

	// Once no key is left, autodrop drops batches, as before.
	fill(t, st, high+half)
	for result := keeper.Autodrop(ctx, nil); !result.RetryAt.IsZero(); {
		result = keeper.Autodrop(ctx, nil)
	}
	assert.Empty(t, server.Raw.Keys(ctx, "idempotency:*").Val())
	assert.Contains(t, log.String(), "dropped the oldest batches")
}

// TestDeadLettersGoBeforeAnyBatch fills Redis with batches and dead letters: these go first.
func TestDeadLettersGoBeforeAnyBatch(t *testing.T) {
	const mb = 1_000_000
	server := rdbtest.Real(t)
	b := storetest.NewBus(t, server)
	ctx, st := t.Context(), b.Store
	var log bytes.Buffer
	fill(t, st, used(t, st)+2*mb)
	queued := server.Raw.ZCard(ctx, "batches:index").Val()
	base, events := used(t, st), make([]int, 500)
	for i := 0; used(t, st) < base+4*mb; i++ {
		b.Bury(storetest.DeadLetter{Number: i, Token: "alice--1", Reason: bus.DiedOfAge, DiedAt: i, Events: events})
	}
	recorder := newRecorder(st)
	limits := bus.MemoryLimits{Max: base + 4*mb, MinFree: mb} // the marks are at 3 and 2 MB of letters
	now := func() time.Time { return storetest.Start }
	keeper := maintenance.New(store.NewBus(st), st, storetest.NewQueue(st, 1), limits, recorder, slog.New(slog.NewTextHandler(&log, nil)), now)
	b.SetOption("alice--1", "dead_letters", `{"keep_events":1000000,"keep_bytes":1000000000}`)
	assert.Equal(t, queue.Done, keeper.Autodrop(ctx, nil))
	assert.LessOrEqual(t, used(t, st), base+2*mb+noise)
	assert.Equal(t, queued, server.Raw.ZCard(ctx, "batches:index").Val(), "every batch is still there")
	left := server.Raw.ZRangeWithScores(ctx, "deadletters:index:alice--1", 0, -1).Val()
	require.NotEmpty(t, left)
	assert.Greater(t, left[0].Score, float64(storetest.Start.UnixMilli()), "the oldest went")
	assert.Contains(t, log.String(), "dropped the oldest dead letters")
	assert.NotContains(t, log.String(), "batches=")
	storetest.RequireSound(t, st)

	// Once no letter is left, batches go.
	limits.Max = base
	keeper = maintenance.New(store.NewBus(st), st, storetest.NewQueue(st, 1), limits, recorder, slog.New(slog.NewTextHandler(&log, nil)), now)
	assert.Equal(t, queue.Done, keeper.Autodrop(ctx, nil))
	assert.Empty(t, server.Raw.Keys(ctx, "deadletter*").Val())
	assert.Contains(t, log.String(), "dropped the oldest batches")
	storetest.RequireSound(t, st)
}

// TestNewIdempotencyKeysDoNotSaveBatches adds a key whenever autodrop has dropped the existing
// ones, as under load.
func TestNewIdempotencyKeysDoNotSaveBatches(t *testing.T) {
	server := rdbtest.Real(t)
	st := storetest.Open(t, server)
	const mb = 1_000_000
	base := used(t, st)
	fill(t, st, base+3*mb)
	before := server.Raw.ZCard(t.Context(), "batches:index").Val()
	event := wiretest.Pack(t, "unheard", `{"type":"update","url":"https://x.example/1","timestamp":1}`)
	clock := time.UnixMilli(0)
	publishing := func() time.Time { // autodrop looks at the clock before each step
		clock = clock.Add(time.Millisecond)
		require.NoError(t, storetest.Publish(t.Context(), st, store.Publication{
			Topic: "unheard", Publisher: "publisher--1", Events: []wire.PackedEvent{event}, ReceivedAt: clock.UnixMilli(),
			IdempotencyKey: &bus.IdempotencyKey{Key: clock.String(), Digest: "d"},
		}))
		return clock
	}
	limits := bus.MemoryLimits{Max: base + 2*mb, MinFree: mb / 2}
	keeper := maintenance.New(store.NewBus(st), st, storetest.NewQueue(st, 1), limits, nil, slog.New(slog.DiscardHandler), publishing)
	keeper.Autodrop(t.Context(), nil)
	assert.Less(t, server.Raw.ZCard(t.Context(), "batches:index").Val(), before)
	storetest.RequireSound(t, st)
}
