package store_test

import (
	"context"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/rdb"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store"
	"routemaster/internal/store/storetest"
	"routemaster/internal/wire"
)

func keysOf(all map[string]string) []string { return slices.Sorted(maps.Keys(all)) }

func TestPublishWritesTheDocumentedLayout(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		f.AddSubscriber(alice, 500*time.Millisecond, 100, "widgets")
		f.PublishEvents("widgets", 1, 2, 0)

		ctx := t.Context()
		bids := f.Redis.SMembers(ctx, "batches:current:"+string(alice)).Val()
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
			"topic:widgets":       fmt.Sprintf("hash %q", map[string]string{"publisher": string(publisher), "counter": "2", "last_event": event(2)}),
			"topic_owners":        fmt.Sprintf("hash %q", map[string]string{"widgets": "publisher"}),
			"topic_owners:counts": fmt.Sprintf("hash %q", map[string]string{"publisher": "1"}),
			"subscribers":         `set ["alice--1"]`,
			"subscribers:widgets": `set ["alice--1"]`,
			"topics:alice--1":     `set ["widgets"]`,
			"subscriber:alice--1": fmt.Sprintf("hash %q", map[string]string{
				"callback": "https://alice--1.example/events", "uuid": "uuid-of-alice--1",
				"timeout": "500", "max_events": "100", "health_points": "100",
			}),
			"batch:" + bid:             fmt.Sprintf("list %q", []string{"alice--1", "1700000000000", "0", event(1), event(2)}),
			"batches:current:alice--1": fmt.Sprintf("set [%q]", bid),
			"batches:index":            fmt.Sprintf("zset %q", map[string]string{bid: "1700000000000"}),
			"batches:gauges:event":     `hash map["alice--1":"2"]`,
			"batches:gauges:batch":     `hash map["alice--1":"1"]`,
			"jobs:index:main":          fmt.Sprintf("set [%q]", job),
			"jobs:scheduled:main":      fmt.Sprintf("zset %q", map[string]string{job: "1700000000500"}),
		}, dump(t, f.Redis))
		f.RequireSound()
	})
}

func TestPublishUnderANamespace(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixtureOn(t, server, server.Open(t).Partition("rm:"))
		f.AddSubscriber(alice, 0, 100, "widgets")
		f.PublishEvents("widgets", 1, 1, 0)
		task := f.Take("w1", 1)
		assert.Equal(t, []int{1}, numbers(t, task))
		f.RequireSound()
		for _, key := range keysOf(dump(t, f.Redis)) {
			assert.True(t, strings.HasPrefix(key, "rm:"), key)
		}
	})
}

func TestPublishFillsAndOpensBatches(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		f.AddSubscriber(alice, time.Second, 3, "widgets")
		f.AddSubscriber(bob, time.Second, 10, "widgets")
		f.PublishEvents("widgets", 1, 2, 0)
		assert.Nil(t, f.Take("w1", 0), "nothing is due")
		f.PublishEvents("widgets", 3, 8, 1)
		f.RequireSound()

		// Alice's two full batches are there at once, in order; the third, and Bob's one, are not due.
		for _, want := range [][]int{{1, 2, 3}, {4, 5, 6}} {
			task := f.Take("w1", 1)
			assert.Equal(t, alice, task.Delivery.Subscriber)
			assert.Equal(t, want, numbers(t, task))
			f.Complete(task, store.Done)
		}
		assert.Nil(t, f.Take("w1", 1))

		assert.Zero(t, f.MakeInstant(999))
		assert.Equal(t, 1, f.MakeInstant(1000), "Bob's batch is due a second after its first event")
		assert.Equal(t, 1, f.MakeInstant(1001), "and Alice's third")
		assert.Equal(t, []int{1, 2, 3, 4, 5, 6, 7, 8}, numbers(t, f.Take("w1", 1001)))
		assert.Equal(t, []int{7, 8}, numbers(t, f.Take("w2", 1001)))
		f.RequireSound()
	})
}

func TestPublishManyAtOnce(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		f.AddSubscriber(alice, 0, 2600, "widgets")
		f.PublishEvents("widgets", 1, 6000, 0)
		f.RequireSound()
		next := 1
		for _, size := range []int{2600, 2600, 800} {
			task := f.Take("w1", 0)
			got := numbers(t, task)
			require.Len(t, got, size)
			for _, n := range got {
				require.Equal(t, next, n)
				next++
			}
			f.Complete(task, store.Done)
		}
		assert.Nil(t, f.Take("w1", 0))
	})
}

func TestPublishHonoursALoweredMaximum(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		f.AddSubscriber(alice, time.Second, 100, "widgets")
		f.PublishEvents("widgets", 1, 5, 0)
		f.AddSubscriber(alice, time.Second, 2, "widgets")
		f.PublishEvents("widgets", 6, 6, 0)
		f.RequireSound()
		assert.Equal(t, []int{1, 2, 3, 4, 5}, numbers(t, f.Take("w1", 0)), "what was too full is due, and took no more")
		assert.Nil(t, f.Take("w2", 0))
	})
}

func TestATopicBelongsToItsFirstPublisher(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		f.AddSubscriber(alice, 0, 1, "widgets")
		f.PublishEvents("widgets", 1, 1, 0)
		before := dump(t, f.Redis)
		err := f.Publish(t.Context(), store.Publication{
			Topic: "widgets", Publisher: bob, Events: []wire.PackedEvent{packed(t, "widgets", 2)}, ReceivedAt: 1,
		})
		require.ErrorIs(t, err, bus.ErrTopicClaimed)
		assert.Equal(t, before, dump(t, f.Redis), "a refused publish changes nothing")

		topics, _, err := f.Topics(t.Context())
		require.NoError(t, err)
		assert.Equal(t, []bus.Topic{{Name: "widgets", Publisher: publisher, Owner: "publisher", Events: 1}}, topics)
	})
}

