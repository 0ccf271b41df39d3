package store_test

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store/storetest"
)

func TestADeliveryLeavesNothingBehind(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		f.AddSubscriber(storetest.Alice, 500*time.Millisecond, 100, "widgets")
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
		assert.Equal(t, storetest.Start, task.Delivery.CreatedAt)
		assert.Contains(t, rdbtest.Dump(t, f.Redis), "jobs:pending:main:w1")

		assert.True(t, f.Complete(task, storetest.Result{Health: 1, Delivered: 3}))
		f.RequireSound()
		assert.Equal(t, []string{
			"api_tokens:by_token", "delivery:alice--1", "jobs:pending:index:main", "subscriber:alice--1", "subscribers", "subscribers:widgets",
			"topic:widgets", "topic_owners", "topic_owners:counts", "topics", "topics:alice--1", "workers",
		}, keysOf(rdbtest.Dump(t, f.Redis)))
		subscribers, _, err := storetest.Subscribers(t.Context(), f.Inspector)
		require.NoError(t, err)
		assert.Equal(t, []bus.Subscriber{{
			Token: storetest.Alice, Callback: "https://alice--1.example/events", UUID: "uuid-of-alice--1",
			Timeout: 500 * time.Millisecond, MaxEvents: 100, Health: 100,
			LastAttemptedAt: storetest.After(501), Topics: []bus.TopicName{"widgets"}, Sent: 3,
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
		f.Redis.RPush(ctx, "batch:"+bid, "alice--1", "1700000000000", "0", string(storetest.Packed(t, "widgets", 7)))
		f.Redis.ZAdd(ctx, "batches:index", redis.Z{Score: 1700000000000, Member: bid})
		f.Redis.LPush(ctx, "jobs:instant:main", job)

		task := f.Take("w1", 0)
		assert.Equal(t, []int{7}, storetest.Numbers(t, task))
		assert.True(t, f.Complete(task, storetest.Done))
		assert.Equal(t, []string{"api_tokens:by_token", "delivery:alice--1", "jobs:pending:index:main", "subscriber:alice--1", "subscribers", "workers"}, keysOf(rdbtest.Dump(t, f.Redis)))
	})
}

func TestAFailedDeliveryIsPutOff(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		f.AddSubscriber(storetest.Alice, 0, 100, "widgets")
		f.PublishEvents("widgets", 1, 1, 0)
		batch := f.Redis.ZRange(t.Context(), "batches:index", 0, 0).Val()[0]
		for i, health := range []int{100, 40, 0} {
			attempt := i + 1
			task := f.Take("w1", attempt*1000)
			assert.Equal(t, attempt, task.Delivery.Attempts)
			assert.Equal(t, health, task.Delivery.Health)
			assert.True(t, f.Complete(task, storetest.Result{
				Health: -60, RetryAt: storetest.After(attempt*1000 + 200), Failure: bus.EndpointFailure, Attempt: []byte("x"), AttemptsKept: 20,
			}))
			f.RequireSound()
			assert.Nil(t, f.Take("w1", attempt*1000))
			assert.Zero(t, f.MakeInstant(attempt*1000+199))
			assert.Equal(t, 1, f.MakeInstant(attempt*1000+200))
		}
		subscribers, _, err := storetest.Subscribers(t.Context(), f.Inspector)
		require.NoError(t, err)
		assert.Zero(t, subscribers[0].Health, "health stays within its bounds")
		assert.Equal(t, int64(1), subscribers[0].Queued)
		assert.Equal(t, []string{
			"api_tokens:by_token", "attempts:alice--1", "batch:" + batch, "batches:failed:alice--1", "batches:gauges:batch", "batches:gauges:bytes", "batches:gauges:event",
			"batches:index", "delivery:alice--1", "jobs:index:main", "jobs:instant:main", "jobs:pending:index:main", "subscriber:alice--1",
			"subscribers", "subscribers:widgets", "topic:widgets", "topic_owners", "topic_owners:counts", "topics", "topics:alice--1", "workers",
		}, keysOf(rdbtest.Dump(t, f.Redis)))
	})
}

