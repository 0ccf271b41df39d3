package store_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/rdb"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store"
	"routemaster/internal/store/storetest"
	"routemaster/internal/wire"
	"routemaster/internal/wire/wiretest"
)

// TestAPublishThatFailsWritesNothing gives each key that a publish writes for all subscribers
// another type, for a publish that would open a batch, and for one that would fill one.
func TestAPublishThatFailsWritesNothing(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		for _, key := range []string{"batches:index", "jobs:index:main", "jobs:scheduled:main", "jobs:instant:main", "topics"} {
			for _, batch := range []string{"opened", "filled"} {
				require.NoError(t, server.Raw.FlushAll(t.Context()).Err())
				f := newFixture(t, server)
				ctx := t.Context()
				f.AddSubscriber(storetest.Alice, 0, 1, "widgets")
				f.AddSubscriber(storetest.Bob, time.Hour, 3, "widgets")
				if batch == "filled" {
					f.PublishEvents("widgets", 1, 1, 0)
					f.PublishEvents("widgets", 2, 2, 0)
					require.NoError(t, f.Unsubscribe(ctx, storetest.Alice, "widgets"))
				}
				claims := key == "topics"
				if claims && batch == "filled" {
					continue // the topic is claimed already
				}
				require.NoError(t, f.Redis.Del(ctx, key).Err())
				require.NoError(t, f.Redis.Set(ctx, key, "x", 0).Err())
				before := rdbtest.Dump(t, f.Redis)
				p := f.keyed(storetest.Publisher, "k", "d", time.Hour, 0)
				err := f.Publish(ctx, p)
				require.Error(t, err, "%s, a batch is %s", key, batch)
				assert.ErrorContains(t, err, key)
				assert.NotErrorIs(t, err, bus.ErrUnavailable)
				require.Equal(t, before, rdbtest.Dump(t, f.Redis), "%s, a batch is %s", key, batch)

				require.NoError(t, f.Redis.Del(ctx, key).Err())
				require.True(t, f.store(p), "the key is not used up")
			}
		}
	})
}

// TestAPublishOpensSoManyBatchesAtMost counts the batches that a publish would open: 50,000 are
// stored, one more is refused, and changes nothing, even the topic's publisher.
func TestAPublishOpensSoManyBatchesAtMost(t *testing.T) {
	server := rdbtest.Real(t)
	f := newFixture(t, server)
	ctx := t.Context()
	event := storetest.Packed(t, "widgets", 1)
	publish := func(events int) error {
		p := store.Publication{Topic: "widgets", Publisher: storetest.Publisher, ReceivedAt: storetest.Start.UnixMilli()}
		for range events {
			p.Events = append(p.Events, event)
		}
		return f.Publish(ctx, p)
	}
	for n := range 51 {
		token := bus.Token(fmt.Sprintf("s--%d", n))
		require.NoError(t, f.PutToken(ctx, token, "s"))
		f.AddSubscriber(token, time.Hour, 1, "widgets")
	}
	before := rdbtest.Dump(t, f.Redis)
	require.ErrorIs(t, publish(1000), bus.ErrTooManyBatches, "51,000")
	assert.Equal(t, before, rdbtest.Dump(t, f.Redis))

	require.NoError(t, f.DeleteSubscriber(ctx, "s--50"))
	require.NoError(t, publish(1000), "50,000")
	require.Equal(t, int64(50_000), f.Redis.ZCard(ctx, "batches:index").Val())

	f.AddSubscriber("s--50", time.Hour, 2, "widgets")
	require.ErrorIs(t, publish(1000), bus.ErrTooManyBatches, "50,500")
	require.NoError(t, f.Redis.FlushAll(ctx).Err())
	f.Register()
	for n := range 51 {
		token := bus.Token(fmt.Sprintf("s--%d", n))
		require.NoError(t, f.PutToken(ctx, token, "s"))
		f.AddSubscriber(token, time.Hour, 1000, "widgets")
	}
	require.NoError(t, publish(1000), "51")
	f.RequireSound()
}