func TestADeliveryLeavesNothingBehind(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		f.AddSubscriber(alice, 500*time.Millisecond, 100, "widgets")
		f.PublishEvents("widgets", 1, 3, 0)
		f.MakeInstant(500)
		task := f.Take("w1", 501)
		f.RequireSound()
		assert.Equal(t, bus.Job{Name: bus.JobBatch, Args: []string{string(task.Delivery.Batch)}}, task.Job)
		assert.Equal(t, bus.ClientName("alice"), task.Delivery.Client)
		assert.Equal(t, "https://alice--1.example/events", task.Delivery.Callback)
		assert.Equal(t, "uuid-of-alice--1", task.Delivery.UUID)
		assert.Equal(t, 100, task.Delivery.Health)
		assert.Equal(t, 1, task.Delivery.Attempts)
		assert.Equal(t, start, task.Delivery.CreatedAt)
		assert.Contains(t, dump(t, f.Redis), "jobs:pending:main:w1")

		assert.True(t, f.Complete(task, store.Outcome{Health: 1, Delivered: 3}))
		f.RequireSound()
		assert.Equal(t, []string{
			"api_tokens:by_token", "jobs:pending:index:main", "subscriber:alice--1", "subscribers", "subscribers:widgets",
			"topic:widgets", "topic_owners", "topic_owners:counts", "topics", "topics:alice--1", "workers",
		}, keysOf(dump(t, f.Redis)))
		subscribers, _, err := f.Subscribers(t.Context())
		require.NoError(t, err)
		assert.Equal(t, []bus.Subscriber{{
			Token: alice, Callback: "https://alice--1.example/events", UUID: "uuid-of-alice--1",
			Timeout: 500 * time.Millisecond, MaxEvents: 100, Health: 100,
			LastAttemptedAt: after(501), Topics: []bus.TopicName{"widgets"}, Sent: 3,
		}}, subscribers)
	})
}

func TestABatchWrittenByHandIsDelivered(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		ctx := t.Context()
		const bid = "AAAABBBBCCCCDDDD-_-_"
		const job = "\x92\xa5batch\x91\xb4" + bid
		f.Redis.SAdd(ctx, "subscribers", "alice--1")
		f.Redis.HSet(ctx, "subscriber:alice--1", "callback", "https://a.example/", "uuid", "u")
		f.Redis.RPush(ctx, "batch:"+bid, "alice--1", "1700000000000", "0", string(packed(t, "widgets", 7)))
		f.Redis.ZAdd(ctx, "batches:index", redis.Z{Score: 1700000000000, Member: bid})
		f.Redis.LPush(ctx, "jobs:instant:main", job)

		task := f.Take("w1", 0)
		assert.Equal(t, []int{7}, numbers(t, task))
		assert.True(t, f.Complete(task, store.Done))
		assert.Equal(t, []string{"api_tokens:by_token", "jobs:pending:index:main", "subscriber:alice--1", "subscribers", "workers"}, keysOf(dump(t, f.Redis)))
	})
}

func TestAFailedDeliveryIsPutOff(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		f.AddSubscriber(alice, 0, 100, "widgets")
		f.PublishEvents("widgets", 1, 1, 0)
		for i, health := range []int{100, 40, 0} {
			attempt := i + 1
			task := f.Take("w1", attempt*1000)
			assert.Equal(t, attempt, task.Delivery.Attempts)
			assert.Equal(t, health, task.Delivery.Health)
			assert.True(t, f.Complete(task, store.Outcome{Health: -60, RetryAt: after(attempt*1000 + 200)}))
			f.RequireSound()
			assert.Nil(t, f.Take("w1", attempt*1000))
			assert.Zero(t, f.MakeInstant(attempt*1000+199))
			assert.Equal(t, 1, f.MakeInstant(attempt*1000+200))
		}
		subscribers, _, err := f.Subscribers(t.Context())
		require.NoError(t, err)
		assert.Zero(t, subscribers[0].Health, "health stays within its bounds")
		assert.Equal(t, int64(1), subscribers[0].Queued)
	})
}

func TestBatchesTakeTurns(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		f.AddSubscriber(alice, 0, 2, "widgets")
		f.AddSubscriber(bob, 0, 2, "gadgets")
		f.PublishEvents("widgets", 1, 6, 0)
		f.PublishEvents("gadgets", 1, 2, 0)

		first := f.Take("w1", 0)
		assert.Equal(t, []int{1, 2}, numbers(t, first))
		other := f.Take("w2", 0)
		assert.Equal(t, bob, other.Delivery.Subscriber, "Alice's others wait for their turn, and hold nobody up")
		assert.Nil(t, f.Take("w3", 0))
		f.RequireSound()

		f.Complete(first, store.Done)
		second := f.Take("w3", 0)
		assert.Equal(t, []int{3, 4}, numbers(t, second))
		f.Complete(second, store.Outcome{RetryAt: after(5000)})
		third := f.Take("w3", 0)
		assert.Equal(t, []int{5, 6}, numbers(t, third), "a batch that failed does not hold up the next")
		f.Complete(third, store.Done)
		f.Complete(other, store.Done)
		f.RequireSound()
		f.MakeInstant(5000)
		f.Complete(f.Take("w3", 5000), store.Done)
		assert.Empty(t, f.Redis.Keys(t.Context(), "batch*").Val())
	})
}

func TestABatchThatWaitsGoesOnFilling(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		f.AddSubscriber(alice, 0, 3, "widgets")
		f.PublishEvents("widgets", 1, 1, 0)
		first := f.Take("w1", 0)
		f.PublishEvents("widgets", 2, 2, 1)
		assert.Nil(t, f.Take("w2", 1))
		f.PublishEvents("widgets", 3, 3, 2)
		f.PublishEvents("widgets", 4, 5, 3) // fills it, and opens another
		assert.Nil(t, f.Take("w2", 3))
		f.RequireSound()
		f.Complete(first, store.Done)
		second := f.Take("w2", 4)
		assert.Equal(t, []int{2, 3, 4}, numbers(t, second))
		f.Complete(second, store.Done)
		assert.Equal(t, []int{5}, numbers(t, f.Take("w2", 4)))
	})
}

func TestTwoAbreast(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server, func(o *store.Options) { o.Abreast = 2 })
		f.AddSubscriber(alice, 0, 1, "widgets")
		f.PublishEvents("widgets", 1, 4, 0)
		one, two := f.Take("w1", 0), f.Take("w2", 0)
		assert.Equal(t, []int{1}, numbers(t, one))
		assert.Equal(t, []int{2}, numbers(t, two))
		assert.Nil(t, f.Take("w3", 0))
		f.Complete(two, store.Done)
		assert.Equal(t, []int{3}, numbers(t, f.Take("w2", 0)))
		f.Complete(one, store.Done)
		last := f.Take("w1", 0)
		assert.Equal(t, []int{4}, numbers(t, last))
		f.PublishEvents("widgets", 5, 7, 1)
		f.Complete(last, store.Done)
		assert.Equal(t, []int{5}, numbers(t, f.Take("w1", 1)))
		f.RequireSound()
	})
}

