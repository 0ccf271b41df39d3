package inspect_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/inspect"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store/storetest"
)

func TestDetail(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f, ctx := storetest.NewBus(t, server), t.Context()
		_, err := f.Detail(ctx, storetest.Alice, storetest.Start)
		require.ErrorIs(t, err, bus.ErrNotSubscribed)
		f.AddSubscriber(storetest.Alice, time.Hour, 3, "widgets")
		detail, err := f.Detail(ctx, storetest.Alice, storetest.Start)
		require.NoError(t, err)
		assert.Equal(t, inspect.Detail{Subscriber: bus.Subscriber{
			Token: storetest.Alice, Callback: "https://alice--1.example/events", UUID: "uuid-of-alice--1",
			Timeout: time.Hour, MaxEvents: 3, Health: 100, Topics: []bus.TopicName{"widgets"},
		}}, detail)

		require.NoError(t, f.PatchSubscriber(ctx, storetest.Alice, bus.Subscription{
			Options: map[string]string{"partial": "true"},
		}, storetest.Start))
		require.NoError(t, f.Pause(ctx, storetest.Alice, storetest.After(500)))
		f.Redis.ZAdd(ctx, "deadletters:index:alice--1", redis.Z{Member: "x", Score: 7}, redis.Z{Member: "y", Score: 8})
		f.Redis.HSet(ctx, "deadletters:events", "alice--1", "12")
		f.Redis.HSet(ctx, "deadletters:bytes", "alice--1", "340")
		_, _, err = f.RotateToken(ctx, storetest.Alice, "alice--2")
		require.NoError(t, err)
		holder, err := f.Inspector.Holder(ctx, storetest.Alice)
		require.NoError(t, err)
		detail, err = f.Detail(ctx, holder, storetest.Start)
		require.NoError(t, err)
		assert.Equal(t, bus.Token("alice--2"), detail.Token)
		assert.Equal(t, bus.Options{Partial: true}, detail.Options.Options)
		assert.Equal(t, storetest.After(500), detail.Holds.Paused)
		assert.Equal(t, inspect.DeadLetters{Letters: 2, Events: 12, Bytes: 340, OldestAt: time.UnixMilli(7)}, detail.DeadLetters)
		detail, err = f.Detail(ctx, holder, storetest.After(501))
		require.NoError(t, err)
		assert.Zero(t, detail.Holds.Paused)
	})
}

func TestDetailTellsDamagedKeysFromNoSubscriber(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f, ctx := storetest.NewBus(t, server), t.Context()
		f.AddSubscriber(storetest.Alice, time.Hour, 3, "widgets")
		for _, key := range []string{"subscriber:", "topics:"} {
			require.NoError(t, f.Redis.Rename(ctx, key+"alice--1", "intact").Err())
			require.NoError(t, f.Redis.Set(ctx, key+"alice--1", "x", 0).Err())
			_, err := f.Detail(ctx, storetest.Alice, storetest.Start)
			require.ErrorContains(t, err, key)
			require.NotErrorIs(t, err, bus.ErrNotSubscribed)
			require.NotContains(t, err.Error(), "alice--1", "it may be logged")
			require.NoError(t, f.Redis.Rename(ctx, "intact", key+"alice--1").Err())
		}
	})
}

// TestDetailSaysWhenTheNextDeliveryIs follows a subscriber through all that may hold its batches
// up.
func TestDetailSaysWhenTheNextDeliveryIs(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f, ctx := storetest.NewBus(t, server), t.Context()
		next := func(now int) time.Time {
			detail, err := f.Detail(ctx, storetest.Alice, storetest.After(now))
			require.NoError(t, err)
			return detail.NextDeliveryAt
		}
		f.AddSubscriber(storetest.Alice, time.Second, 2, "widgets")
		assert.Zero(t, next(0), "nothing is queued")
		f.PublishEvents("widgets", 1, 1, 0)
		assert.Equal(t, storetest.After(1000), next(0), "the batch is not full")
		f.PublishEvents("widgets", 2, 3, 100)
		assert.Equal(t, storetest.After(200), next(200), "the first is")

		task := f.Take("w1", 200)
		assert.Equal(t, storetest.After(201), next(201), "it is in flight")
		f.PublishEvents("widgets", 4, 4, 300) // the second is full, and waits in the lane
		assert.Equal(t, storetest.After(301), next(301))
		f.Complete(task, storetest.Result{
			Failure: bus.EndpointFailure, RetryAt: storetest.After(600), ThrottledUntil: storetest.After(900),
		})
		assert.Equal(t, storetest.After(900), next(301), "it is throttled")
		f.MakeInstant(700)
		assert.Nil(t, f.Take("w1", 700))
		assert.Equal(t, storetest.After(900), next(700), "the head of the lane waits for that")
		require.NoError(t, f.Pause(ctx, storetest.Alice, bus.Forever))
		assert.Equal(t, bus.Forever, next(700))
		require.NoError(t, f.Resume(ctx, storetest.Alice))
		f.Redis.HSet(ctx, "delivery:alice--1", "paced_until", "1700000005000.25")
		assert.Equal(t, storetest.After(5001), next(700))
	})
}