// TestWhatFitsIntoOpenBatchesOpensNone publishes where most events have room.
func TestWhatFitsIntoOpenBatchesOpensNone(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		f.AddSubscriber(storetest.Alice, time.Hour, 5, "widgets")
		next := 1
		for _, events := range []int{3, 1, 1, 6, 4, 5, 11, 2} { // from one state of the open batch to any other
			f.PublishEvents("widgets", next, next+events-1, 0)
			next += events
			assert.Equal(t, int64((next-1+4)/5), f.Redis.ZCard(t.Context(), "batches:index").Val())
			f.RequireSound()
		}
	})
}

func TestPublishWritesTheDocumentedLayout(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		f.AddSubscriber(storetest.Alice, 500*time.Millisecond, 100, "widgets")
		f.PublishEvents("widgets", 1, 2, 0)

		ctx := t.Context()
		bids := f.Redis.SMembers(ctx, "batches:current:"+string(storetest.Alice)).Val()
		require.Len(t, bids, 1)
		bid := bids[0]
		assert.Regexp(t, `^[A-Za-z0-9_-]{20}$`, bid)
		job := "\x92\xa5batch\x91\xb4" + bid
		event := func(i int) string {
			return "\x92\xa1e\x85\xa1t\x01\xa1o\xa7widgets\xa1y\xa6update\xa1u\xb3https://x.example/" + strconv.Itoa(i) + "\xa1d\xc0"
		}
		assert.Equal(t, map[string]string{
			"api_tokens:by_token": fmt.Sprintf("hash %q", map[string]string{"alice--1": "alice", "bob--2": "bob", "publisher--1": "publisher"}),
			"topics":              `set ["widgets"]`,
			"topic:widgets":       fmt.Sprintf("hash %q", map[string]string{"publisher": string(storetest.Publisher), "counter": "2", "last_event": event(2)}),
			"topic_owners":        fmt.Sprintf("hash %q", map[string]string{"widgets": "publisher"}),
			"topic_owners:counts": fmt.Sprintf("hash %q", map[string]string{"publisher": "1"}),
			"subscribers":         `set ["alice--1"]`,
			"subscribers:widgets": `set ["alice--1"]`,
			"topics:alice--1":     `set ["widgets"]`,
			"subscriber:alice--1": fmt.Sprintf("hash %q", map[string]string{
				"callback": "https://alice--1.example/events", "uuid": "uuid-of-alice--1",
				"timeout": "500", "max_events": "100", "health_points": "100",
			}),
			"delivery:alice--1":        `hash map["name":"alice"]`,
			"batch:" + bid:             fmt.Sprintf("list %q", []string{"alice--1", "1700000000000", "0", event(1), event(2)}),
			"batches:current:alice--1": fmt.Sprintf("set [%q]", bid),
			"batches:index":            fmt.Sprintf("zset %q", map[string]string{bid: "1700000000000"}),
			"batches:gauges:event":     `hash map["alice--1":"2"]`,
			"batches:gauges:bytes":     fmt.Sprintf("hash %q", map[string]string{"alice--1": strconv.Itoa(len(event(1)) + len(event(2)))}),
			"batches:gauges:batch":     `hash map["alice--1":"1"]`,
			"jobs:index:main":          fmt.Sprintf("set [%q]", job),
			"jobs:scheduled:main":      fmt.Sprintf("zset %q", map[string]string{job: "1700000000500"}),
		}, rdbtest.Dump(t, f.Redis))
		f.RequireSound()
	})
}

func TestPublishUnderANamespace(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixtureOn(t, server, server.Open(t).Partition("rm:"))
		f.AddSubscriber(storetest.Alice, 0, 100, "widgets")
		f.PublishEvents("widgets", 1, 1, 0)
		task := f.Take("w1", 1)
		assert.Equal(t, []int{1}, storetest.Numbers(t, task))
		f.RequireSound()
		for _, key := range keysOf(rdbtest.Dump(t, f.Redis)) {
			assert.True(t, strings.HasPrefix(key, "rm:"), key)
		}
	})
}