func TestAPublishSendsBatchesStraightToTheLine(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		ctx := t.Context()
		instant := func() int64 { return f.Redis.LLen(ctx, "jobs:instant:main").Val() }
		f.AddSubscriber(alice, 0, 2, "widgets")
		f.PublishEvents("widgets", 1, 1, 0)
		assert.Equal(t, int64(1), instant(), "nobody serves her yet")
		first := f.Take("w1", 0)

		f.PublishEvents("widgets", 2, 4, 1) // fills one, and opens another
		f.PublishEvents("widgets", 5, 5, 2) // fills that
		f.PublishEvents("widgets", 6, 6, 3)
		assert.Zero(t, instant(), "no worker is bothered while she is served")
		f.RequireSound()
		for want := range slices.Values([][]int{{2, 3}, {4, 5}}) {
			f.Complete(first, store.Done)
			assert.Equal(t, int64(1), instant(), "it was called")
			first = f.Take("w1", 4)
			assert.Equal(t, want, numbers(t, first))
		}

		f.Complete(first, store.Outcome{RetryAt: after(1000)})
		last := f.Take("w1", 5)
		assert.Equal(t, []int{6}, numbers(t, last))
		f.PublishEvents("widgets", 7, 7, 6)
		assert.Equal(t, int64(1), instant(), "one that failed is not in the line, and could be passed")
		assert.Nil(t, f.Take("w2", 6))
		f.RequireSound()
		f.Complete(last, store.Done)
		assert.Equal(t, []int{7}, numbers(t, f.Take("w1", 7)))
	})
}

func TestAPublishPassesNoBatchThatIsNotInTheLineYet(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		f.AddSubscriber(alice, 0, 1, "widgets")
		f.PublishEvents("widgets", 1, 2, 0)
		first := f.Take("w1", 0) // the second is instant, and has not been looked at
		f.PublishEvents("widgets", 3, 3, 1)
		assert.Equal(t, int64(2), f.Redis.LLen(t.Context(), "jobs:instant:main").Val())
		assert.Nil(t, f.Take("w2", 1))
		f.RequireSound()
		for want := 2; want <= 3; want++ {
			f.Complete(first, store.Done)
			first = f.Take("w1", 2)
			assert.Equal(t, []int{want}, numbers(t, first))
		}
	})
}

// TestWorkersWithDifferentSettings changes how many batches are delivered at once while workers run.
func TestWorkersWithDifferentSettings(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		one := newFixture(t, server, func(o *store.Options) { o.Abreast = 1 })
		two := newFixture(t, server, func(o *store.Options) { o.Abreast = 2 })
		one.AddSubscriber(alice, 0, 1, "widgets")
		one.PublishEvents("widgets", 1, 4, 0)
		first := one.Take("w1", 0)
		assert.Nil(t, one.Take("w2", 0), "the others join the line")
		one.Complete(first, store.Done)
		second := two.Take("w2", 0)
		assert.Equal(t, []int{2}, numbers(t, second))
		two.Complete(second, store.Done)
		third, fourth := two.Take("w2", 0), two.Take("w3", 0)
		assert.Equal(t, []int{3, 4}, append(numbers(t, third), numbers(t, fourth)...), "raised, so two are called")
		two.Complete(third, store.Done)

		two.PublishEvents("widgets", 5, 5, 0)
		assert.Nil(t, one.Take("w1", 0))
		two.Complete(fourth, store.Done)
		assert.Equal(t, []int{5}, numbers(t, one.Take("w1", 0)), "lowered: who was put off by one setting is called by the other")
		one.RequireSound()
	})
}

func TestALineRecoversFromABatchThatVanished(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		f.AddSubscriber(alice, 0, 1, "widgets")
		f.PublishEvents("widgets", 1, 2, 0)
		first := f.Take("w1", 0)
		assert.Nil(t, f.Take("w2", 0))
		// Somebody removes the first by hand; the second comes up by itself.
		ctx := t.Context()
		f.Redis.Del(ctx, "batch:"+string(first.Delivery.Batch), "jobs:pending:main:w1")
		assert.Equal(t, 1, f.MakeInstant(600_000))
		second := f.Take("w2", 600_000)
		assert.Equal(t, []int{2}, numbers(t, second))
	})
}

func TestAPublishDoesNotJoinALineThatNobodyMoves(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		for _, job := range []bool{true, false} {
			require.NoError(t, server.Raw.FlushAll(t.Context()).Err())
			f := newFixture(t, server)
			f.AddSubscriber(alice, 0, 1, "widgets")
			f.PublishEvents("widgets", 1, 2, 0)
			first := f.Take("w1", 0)
			assert.Nil(t, f.Take("w2", 0))
			// Somebody removes the first by hand, or its job, as the Ruby original's worker does.
			if job {
				f.Redis.Del(t.Context(), "jobs:index:main", "jobs:pending:main:w1")
				f.Redis.SAdd(t.Context(), "jobs:index:main", f.Redis.ZRange(t.Context(), "jobs:scheduled:main", 0, -1).Val())
			} else {
				f.Redis.Del(t.Context(), "batch:"+string(first.Delivery.Batch), "jobs:pending:main:w1")
			}
			f.PublishEvents("widgets", 3, 4, 1)
			for want := 2; want <= 4; want++ {
				task := f.Take("w2", 1)
				assert.Equal(t, []int{want}, numbers(t, task))
				f.Complete(task, store.Done)
			}
		}
	})
}

func TestASubscriberWhoReturnsIsTriedAtOnce(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		for _, deleted := range []bool{true, false} {
			require.NoError(t, server.Raw.FlushAll(t.Context()).Err())
			f := newFixture(t, server, func(o *store.Options) { o.Abreast = 2 })
			f.AddSubscriber(alice, 0, 1, "widgets")
			f.PublishEvents("widgets", 1, 3, 0)
			f.Complete(f.Take("w1", 0), store.Outcome{RetryAt: after(90_000), ThrottledUntil: after(60_000)})
			assert.Nil(t, f.Take("w1", 1), "the others wait for the end of that")
			if deleted {
				require.NoError(t, f.DeleteSubscriber(t.Context(), alice))
			}
			f.AddSubscriber(alice, 0, 1, "widgets")
			got := append(numbers(t, f.Take("w1", 2)), numbers(t, f.Take("w2", 2))...)
			assert.Equal(t, []int{2, 3}, got, "deleted: %v", deleted)
			f.RequireSound()
		}
	})
}