func TestCompleteAndAcquire(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		f.AddSubscriber(storetest.Alice, 0, 1, "widgets")
		f.PublishEvents("widgets", 1, 2, 0)
		task := f.Take("w1", 0)
		owned, next, err := f.CompleteAndAcquire(t.Context(), task, storetest.Done, bus.Failing, storetest.Start)
		require.NoError(t, err)
		assert.True(t, owned)
		assert.Equal(t, []int{2}, storetest.Numbers(t, next.Task))
		owned, next, err = f.CompleteAndAcquire(t.Context(), next.Task, storetest.Done, bus.Failing, storetest.Start)
		require.NoError(t, err)
		assert.True(t, owned)
		assert.Equal(t, storetest.Next{}, next)
		f.RequireSound()
	})
}

func TestAJobWhoseAnswerWasLostIsTakenAgain(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		f.AddSubscriber(storetest.Alice, 0, 1, "widgets")
		f.PublishEvents("widgets", 1, 2, 0)
		lost := f.Take("w1", 0)
		again := f.Take("w1", 0)
		assert.Equal(t, lost.Delivery.Batch, again.Delivery.Batch)
		assert.Equal(t, 2, again.Delivery.Attempts)
		f.RequireSound()
	})
}

// TestACompletionComesBeforeTheAcquireBehindIt starts with a Redis that has loaded the script of
// the second call, but not the script of the first.
func TestACompletionComesBeforeTheAcquireBehindIt(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		ctx := t.Context()
		for name, meanwhile := range map[string]func(){
			"the subscriber is gone": func() { require.NoError(t, f.DeleteSubscriber(ctx, storetest.Alice)) },
			"the subscriber is throttled": func() {
				f.Redis.HSet(ctx, "delivery:"+string(storetest.Alice), "throttled_until", storetest.After(1000).UnixMilli())
			},
			"nothing happens": func() {},
		} {
			f.AddSubscriber(storetest.Alice, 0, 1, "widgets")
			f.PublishEvents("widgets", 1, 2, 0)
			task := f.Take("w1", 0)
			require.Equal(t, []int{1}, storetest.Numbers(t, task), name)
			meanwhile()
			require.NoError(t, f.Redis.ScriptFlush(ctx).Err())
			require.Nil(t, f.Take("w2", 0), name) // which makes its script known
			owned, next, err := f.CompleteAndAcquire(ctx, task, storetest.Result{Health: 1, Delivered: 1}, bus.Failing, storetest.Start)
			require.NoError(t, err, name)
			require.True(t, owned, name)
			require.NoError(t, next.Err, name)
			f.RequireSound()
			require.NoError(t, f.Redis.FlushAll(ctx).Err())
			f.Register()
		}
	})
}

func TestForeignBytesDoNotStopAThread(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		ctx := t.Context()
		f.AddSubscriber(storetest.Alice, 0, 100, "widgets")
		f.PublishEvents("widgets", 1, 1, 0)
		f.Redis.HSet(ctx, "subscriber:alice--1", "max_events", "0", "timeout", "-5")
		f.PublishEvents("widgets", 2, 3, 0)
		for _, junk := range []string{strings.Repeat("x", 500), "", "\x92\xa5batch\x91\xa0", "\x92\xa5batch\x91\xd9\xff" + strings.Repeat("y", 255)} {
			f.Redis.SAdd(ctx, "jobs:index:main", junk)
			f.Redis.RPush(ctx, "jobs:instant:main", junk)
			task := f.Take("w1", 0)
			assert.Nil(t, task.Delivery)
			assert.True(t, f.Complete(task, storetest.Result{RetryAt: storetest.After(1)}))
			assert.Equal(t, int64(1), f.Redis.ZRem(ctx, "jobs:scheduled:main", junk).Val())
			f.Redis.SRem(ctx, "jobs:index:main", junk)
		}
		f.Redis.Set(ctx, "batch:AAAABBBBCCCCDDDDEEEE", "not a list", 0)
		f.Redis.RPush(ctx, "jobs:instant:main", "\x92\xa5batch\x91\xb4AAAABBBBCCCCDDDDEEEE")
		assert.Equal(t, []int{1}, storetest.Numbers(t, f.Take("w1", 0)))
	})
}

