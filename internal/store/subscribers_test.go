package store_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store/storetest"
)

func TestSubscriptions(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		ctx := t.Context()
		require.NoError(t, f.Subscribe(ctx, storetest.Alice, bus.Subscription{Topics: []bus.TopicName{"a", "b"}, Callback: "https://a.example/"}, storetest.Start))
		f.RequireSound()
		subscribers, _, err := storetest.Subscribers(ctx, f.Inspector)
		require.NoError(t, err)
		assert.Equal(t, []bus.Subscriber{{
			Token: storetest.Alice, Callback: "https://a.example/", Timeout: bus.DefaultTimeout, MaxEvents: bus.DefaultMaxEvents,
			Health: bus.MaxHealth, Topics: []bus.TopicName{"a", "b"},
		}}, subscribers)

		f.AddSubscriber(storetest.Alice, time.Minute, 7, "b", "c")
		require.NoError(t, f.Subscribe(ctx, storetest.Alice, bus.Subscription{Topics: []bus.TopicName{"b", "c"}, Callback: "https://b.example/"}, storetest.Start))
		f.RequireSound()
		subscribers, _, err = storetest.Subscribers(ctx, f.Inspector)
		require.NoError(t, err)
		assert.Equal(t, []bus.Subscriber{{
			Token: storetest.Alice, Callback: "https://b.example/", UUID: "uuid-of-alice--1", Timeout: time.Minute, MaxEvents: 7,
			Health: bus.MaxHealth, Topics: []bus.TopicName{"b", "c"},
		}}, subscribers, "what is left out keeps what it was")
		topics, _, err := storetest.Topics(ctx, f.Inspector)
		require.NoError(t, err)
		assert.ElementsMatch(t, []bus.Topic{{Name: "a"}, {Name: "b"}, {Name: "c"}}, topics)

		require.ErrorIs(t, f.Unsubscribe(ctx, storetest.Alice, "nowhere"), bus.ErrTopicUnknown)
		require.ErrorIs(t, f.Unsubscribe(ctx, storetest.Alice, "a"), bus.ErrNotSubscribed)
		require.NoError(t, f.Unsubscribe(ctx, storetest.Alice, "b"))
		f.RequireSound()
		f.PublishEvents("b", 1, 1, 0)
		assert.Empty(t, f.Redis.Keys(ctx, "batch:*").Val())

		require.ErrorIs(t, f.DeleteSubscriber(ctx, storetest.Bob), bus.ErrNotSubscribed)
		require.NoError(t, f.DeleteSubscriber(ctx, storetest.Alice))
		f.RequireSound()
		assert.Equal(t, []string{"api_tokens:by_token", "topic:b", "topic_owners", "topic_owners:counts", "topics"}, keysOf(rdbtest.Dump(t, f.Redis)))
	})
}

func TestBatchesOfADeletedSubscriberAreDropped(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		ctx := t.Context()
		f.AddSubscriber(storetest.Alice, time.Hour, 2, "widgets")
		f.PublishEvents("widgets", 1, 5, 0)
		taken := f.Take("w1", 0)
		failed := f.Take("w2", 0)
		assert.Nil(t, failed)
		require.NoError(t, f.DeleteToken(ctx, storetest.Alice))
		f.RequireSound()
		f.PublishEvents("widgets", 6, 6, 1)
		assert.Nil(t, f.Take("w2", 1), "its due batch, and its current one, are dropped, not delivered")
		f.Complete(taken, storetest.Result{Health: -2, RetryAt: storetest.After(100)})
		f.MakeInstant(100)
		assert.Nil(t, f.Take("w2", 100))
		f.RequireSound()
		assert.Equal(t, []string{"api_tokens:by_token", "jobs:pending:index:main", "topic:widgets", "topic_owners", "topic_owners:counts", "topics", "workers"}, keysOf(rdbtest.Dump(t, f.Redis)))
	})
}