func TestSettleAndAcquire(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		f.AddSubscriber(alice, 0, 1, "widgets")
		f.PublishEvents("widgets", 1, 2, 0)
		task := f.Take("w1", 0)
		owned, next, err := f.SettleAndAcquire(t.Context(), task, store.Done, bus.Failing, start)
		require.NoError(t, err)
		assert.True(t, owned)
		assert.Equal(t, []int{2}, numbers(t, next.Task))
		owned, next, err = f.SettleAndAcquire(t.Context(), next.Task, store.Done, bus.Failing, start)
		require.NoError(t, err)
		assert.True(t, owned)
		assert.Equal(t, store.Next{}, next)
		f.RequireSound()
	})
}

func TestAJobWhoseAnswerWasLostIsTakenAgain(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		f.AddSubscriber(alice, 0, 1, "widgets")
		f.PublishEvents("widgets", 1, 2, 0)
		lost := f.Take("w1", 0)
		again := f.Take("w1", 0)
		assert.Equal(t, lost.Delivery.Batch, again.Delivery.Batch)
		assert.Equal(t, 2, again.Delivery.Attempts)
		f.RequireSound()
	})
}

func TestScriptsSurviveAFlush(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		f.AddSubscriber(alice, 0, 1, "widgets")
		f.PublishEvents("widgets", 1, 2, 0)
		task := f.Take("w1", 0)
		require.NoError(t, f.Redis.ScriptFlush(t.Context()).Err())
		owned, next, err := f.SettleAndAcquire(t.Context(), task, store.Done, bus.Failing, start)
		require.NoError(t, err)
		assert.True(t, owned)
		assert.Equal(t, []int{2}, numbers(t, next.Task))
		assert.Equal(t, 1, next.Task.Delivery.Attempts, "it was taken once")
		f.RequireSound()
	})
}

// TestASettleComesBeforeTheAcquireBehindIt has Redis know the script of the second, and not yet that of the first.
func TestASettleComesBeforeTheAcquireBehindIt(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		ctx := t.Context()
		for name, meanwhile := range map[string]func(){
			"the subscriber is gone":       func() { require.NoError(t, f.DeleteSubscriber(ctx, alice)) },
			"the subscriber is left alone": func() { f.Redis.HSet(ctx, "subscriber:"+string(alice), "throttled_until", after(1000).UnixMilli()) },
			"nothing happens":              func() {},
		} {
			f.AddSubscriber(alice, 0, 1, "widgets")
			f.PublishEvents("widgets", 1, 2, 0)
			task := f.Take("w1", 0)
			require.Equal(t, []int{1}, numbers(t, task), name)
			meanwhile()
			require.NoError(t, f.Redis.ScriptFlush(ctx).Err())
			require.Nil(t, f.Take("w2", 0), name) // which makes its script known
			owned, next, err := f.SettleAndAcquire(ctx, task, store.Outcome{Health: 1, Delivered: 1}, bus.Failing, start)
			require.NoError(t, err, name)
			require.True(t, owned, name)
			require.NoError(t, next.Err, name)
			f.RequireSound()
			require.NoError(t, f.Redis.FlushAll(ctx).Err())
			f.Register()
		}
	})
}

func TestAScrubbedWorkerDoesNoHarm(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		ctx := t.Context()
		f.AddSubscriber(alice, 0, 1, "widgets")
		f.PublishEvents("widgets", 1, 2, 0)
		slow := f.Take("slow", 0)

		jobs, err := f.ScrubQueues(ctx, after(-1), bus.Queues[:]...)
		require.NoError(t, err)
		assert.Zero(t, jobs, "it has been active since")
		jobs, err = f.ScrubQueues(ctx, after(0), bus.Queues[:]...)
		require.NoError(t, err)
		assert.Equal(t, 1, jobs)
		f.RequireSound()

		again := f.Take("fast", 1)
		assert.Equal(t, slow.Delivery.Batch, again.Delivery.Batch, "what was put back is next, before its successor")
		before := dump(t, f.Redis)
		assert.False(t, f.Complete(slow, store.Done), "the slow worker's settle is void")
		assert.False(t, f.Complete(slow, store.Outcome{RetryAt: after(9)}))
		assert.Equal(t, before, dump(t, f.Redis))
		assert.True(t, f.Complete(again, store.Done))
		f.RequireSound()
	})
}

func TestScrubWorkersForgetsThem(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		ctx := t.Context()
		f.AddSubscriber(alice, 0, 1, "widgets")
		f.PublishEvents("widgets", 1, 1, 0)
		f.Take("dead", 0)
		require.NoError(t, f.Heartbeat(ctx, after(10), "alive"))
		jobs, workers, err := f.ScrubWorkers(ctx, after(5))
		require.NoError(t, err)
		assert.Equal(t, 1, jobs)
		assert.Equal(t, 1, workers)
		assert.Equal(t, map[string]string{"alive": "1700000000010"}, f.Redis.HGetAll(ctx, "workers").Val())
		f.RequireSound()
	})
}

func TestAWorkerThatRetiresLeavesNothing(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		f.AddSubscriber(alice, 0, 1, "widgets")
		f.PublishEvents("widgets", 1, 1, 0)
		task := f.Take("w1", 0)
		jobs, err := f.Retire(t.Context(), "w1")
		require.NoError(t, err)
		assert.Equal(t, 1, jobs)
		keys := keysOf(dump(t, f.Redis))
		assert.NotContains(t, keys, "workers")
		assert.NotContains(t, keys, "jobs:pending:index:main")
		f.RequireSound()
		assert.Equal(t, task.Delivery.Batch, f.Take("w2", 0).Delivery.Batch)
	})
}

func TestJobsAreUnique(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		ctx := t.Context()
		job := bus.Job{Name: bus.JobScrubQueues}
		enqueue := func() bool {
			added, err := f.Enqueue(ctx, bus.QueueAux, job)
			require.NoError(t, err)
			return added
		}
		assert.True(t, enqueue())
		assert.False(t, enqueue(), "instant")
		assert.Equal(t, hex.EncodeToString([]byte("\x92\xacscrub_queues\x90")),
			hex.EncodeToString([]byte(f.Redis.LIndex(ctx, "jobs:instant:aux", 0).Val())))
		task, err := f.Acquire(ctx, bus.QueueAux, "w1", bus.Failing, start)
		require.NoError(t, err)
		assert.Equal(t, job, task.Job)
		assert.Nil(t, task.Delivery)
		assert.False(t, enqueue(), "pending")
		f.Complete(task, store.Outcome{RetryAt: after(10)})
		assert.False(t, enqueue(), "scheduled")
		f.RequireSound()
		moved, err := f.Schedule(ctx, bus.QueueAux, after(10), 10)
		require.NoError(t, err)
		assert.Equal(t, 1, moved)
		task, err = f.Acquire(ctx, bus.QueueAux, "w1", bus.Failing, start)
		require.NoError(t, err)
		f.Complete(task, store.Done)
		assert.True(t, enqueue())
		f.RequireSound()
	})
}