func TestPublishFillsAndOpensBatches(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		f.AddSubscriber(storetest.Alice, time.Second, 3, "widgets")
		f.AddSubscriber(storetest.Bob, time.Second, 10, "widgets")
		f.PublishEvents("widgets", 1, 2, 0)
		assert.Nil(t, f.Take("w1", 0), "nothing is due")
		f.PublishEvents("widgets", 3, 8, 1)
		f.RequireSound()

		// Alice's two full batches are there at once, in order; the third, and Bob's one, are not
		// due.
		for _, want := range [][]int{{1, 2, 3}, {4, 5, 6}} {
			task := f.Take("w1", 1)
			assert.Equal(t, storetest.Alice, task.Delivery.Subscriber)
			assert.Equal(t, want, storetest.Numbers(t, task))
			f.Complete(task, storetest.Done)
		}
		assert.Nil(t, f.Take("w1", 1))

		assert.Zero(t, f.MakeInstant(999))
		assert.Equal(t, 1, f.MakeInstant(1000), "Bob's batch is due a second after its first event")
		assert.Equal(t, 1, f.MakeInstant(1001), "and Alice's third")
		assert.Equal(t, []int{1, 2, 3, 4, 5, 6, 7, 8}, storetest.Numbers(t, f.Take("w1", 1001)))
		assert.Equal(t, []int{7, 8}, storetest.Numbers(t, f.Take("w2", 1001)))
		f.RequireSound()
	})
}

func TestPublishManyAtOnce(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		f.AddSubscriber(storetest.Alice, 0, 2600, "widgets")
		f.PublishEvents("widgets", 1, 6000, 0)
		f.RequireSound()
		next := 1
		for _, size := range []int{2600, 2600, 800} {
			task := f.Take("w1", 0)
			got := storetest.Numbers(t, task)
			require.Len(t, got, size)
			for _, n := range got {
				require.Equal(t, next, n)
				next++
			}
			f.Complete(task, storetest.Done)
		}
		assert.Nil(t, f.Take("w1", 0))
	})
}

func TestPublishHonoursALoweredMaximum(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		f.AddSubscriber(storetest.Alice, time.Second, 100, "widgets")
		f.PublishEvents("widgets", 1, 5, 0)
		f.AddSubscriber(storetest.Alice, time.Second, 2, "widgets")
		f.PublishEvents("widgets", 6, 6, 0)
		f.RequireSound()
		assert.Equal(t, []int{1, 2, 3, 4, 5}, storetest.Numbers(t, f.Take("w1", 0)), "what was too full is due, and took no more")
		assert.Nil(t, f.Take("w2", 0))
	})
}

func TestAFailedPublishDoesNotUseItsKeyUp(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		ctx := t.Context()
		f.AddSubscriber(storetest.Alice, 0, 1, "widgets")
		f.Redis.Set(ctx, "jobs:instant:main", "broken", 0)
		p := store.Publication{
			Topic: "widgets", Publisher: storetest.Publisher, Events: []wire.PackedEvent{storetest.Packed(t, "widgets", 1)}, ReceivedAt: storetest.Start.UnixMilli(),
			IdempotencyKey: &bus.IdempotencyKey{Key: "k", Digest: "d"},
		}
		require.Error(t, f.Publish(ctx, p))
		f.Redis.Del(ctx, "jobs:instant:main")
		require.NoError(t, f.Publish(ctx, p))
		assert.Equal(t, []int{1}, storetest.Numbers(t, f.Take("w1", 0)))
	})
}

func TestAShorterTimeoutHoldsForTheOpenBatch(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		f.AddSubscriber(storetest.Alice, time.Hour, 100, "widgets")
		f.PublishEvents("widgets", 1, 1, 0)
		f.AddSubscriber(storetest.Alice, 2*time.Hour, 100, "widgets")
		assert.Zero(t, f.MakeInstant(3_599_999))
		f.AddSubscriber(storetest.Alice, 20*time.Millisecond, 100, "widgets")
		assert.Zero(t, f.MakeInstant(19))
		assert.Equal(t, 1, f.MakeInstant(20))
		f.RequireSound()
	})
}