func TestASubscriberThatFailedIsThrottled(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		f.AddSubscriber(storetest.Alice, 0, 1, "widgets")
		f.PublishEvents("widgets", 1, 4, 0)
		f.Complete(f.Take("w1", 0), storetest.Result{Health: -100, RetryAt: storetest.After(200), ThrottledUntil: storetest.After(1000)})
		assert.Nil(t, f.Take("w1", 0), "its other batches wait too")
		f.RequireSound()
		f.MakeInstant(999)
		assert.Nil(t, f.Take("w1", 999))
		assert.Equal(t, 1, f.MakeInstant(1000), "one comes up to try")
		task := f.Take("w1", 1000)
		assert.Equal(t, []int{2}, storetest.Numbers(t, task))
		assert.Equal(t, 1, task.Delivery.Attempts, "waiting was no attempt")
		f.Complete(task, storetest.Result{Health: -2, RetryAt: storetest.After(1200), ThrottledUntil: storetest.After(61_000)})
		assert.Nil(t, f.Take("w1", 1000))
		f.AddSubscriber(storetest.Alice, 0, 1, "widgets") // it says that it is back
		task = f.Take("w1", 1000)
		assert.Equal(t, []int{3}, storetest.Numbers(t, task))
		f.Complete(task, storetest.Result{Health: -2, RetryAt: storetest.After(1200), ThrottledUntil: storetest.After(61_000)})
		assert.Nil(t, f.Take("w1", 1000))
		f.MakeInstant(61_000)
		f.Complete(f.Take("w1", 61_000), storetest.Result{Health: 1, Delivered: 1})
		f.RequireSound()
		assert.Equal(t, 3, f.deliverAll(), "one success, and the others follow at once")
		assert.False(t, f.Redis.HExists(t.Context(), "delivery:alice--1", "throttled_until").Val())
	})
}

// TestNoSubscriberIsHalfMade subscribes while one of the keys involved is of another type: a key
// that only deliveries need is reset, and a wrong key of the subscription itself changes nothing.
func TestNoSubscriberIsHalfMade(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		for key, resets := range map[string]bool{
			"batches:current:alice--1": true, "jobs:lane:batch:alice--1": true, "batches:failed:alice--1": true,
			"delivery:alice--1": true, "subscriber:alice--1": false, "topics:alice--1": false, "subscribers": false,
			"subscribers:widgets": false,
		} {
			require.NoError(t, server.Raw.FlushAll(t.Context()).Err())
			f, ctx := newFixture(t, server), t.Context()
			require.NoError(t, f.Redis.Set(ctx, key, "x", 0).Err())
			before := rdbtest.Dump(t, f.Redis)
			err := f.Subscribe(ctx, storetest.Alice, bus.Subscription{
				Topics: []bus.TopicName{"widgets"}, Callback: "https://a.example/",
			}, storetest.Start)
			if !resets {
				require.ErrorContains(t, err, "WRONGTYPE", key)
				assert.Equal(t, before, rdbtest.Dump(t, f.Redis), key)
				continue
			}
			require.NoError(t, err, key)
			f.RequireSound()
			f.PublishEvents("widgets", 1, 1, 0)
			f.MakeInstant(int(bus.DefaultTimeout.Milliseconds()))
			assert.Equal(t, []int{1}, storetest.Numbers(t, f.Take("w1", 0)), key)
		}
	})
}

// TestHealthIsOfThePresentSubscription fails a delivery after its subscriber has left and come
// back.
func TestHealthIsOfThePresentSubscription(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f, ctx := newFixture(t, server), t.Context()
		f.AddSubscriber(storetest.Alice, 0, 1, "widgets")
		f.Redis.HSet(ctx, "subscriber:alice--1", "health_points", 4)
		f.PublishEvents("widgets", 1, 1, 0)
		task := f.Take("w1", 0)
		require.Equal(t, 4, task.Delivery.Health)
		require.NoError(t, f.DeleteSubscriber(ctx, storetest.Alice))
		f.AddSubscriber(storetest.Alice, 0, 1, "widgets")
		f.fail(task, bus.EndpointFailure, 0, 1000, 0)
		assert.Equal(t, "100", f.Redis.HGet(ctx, "subscriber:alice--1", "health_points").Val())
	})
}