func TestScheduleIsBounded(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		f.AddSubscriber(alice, time.Second, 2, "widgets")
		f.AddSubscriber(bob, time.Second, 2, "widgets")
		f.PublishEvents("widgets", 1, 1, 0)
		due, err := f.DueJobs(t.Context(), bus.QueueMain, after(999))
		require.NoError(t, err)
		assert.Zero(t, due)
		due, err = f.DueJobs(t.Context(), bus.QueueMain, after(1000))
		require.NoError(t, err)
		assert.Equal(t, int64(2), due)
		moved, err := f.Schedule(t.Context(), bus.QueueMain, after(5000), 1)
		require.NoError(t, err)
		assert.Equal(t, 1, moved)
		f.RequireSound()
	})
}

func TestWaiter(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		f.AddSubscriber(alice, 0, 1, "widgets")
		waiter := f.NewWaiter(bus.QueueMain, time.Minute)
		defer waiter.Close()
		require.NoError(t, waiter.Wait(t.Context(), 10*time.Millisecond), "a wait in vain is no error")

		woken := make(chan error)
		go func() { woken <- waiter.Wait(t.Context(), time.Minute) }()
		f.PublishEvents("widgets", 1, 1, 0)
		require.NoError(t, <-woken)
		before := dump(t, f.Redis)
		require.NoError(t, waiter.Wait(t.Context(), time.Minute), "it is still there")
		assert.Equal(t, before, dump(t, f.Redis), "waiting takes nothing")
		assert.Equal(t, []int{1}, numbers(t, f.Take("w1", 0)))

		ctx, cancel := context.WithCancel(t.Context())
		go func() { woken <- waiter.Wait(ctx, time.Minute) }()
		cancel()
		require.ErrorIs(t, <-woken, context.Canceled)
	})
}

func TestSubscriptions(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		ctx := t.Context()
		require.NoError(t, f.Subscribe(ctx, alice, bus.Subscription{Topics: []bus.TopicName{"a", "b"}, Callback: "https://a.example/"}, start))
		f.RequireSound()
		subscribers, _, err := f.Subscribers(ctx)
		require.NoError(t, err)
		assert.Equal(t, []bus.Subscriber{{
			Token: alice, Callback: "https://a.example/", Timeout: bus.DefaultTimeout, MaxEvents: bus.DefaultMaxEvents,
			Health: bus.MaxHealth, Topics: []bus.TopicName{"a", "b"},
		}}, subscribers)

		f.AddSubscriber(alice, time.Minute, 7, "b", "c")
		require.NoError(t, f.Subscribe(ctx, alice, bus.Subscription{Topics: []bus.TopicName{"b", "c"}, Callback: "https://b.example/"}, start))
		f.RequireSound()
		subscribers, _, err = f.Subscribers(ctx)
		require.NoError(t, err)
		assert.Equal(t, []bus.Subscriber{{
			Token: alice, Callback: "https://b.example/", UUID: "uuid-of-alice--1", Timeout: time.Minute, MaxEvents: 7,
			Health: bus.MaxHealth, Topics: []bus.TopicName{"b", "c"},
		}}, subscribers, "what is left out keeps what it was")
		topics, _, err := f.Topics(ctx)
		require.NoError(t, err)
		assert.ElementsMatch(t, []bus.Topic{{Name: "a"}, {Name: "b"}, {Name: "c"}}, topics)

		require.ErrorIs(t, f.Unsubscribe(ctx, alice, "nowhere"), bus.ErrTopicUnknown)
		require.ErrorIs(t, f.Unsubscribe(ctx, alice, "a"), bus.ErrNotSubscribed)
		require.NoError(t, f.Unsubscribe(ctx, alice, "b"))
		f.RequireSound()
		f.PublishEvents("b", 1, 1, 0)
		assert.Empty(t, f.Redis.Keys(ctx, "batch:*").Val())

		require.ErrorIs(t, f.DeleteSubscriber(ctx, bob), bus.ErrNotSubscribed)
		require.NoError(t, f.DeleteSubscriber(ctx, alice))
		f.RequireSound()
		assert.Equal(t, []string{"api_tokens:by_token", "topic:b", "topic_owners", "topic_owners:counts", "topics"}, keysOf(dump(t, f.Redis)))
	})
}

func TestBatchesOfADeletedSubscriberAreDropped(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		ctx := t.Context()
		f.AddSubscriber(alice, time.Hour, 2, "widgets")
		f.PublishEvents("widgets", 1, 5, 0)
		taken := f.Take("w1", 0)
		failed := f.Take("w2", 0)
		assert.Nil(t, failed)
		require.NoError(t, f.DeleteToken(ctx, alice))
		f.RequireSound()
		f.PublishEvents("widgets", 6, 6, 1)
		assert.Nil(t, f.Take("w2", 1), "its due batch, and its current one, are dropped, not delivered")
		f.Complete(taken, store.Outcome{Health: -2, RetryAt: after(100)})
		f.MakeInstant(100)
		assert.Nil(t, f.Take("w2", 100))
		f.RequireSound()
		assert.Equal(t, []string{"api_tokens:by_token", "jobs:pending:index:main", "topic:widgets", "topic_owners", "topic_owners:counts", "topics", "workers"}, keysOf(dump(t, f.Redis)))
	})
}

func TestSubscribersTellTheirOldestEvent(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		f.AddSubscriber(alice, time.Hour, 1, "widgets")
		f.PublishEvents("widgets", 1, 600, 0) // more batches than one trip looks at
		f.AddSubscriber(bob, time.Hour, 100, "gadgets")
		f.PublishEvents("gadgets", 1, 3, 700)
		f.PublishEvents("gadgets", 4, 5, 800)
		f.AddSubscriber(publisher, time.Hour, 100, "gadgets")
		subscribers, _, err := f.Subscribers(t.Context())
		require.NoError(t, err)
		var oldest []time.Time
		for _, sub := range subscribers {
			oldest = append(oldest, sub.OldestAt)
		}
		assert.Equal(t, []time.Time{after(0), after(700), {}}, oldest)
	})
}