// TestForeignSettingsDoNotStopAPublish overwrites a worker's record of a subscriber with foreign
// values.
func TestForeignSettingsDoNotStopAPublish(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		f.AddSubscriber(storetest.Alice, 0, 100, "widgets")
		for _, max := range []string{"0", "-1", "many", ""} {
			f.Redis.HSet(t.Context(), "jobs:max_in_flight", "batch", max)
			f.PublishEvents("widgets", 1, 1, 0)
			f.RequireSound()
			task := f.Take("w1", 0)
			assert.Equal(t, []int{1}, storetest.Numbers(t, task))
			f.Complete(task, storetest.Done)
			f.RequireSound()
		}
	})
}

func TestAPublishIsOneRoundTrip(t *testing.T) {
	server := rdbtest.Real(t)
	f := newFixture(t, server)
	for i := range 50 {
		token := bus.Token(fmt.Sprintf("s%d", i))
		require.NoError(t, f.PutToken(t.Context(), token, "s"))
		f.AddSubscriber(token, time.Second, 2, "widgets")
	}
	f.PublishEvents("widgets", 1, 1, 0)
	ctx := t.Context()
	before := commandsFromClients(t, f.Redis)
	f.PublishEvents("widgets", 2, 5, 0)
	assert.Equal(t, 1, commandsFromClients(t, f.Redis)-before)
	var task *storetest.Task
	assert.Equal(t, 50*2, f.deliverAll(), "each subscriber has two full batches")
	before = commandsFromClients(t, f.Redis)
	f.PublishEvents("widgets", 6, 6, 0)
	task = f.Take("w1", 0)
	_, _, err := f.CompleteAndAcquire(ctx, task, storetest.Done, bus.Failing, storetest.Start)
	require.NoError(t, err)
	assert.Equal(t, 4, commandsFromClients(t, f.Redis)-before, "a publish, an acquire, and one trip of two scripts")
	f.RequireSound()
}

// commandsFromClients counts the scripts that Redis was asked to run.
func commandsFromClients(t testing.TB, raw rdb.Commands) int {
	t.Helper()
	stats, err := raw.InfoMap(t.Context(), "commandstats").Result()
	require.NoError(t, err)
	calls, _, _ := strings.Cut(strings.TrimPrefix(stats["Commandstats"]["cmdstat_evalsha"], "calls="), ",")
	n, err := strconv.Atoi(calls)
	require.NoError(t, err)
	return n
}

func TestPublishReportsTheReceivers(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		event := wiretest.Pack(t, "widgets", `{"type":"noop","url":"https://x.example/"}`)
		p := store.Publication{
			Topic: "widgets", Publisher: storetest.Publisher, Events: []wire.PackedEvent{event}, ReceivedAt: 1, IdempotencyKey: &bus.IdempotencyKey{Key: "k", Digest: "d"},
		}
		q := p
		q.IdempotencyKey = nil
		receipts := f.PublishAll(t.Context(), q)
		assert.Equal(t, []store.Receipt{{Stored: true}}, receipts, "nobody")
		assert.Zero(t, receipts[0].Receivers.Len())
		f.AddSubscriber(storetest.Alice, 0, 1, "widgets")
		f.AddSubscriber(storetest.Bob, 0, 1, "widgets")
		receipts = f.PublishAll(t.Context(), p, p)
		assert.Equal(t, 2, receipts[0].Receivers.Len())
		var tokens []string
		for token := range receipts[0].Receivers.All() {
			tokens = append(tokens, token)
		}
		assert.ElementsMatch(t, []string{string(storetest.Alice), string(storetest.Bob)}, tokens)
		assert.Equal(t, store.Receipt{}, receipts[1], "the second was stored before")
	})
}