// TestNoEventJoinsABatchInFlight: the Ruby original lowers a subscriber's max_events, and writes
// only that, so a batch that is full by this number stays current until it is taken.
func TestNoEventJoinsABatchInFlight(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f, ctx := newFixture(t, server), t.Context()
		f.Redis.Set(ctx, "migration", "1", 0)
		f.AddSubscriber(storetest.Alice, 10*time.Millisecond, 10, "widgets")
		f.PublishEvents("widgets", 1, 3, 0)
		f.Redis.HSet(ctx, "subscriber:alice--1", "max_events", 2)
		task := f.dueAt(10)
		require.Equal(t, []int{1, 2, 3}, storetest.Numbers(t, task))
		assert.Empty(t, f.Redis.SMembers(ctx, "batches:current:alice--1").Val())
		f.Redis.HSet(ctx, "subscriber:alice--1", "max_events", 10)
		f.PublishEvents("widgets", 4, 4, 20)
		f.succeed(task, 30)
		assert.Equal(t, []int{4}, storetest.Numbers(t, f.dueAt(40)))
	})
}

// TestTheNameOfALateTokenIsNoted delivers to a subscriber whose token is registered only later.
func TestTheNameOfALateTokenIsNoted(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f, ctx := newFixture(t, server), t.Context()
		const carol = bus.Token("carol--3")
		f.Redis.SAdd(ctx, "subscribers", string(carol))
		f.Redis.SAdd(ctx, "subscribers:widgets", string(carol))
		f.Redis.HSet(ctx, "subscriber:"+string(carol), "callback", "https://c.example/", "timeout", 0, "max_events", 1)
		f.PublishEvents("widgets", 1, 2, 0)
		task := f.Take("w1", 0)
		assert.Equal(t, bus.PublicName(carol, ""), task.Delivery.Client)
		f.succeed(task, 0)
		assert.Equal(t, map[string]string{"events_sent": "1"}, f.Redis.HGetAll(ctx, "delivery:"+string(carol)).Val())
		require.NoError(t, f.PutToken(ctx, carol, "carol"))
		task = f.Take("w1", 0)
		assert.Equal(t, bus.ClientName("carol"), task.Delivery.Client)
		f.succeed(task, 0)
		assert.Equal(t, map[string]string{"name": "carol", "events_sent": "2"}, f.Redis.HGetAll(ctx, "delivery:"+string(carol)).Val())
	})
}

func TestAcquireReportsWhenABatchWasDue(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		f.AddSubscriber(storetest.Alice, 100*time.Millisecond, 2, "widgets")
		f.PublishEvents("widgets", 1, 3, 7)
		_, err := f.Schedule(t.Context(), bus.QueueMain, storetest.After(200), 10)
		require.NoError(t, err)
		full := f.Take("w", 200)
		assert.Zero(t, full.Delivery.DueAt, "nobody knows when a batch became full")
		_, next, err := f.CompleteAndAcquire(t.Context(), full, storetest.Done, bus.Failing, storetest.After(200))
		require.NoError(t, err)
		require.NoError(t, next.Err)
		late := next.Task
		assert.Equal(t, storetest.After(107), late.Delivery.DueAt)
		_, err = f.CompleteAt(t.Context(), late, storetest.Result{RetryAt: storetest.After(200)}, storetest.After(200))
		require.NoError(t, err)
		_, err = f.Schedule(t.Context(), bus.QueueMain, storetest.After(200), 10)
		require.NoError(t, err)
		assert.Zero(t, f.Take("w", 201).Delivery.DueAt, "nor when a retry was due")
	})
}