func TestListingManySubscribersIsQuick(t *testing.T) {
	f := newFixture(t, rdbtest.Real(t))
	for i := range 1000 {
		token := bus.Token(fmt.Sprintf("s%d", i))
		require.NoError(t, f.PutToken(t.Context(), token, "s"))
		f.AddSubscriber(token, time.Hour, 100, "widgets", "gadgets")
	}
	f.PublishEvents("widgets", 1, 2, 0)
	quickest := time.Hour
	for range 10 {
		began := time.Now()
		subscribers, _, err := f.Subscribers(t.Context())
		require.NoError(t, err)
		require.Len(t, subscribers, 1000)
		assert.Equal(t, after(0), subscribers[999].OldestAt)
		quickest = min(quickest, time.Since(began))
	}
	t.Logf("listed 1,000 subscribers in %v", quickest)
	within := 100 * time.Millisecond
	if rdbtest.RaceDetector {
		within *= 10 // that is how much it slows programs down
	}
	assert.Less(t, quickest, within)
}

func TestDeleteTopic(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		ctx := t.Context()
		f.AddSubscriber(alice, time.Second, 100, "widgets", "gadgets")
		f.PublishEvents("widgets", 1, 1, 0)
		require.ErrorIs(t, f.DeleteTopic(ctx, "nowhere", publisher), bus.ErrTopicUnknown)
		require.ErrorIs(t, f.DeleteTopic(ctx, "widgets", bob), bus.ErrTopicClaimed)
		require.ErrorIs(t, f.DeleteTopic(ctx, "gadgets", bob), bus.ErrTopicClaimed, "nobody's is not bob's either")
		require.NoError(t, f.DeleteTopic(ctx, "gadgets", ""))
		require.NoError(t, f.DeleteTopic(ctx, "widgets", publisher))
		f.RequireSound()
		assert.Empty(t, f.Redis.Keys(ctx, "topic*").Val())
		f.MakeInstant(1000)
		assert.Equal(t, []int{1}, numbers(t, f.Take("w1", 1000)), "queued events stay")
	})
}

func TestTokens(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		ctx := t.Context()
		require.NoError(t, f.AddToken(ctx, alice, "other"))
		require.NoError(t, f.AddToken(ctx, "carol--3", "carol"))
		names, err := f.Tokens(ctx)
		require.NoError(t, err)
		assert.Equal(t, map[bus.Token]bus.ClientName{publisher: "publisher", alice: "alice", bob: "bob", "carol--3": "carol"}, names)
		name, err := f.ClientName(ctx, bob)
		require.NoError(t, err)
		assert.Equal(t, bus.ClientName("bob"), name)
		require.NoError(t, f.DeleteToken(ctx, bob))
		require.NoError(t, f.DeleteToken(ctx, bob), "there is nothing to delete")
		name, err = f.ClientName(ctx, bob)
		require.NoError(t, err)
		assert.Empty(t, name)
	})
}

func TestRedisAwayIsAnErrorAndIsToldOnce(t *testing.T) {
	server := rdbtest.Real(t)
	var log rdbtest.Buffer
	f := newFixtureOn(t, server, server.Open(t, log.LogTo).Partition(""))
	ctx := t.Context()
	require.NoError(t, f.Ping(ctx))
	server.Kill(t)
	for range 3 {
		require.ErrorIs(t, f.Ping(ctx), bus.ErrUnavailable)
		_, err := f.Acquire(ctx, bus.QueueMain, "w1", bus.Failing, start)
		require.ErrorIs(t, err, bus.ErrUnavailable)
	}
	server.Restart(t)
	require.NoError(t, f.Ping(ctx), "the first call finds it back")
	task, err := f.Acquire(ctx, bus.QueueMain, "w1", bus.Failing, start)
	require.NoError(t, err)
	assert.Nil(t, task)
	assert.Regexp(t, `^.*ERROR.*redis unavailable, retrying.*\n.*INFO.*redis available again.*\n$`, log.String())
}

func TestAFullRedisTakesNothingInAndGoesOnDelivering(t *testing.T) {
	server := rdbtest.Real(t)
	var log rdbtest.Buffer
	f := newFixtureOn(t, server, server.Open(t, log.LogTo).Partition(""))
	ctx := t.Context()
	f.AddSubscriber(alice, time.Second, 2, "widgets")
	f.PublishEvents("widgets", 1, 5, 0)
	task := f.Take("w1", 0)
	require.NoError(t, f.Redis.ConfigSet(ctx, "maxmemory", "1").Err())

	before := dump(t, f.Redis)
	p := store.Publication{Topic: "widgets", Publisher: publisher, Events: []wire.PackedEvent{packed(t, "widgets", 9)}}
	require.ErrorIs(t, f.Publish(ctx, p), bus.ErrUnavailable)
	p.Topic = "gadgets"
	require.ErrorIs(t, f.Publish(ctx, p), bus.ErrUnavailable)
	require.ErrorIs(t, f.Subscribe(ctx, bob, bus.Subscription{Callback: "https://b.example/"}, start), bus.ErrUnavailable)
	assert.Equal(t, before, dump(t, f.Redis), "nothing is half-written")
	assert.Regexp(t, `^.*ERROR.*redis refuses calls.*\n$`, log.String(), "it is logged once, and Redis is not unavailable")

	waiter := f.NewWaiter(bus.QueueMain, time.Minute)
	defer waiter.Close()
	require.NoError(t, waiter.Wait(ctx, time.Minute))
	assert.True(t, f.Complete(task, store.Outcome{Health: -2, RetryAt: after(9)}))
	assert.Equal(t, 1, f.MakeInstant(9))
	for range 2 {
		assert.True(t, f.Complete(f.Take("w1", 9), store.Outcome{Health: 1}))
	}
	require.NoError(t, f.Heartbeat(ctx, after(10), "w1"))
	added, err := f.Enqueue(ctx, bus.QueueAux, bus.Job{Name: "autodrop"})
	require.NoError(t, err)
	assert.True(t, added)
	assert.Equal(t, 1, f.MakeInstant(1000))
	assert.Equal(t, []int{5}, numbers(t, f.Take("w1", 1000)))
	jobs, err := f.Retire(ctx, "w1")
	require.NoError(t, err)
	assert.Equal(t, 1, jobs)
	require.NoError(t, f.DeleteToken(ctx, alice), "revoking takes nothing in either")
	name, err := f.ClientName(ctx, alice)
	require.NoError(t, err)
	assert.Empty(t, name)
	f.RequireSound()
}

func TestAFailedPublishDoesNotUseItsKeyUp(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		ctx := t.Context()
		f.AddSubscriber(alice, 0, 1, "widgets")
		f.Redis.Set(ctx, "jobs:instant:main", "broken", 0)
		p := store.Publication{
			Topic: "widgets", Publisher: publisher, Events: []wire.PackedEvent{packed(t, "widgets", 1)}, ReceivedAt: start.UnixMilli(),
			IdempotencyKey: &store.IdempotencyKey{Key: "k", Digest: "d"},
		}
		require.Error(t, f.Publish(ctx, p))
		f.Redis.Del(ctx, "jobs:instant:main")
		require.NoError(t, f.Publish(ctx, p))
		assert.Equal(t, []int{1}, numbers(t, f.Take("w1", 0)))
	})
}

func TestASubscriberThatFailedIsLeftAlone(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		f.AddSubscriber(alice, 0, 1, "widgets")
		f.PublishEvents("widgets", 1, 4, 0)
		f.Complete(f.Take("w1", 0), store.Outcome{Health: -100, RetryAt: after(200), ThrottledUntil: after(1000)})
		assert.Nil(t, f.Take("w1", 0), "its other batches wait too")
		f.RequireSound()
		f.MakeInstant(999)
		assert.Nil(t, f.Take("w1", 999))
		assert.Equal(t, 1, f.MakeInstant(1000), "one comes up to try")
		task := f.Take("w1", 1000)
		assert.Equal(t, []int{2}, numbers(t, task))
		assert.Equal(t, 1, task.Delivery.Attempts, "waiting was no attempt")
		f.Complete(task, store.Outcome{Health: -2, RetryAt: after(1200), ThrottledUntil: after(61_000)})
		assert.Nil(t, f.Take("w1", 1000))
		f.AddSubscriber(alice, 0, 1, "widgets") // it says that it is back
		task = f.Take("w1", 1000)
		assert.Equal(t, []int{3}, numbers(t, task))
		f.Complete(task, store.Outcome{Health: -2, RetryAt: after(1200), ThrottledUntil: after(61_000)})
		assert.Nil(t, f.Take("w1", 1000))
		f.MakeInstant(61_000)
		f.Complete(f.Take("w1", 61_000), store.Outcome{Health: 1, Delivered: 1})
		f.RequireSound()
		assert.Equal(t, 3, f.deliverAll(), "one success, and the others follow at once")
		assert.False(t, f.Redis.HExists(t.Context(), "subscriber:alice--1", "throttled_until").Val())
	})
}

func TestARemovedTokenCanNeitherPublishNorSubscribe(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		ctx := t.Context()
		require.NoError(t, f.DeleteToken(ctx, alice))
		before := dump(t, f.Redis)
		require.ErrorIs(t, f.Subscribe(ctx, alice, bus.Subscription{Topics: []bus.TopicName{"a"}, Callback: "https://a.example/"}, start), bus.ErrTokenUnknown)
		require.ErrorIs(t, f.Publish(ctx, store.Publication{Topic: "a", Publisher: alice, Events: []wire.PackedEvent{packed(t, "a", 1)}}), bus.ErrTokenUnknown)
		assert.Equal(t, before, dump(t, f.Redis))
	})
}

func TestATopicBelongsToAllTokensOfItsPublisher(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		ctx := t.Context()
		f.PublishEvents("widgets", 1, 1, 0)
		require.NoError(t, f.PutToken(ctx, "publisher--2", "publisher"))
		p := store.Publication{Topic: "widgets", Publisher: "publisher--2", Events: []wire.PackedEvent{packed(t, "widgets", 2)}}
		require.NoError(t, f.Publish(ctx, p))
		require.NoError(t, f.DeleteToken(ctx, publisher), "the old token goes")
		require.NoError(t, f.Publish(ctx, p))
		f.PublishAs("publisher--2", "quiet")
		require.NoError(t, f.PutToken(ctx, "publisher--3", "publisher"))
		require.NoError(t, f.DeleteToken(ctx, "publisher--2"))
		f.PublishAs("publisher--3", "quiet")
		require.NoError(t, f.DeleteTopic(ctx, "widgets", "publisher--3"), "which nobody has published to since")
	})
}

func TestAShorterTimeoutHoldsForTheOpenBatch(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		f.AddSubscriber(alice, time.Hour, 100, "widgets")
		f.PublishEvents("widgets", 1, 1, 0)
		f.AddSubscriber(alice, 2*time.Hour, 100, "widgets")
		assert.Zero(t, f.MakeInstant(3_599_999))
		f.AddSubscriber(alice, 20*time.Millisecond, 100, "widgets")
		assert.Zero(t, f.MakeInstant(19))
		assert.Equal(t, 1, f.MakeInstant(20))
		f.RequireSound()
	})
}

func TestForeignBytesDoNotStopAThread(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		ctx := t.Context()
		f.AddSubscriber(alice, 0, 100, "widgets")
		f.PublishEvents("widgets", 1, 1, 0)
		f.Redis.HSet(ctx, "subscriber:alice--1", "max_events", "0", "timeout", "-5")
		f.PublishEvents("widgets", 2, 3, 0)
		for _, junk := range []string{strings.Repeat("x", 500), "", "\x92\xa5batch\x91\xa0", "\x92\xa5batch\x91\xd9\xff" + strings.Repeat("y", 255)} {
			f.Redis.SAdd(ctx, "jobs:index:main", junk)
			f.Redis.RPush(ctx, "jobs:instant:main", junk)
			task := f.Take("w1", 0)
			assert.Nil(t, task.Delivery)
			assert.True(t, f.Complete(task, store.Outcome{RetryAt: after(1)}))
			assert.Equal(t, int64(1), f.Redis.ZRem(ctx, "jobs:scheduled:main", junk).Val())
			f.Redis.SRem(ctx, "jobs:index:main", junk)
		}
		f.Redis.Set(ctx, "batch:AAAABBBBCCCCDDDDEEEE", "not a list", 0)
		f.Redis.RPush(ctx, "jobs:instant:main", "\x92\xa5batch\x91\xb4AAAABBBBCCCCDDDDEEEE")
		assert.Equal(t, []int{1}, numbers(t, f.Take("w1", 0)))
	})
}

// TestForeignSettingsDoNotStopAPublish has something else than the bus write what a worker notes of a subscriber.
func TestForeignSettingsDoNotStopAPublish(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		f.AddSubscriber(alice, 0, 100, "widgets")
		for _, abreast := range []string{"0", "-1", "many", ""} {
			f.Redis.HSet(t.Context(), "subscriber:alice--1", "abreast", abreast)
			f.PublishEvents("widgets", 1, 1, 0)
			f.RequireSound()
			task := f.Take("w1", 0)
			assert.Equal(t, []int{1}, numbers(t, task))
			f.Complete(task, store.Done)
			f.RequireSound()
		}
	})
}

func TestHousekeepingOfDeadWorkersIsPutBackWithoutAJob(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		ctx := t.Context()
		for _, name := range []bus.JobName{bus.JobScrubQueues, bus.JobScrubWorkers} {
			_, err := f.Enqueue(ctx, bus.QueueAux, bus.Job{Name: name})
			require.NoError(t, err)
			_, err = f.Acquire(ctx, bus.QueueAux, bus.WorkerID("dead with "+name), bus.Failing, start)
			require.NoError(t, err)
		}
		jobs, err := f.ScrubQueues(ctx, after(0), bus.QueueAux)
		require.NoError(t, err)
		assert.Equal(t, 2, jobs)
		f.RequireSound()
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
	var task *store.Task
	assert.Equal(t, 50*2, f.deliverAll(), "each subscriber has two full batches")
	before = commandsFromClients(t, f.Redis)
	f.PublishEvents("widgets", 6, 6, 0)
	task = f.Take("w1", 0)
	_, _, err := f.SettleAndAcquire(ctx, task, store.Done, bus.Failing, start)
	require.NoError(t, err)
	assert.Equal(t, 4, commandsFromClients(t, f.Redis)-before, "a publish, an acquire, and one trip of two scripts")
	f.RequireSound()
}

// deliverAll delivers all instant batches and returns their number.
func (f *fixture) deliverAll() (delivered int) {
	f.T.Helper()
	for task := f.Take("w1", 0); task != nil; task = f.Take("w1", 0) {
		f.Complete(task, store.Done)
		delivered++
	}
	return delivered
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

func TestDropOldest(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		ctx := t.Context()
		f.AddSubscriber(alice, time.Hour, 2, "widgets")
		f.AddSubscriber(bob, 0, 1, "gadgets")
		f.PublishEvents("widgets", 1, 2, 0)   // full: instant, and then taken
		f.PublishEvents("gadgets", 3, 3, 1)   // instant
		f.PublishEvents("widgets", 4, 5, 2)   // instant, and then waits for its turn
		f.PublishEvents("widgets", 6, 6, 3)   // current: scheduled
		f.PublishEvents("gadgets", 7, 107, 4) // instant
		held := f.Take("w1", 5)
		require.Equal(t, []int{1, 2}, numbers(t, held))
		require.Equal(t, []int{3}, numbers(t, f.Take("w2", 5)))
		require.Nil(t, f.Take("w3", 6), "some of the others now wait for their turn")
		dropped, err := f.DropOldest(ctx)
		require.NoError(t, err)
		require.Len(t, dropped, 100, "what one call drops at most")
		assert.Equal(t, []store.DroppedBatch{{alice, 2}, {alice, 1}, {bob, 1}}, dropped[:3], "oldest first, but not what is being delivered")
		f.RequireSound()
		dropped, err = f.DropOldest(ctx)
		require.NoError(t, err)
		assert.Equal(t, []store.DroppedBatch{{bob, 1}, {bob, 1}, {bob, 1}}, dropped)
		dropped, err = f.DropOldest(ctx)
		require.NoError(t, err)
		assert.Empty(t, dropped, "nothing but what is being delivered is left")
		f.RequireSound()
		assert.True(t, f.Complete(held, store.Outcome{Delivered: 2}))

		f.PublishEvents("widgets", 200, 200, 7)
		f.MakeInstant(int(2 * time.Hour / time.Millisecond))
		assert.Equal(t, []int{200}, numbers(t, f.Take("w1", 8)), "all goes on")
		f.RequireSound()
	})
}

func TestDropOldestIsBoundedByEvents(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		f.AddSubscriber(alice, time.Hour, 600, "widgets")
		f.PublishEvents("widgets", 1, 3000, 0)
		dropped, err := f.DropOldest(t.Context())
		require.NoError(t, err)
		assert.Equal(t, []store.DroppedBatch{{alice, 600}, {alice, 600}}, dropped)
		f.RequireSound()
	})
}

func TestDropOldestCleansTheIndexAndSparesDeepJobs(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		ctx := t.Context()
		require.NoError(t, f.Redis.ZAdd(ctx, "batches:index", redis.Z{Score: 1, Member: "gone"}).Err())
		f.AddSubscriber(bob, 0, 1, "gadgets")
		f.PublishEvents("gadgets", 1, 1, 0)
		for i := range 2000 { // in front of the job of event 1
			_, err := f.Enqueue(ctx, bus.QueueMain, bus.Job{Name: "x", Args: []string{strconv.Itoa(i)}})
			require.NoError(t, err)
		}
		job := f.Redis.RPop(ctx, "jobs:instant:main").Val()
		require.NoError(t, f.Redis.LPush(ctx, "jobs:instant:main", job).Err())
		dropped, err := f.DropOldest(ctx)
		require.NoError(t, err)
		assert.Equal(t, []store.DroppedBatch{{"", 0}, {bob, 1}}, dropped)
		assert.Empty(t, f.Redis.Keys(ctx, "batch*").Val())
		assert.True(t, f.Redis.SIsMember(ctx, "jobs:index:main", job).Val(), "it goes when it comes up")
		for range 2000 {
			require.True(t, f.Complete(f.Take("w1", 1), store.Done))
		}
		assert.Nil(t, f.Take("w1", 1))
		f.RequireSound()
	})
}

func TestMemory(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		st := storetest.Open(t, server)
		if server.IsEmbedded() {
			_, err := st.Memory(t.Context())
			assert.ErrorIs(t, err, rdb.ErrMemoryUnknown)
			return
		}
		memory, err := st.Memory(t.Context())
		require.NoError(t, err)
		assert.Greater(t, memory.Used, int64(100_000))
		assert.Zero(t, memory.Max)
		assert.False(t, memory.Evicts)
		require.NoError(t, server.Raw.ConfigSet(t.Context(), "maxmemory", "12345678").Err())
		require.NoError(t, server.Raw.ConfigSet(t.Context(), "maxmemory-policy", "allkeys-lru").Err())
		memory, err = st.Memory(t.Context())
		require.NoError(t, err)
		assert.Equal(t, int64(12_345_678), memory.Max)
		assert.True(t, memory.Evicts)
		server.Kill(t)
		_, err = st.Memory(t.Context())
		assert.ErrorIs(t, err, bus.ErrUnavailable)
	})
}
