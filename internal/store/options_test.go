package store_test

import (
	"fmt"
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

func TestOptionsAreRead(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f, ctx := newFixture(t, server), t.Context()
		record, err := f.Options(ctx, storetest.Alice)
		require.NoError(t, err)
		assert.Equal(t, store.OptionsRecord{}, record)

		f.Redis.HSet(ctx, "options:alice--1", "plan", "abcdefgh", "secrets", "[1]", "partial", "true", "max_bytes", "x")
		record, err = f.Options(ctx, storetest.Alice)
		require.NoError(t, err)
		require.Error(t, record.Unreadable)
		record.Unreadable = nil
		assert.Equal(t, store.OptionsRecord{Version: "abcdefgh", Secrets: "[1]", Options: bus.Options{Partial: true}}, record)

		f.Redis.Del(ctx, "options:alice--1")
		f.Redis.Set(ctx, "options:alice--1", "x", 0)
		_, err = f.Options(ctx, storetest.Alice)
		require.ErrorContains(t, err, "WRONGTYPE", "it may have secrets: nothing may be delivered without")
	})
}

// patch changes options of a client.
func (f *fixture) patch(token bus.Token, options map[string]string) {
	f.T.Helper()
	require.NoError(f.T, f.PatchSubscriber(f.T.Context(), token, bus.Subscription{Options: options}, storetest.Start))
	f.RequireSound()
}

func TestOptionsAreChanged(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f, ctx := newFixture(t, server), t.Context()
		f.AddSubscriber(storetest.Alice, time.Hour, 3, "widgets")
		untouched := rdbtest.Dump(t, f.Redis)
		plan := func() string {
			record, err := f.Options(ctx, storetest.Alice)
			require.NoError(t, err)
			assert.Equal(t, record.Version, f.Redis.HGet(ctx, "delivery:alice--1", "plan").Val())
			return record.Version
		}

		f.patch(storetest.Alice, map[string]string{"partial": "true", "max_bytes": "4096"})
		first := plan()
		assert.Len(t, first, 8)
		f.patch(storetest.Alice, map[string]string{"partial": "true"})
		assert.Equal(t, first, plan(), "nothing has changed")
		require.NoError(t, f.Subscribe(ctx, storetest.Alice, bus.Subscription{
			Topics: []bus.TopicName{"widgets"}, Callback: "https://alice--1.example/events",
			Options: map[string]string{"max_bytes": "", "strict_order": "true"},
		}, storetest.Start))
		assert.NotEqual(t, first, plan())
		record, err := f.Options(ctx, storetest.Alice)
		require.NoError(t, err)
		assert.Equal(t, bus.Options{Partial: true, StrictOrder: true}, record.Options, "what is left out stays")
		assert.Equal(t, map[string]string{"partial": "true", "strict_order": "true", "plan": record.Version},
			f.Redis.HGetAll(ctx, "options:alice--1").Val())

		f.patch(storetest.Alice, map[string]string{"partial": "", "strict_order": "", "max_bytes": ""})
		assert.Equal(t, untouched, rdbtest.Dump(t, f.Redis), "there is nothing left of them")
	})
}

func TestASubscriptionIsPatched(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f, ctx := newFixture(t, server), t.Context()
		require.ErrorIs(t, f.PatchSubscriber(ctx, "nobody", bus.Subscription{}, storetest.Start), bus.ErrTokenUnknown)
		require.ErrorIs(t, f.PatchSubscriber(ctx, storetest.Alice, bus.Subscription{}, storetest.Start), bus.ErrNotSubscribed)
		f.AddSubscriber(storetest.Alice, time.Hour, 3, "widgets")
		before := rdbtest.Dump(t, f.Redis)
		f.patch(storetest.Alice, nil)
		assert.Equal(t, before, rdbtest.Dump(t, f.Redis))

		f.PublishEvents("widgets", 1, 2, 0)
		maxEvents := 2
		require.NoError(t, f.PatchSubscriber(ctx, storetest.Alice, bus.Subscription{MaxEvents: &maxEvents}, storetest.Start))
		f.RequireSound()
		assert.Equal(t, []int{1, 2}, storetest.Numbers(t, f.Take("w1", 0)), "its batch has become full")
		require.NoError(t, f.PatchSubscriber(ctx, storetest.Alice, bus.Subscription{Topics: []bus.TopicName{"gadgets"}}, storetest.Start))
		require.NoError(t, f.PatchSubscriber(ctx, storetest.Alice, bus.Subscription{Callback: "https://new.example/"}, storetest.Start))
		f.RequireSound()
		subscribers, _, err := storetest.Subscribers(ctx, f.Inspector)
		require.NoError(t, err)
		assert.Equal(t, []bus.TopicName{"gadgets"}, subscribers[0].Topics)
		assert.Equal(t, "https://new.example/", subscribers[0].Callback)
		assert.Equal(t, "uuid-of-alice--1", subscribers[0].UUID)
		assert.Equal(t, time.Hour, subscribers[0].Timeout)

		f.Redis.Set(ctx, "options:alice--1", "x", 0)
		before = rdbtest.Dump(t, f.Redis)
		err = f.PatchSubscriber(ctx, storetest.Alice, bus.Subscription{
			Callback: "https://other.example/", Options: map[string]string{"partial": "true"},
		}, storetest.Start)
		require.ErrorContains(t, err, "WRONGTYPE")
		assert.Equal(t, before, rdbtest.Dump(t, f.Redis))
	})
}

// TestAChangeOfWhatMayBeAtFaultIsTriedAtOnce changes a throttled subscriber: changes of how the bus
// reaches it end the throttle, others do not.
func TestAChangeOfWhatMayBeAtFaultIsTriedAtOnce(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		f.AddSubscriber(storetest.Alice, 0, 1, "widgets")
		f.PublishEvents("widgets", 1, 1, 0)
		task, uuid, hour := f.Take("w1", 0), "another", time.Hour
		change := func(sub bus.Subscription) *storetest.Task {
			f.fail(task, bus.EndpointFailure, 0, 60_000, 60_000)
			require.NoError(t, f.PatchSubscriber(t.Context(), storetest.Alice, sub, storetest.Start))
			return f.Take("w1", 1)
		}
		task = change(bus.Subscription{Callback: "https://new.example/"})
		assert.Equal(t, "https://new.example/", task.Delivery.Callback)
		task = change(bus.Subscription{UUID: &uuid})
		assert.Equal(t, "another", task.Delivery.UUID)
		task = change(bus.Subscription{Options: map[string]string{"max_bytes": "2000"}})
		require.NotNil(t, task)
		assert.Nil(t, change(bus.Subscription{Timeout: &hour, Options: map[string]string{"log_attempts": `"none"`}}))
		f.RequireSound()
	})
}

// TestARefusedBatchIsTriedAtOnceWhenItsSubscriberChanges refuses a batch while others succeed: its
// subscriber is not throttled.
func TestARefusedBatchIsTriedAtOnceWhenItsSubscriberChanges(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		f.AddSubscriber(storetest.Alice, 0, 1, "widgets")
		f.PublishEvents("widgets", 1, 2, 0)
		f.fail(f.Take("w1", 0), bus.BatchFailure, 0, 60_000, 0)
		f.succeed(f.Take("w1", 0), 0)
		require.Nil(t, f.Take("w1", 1))
		f.patch(storetest.Alice, map[string]string{"max_bytes": "2000"})
		assert.Equal(t, []int{1}, storetest.Numbers(t, f.Take("w1", 1)))
		f.RequireSound()
	})
}

// TestWhatWasSentBeforeAChangeThrottlesNothing corrects the callback of a failing subscriber while
// deliveries to the old one are in flight: their failure does not count for the new one.
func TestWhatWasSentBeforeAChangeThrottlesNothing(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixtureInFlight(t, server, 2)
		f.AddSubscriber(storetest.Alice, 0, 1, "widgets")
		f.PublishEvents("widgets", 1, 3, 0)
		f.fail(f.Take("w1", 0), bus.EndpointFailure, 0, 0, 0)
		first, second := f.Take("w1", 0), f.Take("w2", 0)
		f.AddSubscriber(storetest.Alice, 0, 1, "widgets")
		before := f.Redis.HGet(t.Context(), "subscriber:alice--1", "health_points").Val()
		f.fail(first, bus.EndpointFailure, 20_000, 60_000, 60_000)
		assert.Equal(t, before, f.Redis.HGet(t.Context(), "subscriber:alice--1", "health_points").Val())
		third := f.Take("w1", 20_000)
		require.NotNil(t, third)
		f.succeed(third, 20_000)
		f.fail(second, bus.EndpointFailure, 20_000, 60_000, 60_000)
		third = f.Take("w1", 20_000)
		require.NotNil(t, third, "though another has succeeded meanwhile")
		f.fail(third, bus.EndpointFailure, 20_000, 60_000, 60_000)
		assert.Nil(t, f.Take("w1", 20_000), "this was sent afterwards")
		assert.False(t, f.Redis.HExists(t.Context(), "delivery:alice--1", "overtaken").Val())
		f.RequireSound()
	})
}

// TestWhatWasTriedAfterAChangeThrottles: a batch that was in flight when its subscriber was to be
// tried succeeds in part, and then fails.
func TestWhatWasTriedAfterAChangeThrottles(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newSliced(t, server, 10, map[string]string{"partial": "true"})
		task := f.Take("w1", 0)
		f.Redis.HSet(t.Context(), "delivery:alice--1", "throttled_until", storetest.After(60_000).UnixMilli())
		f.AddSubscriber(storetest.Alice, 0, 10, "widgets")
		f.complete(task, storetest.Result{
			RetryAt: storetest.After(1), Delivered: 5, Works: true,
			Slice: &store.SliceResult{KeepTurn: true, Removed: store.Ranges{{First: 0, Last: 4}}},
		}, 1)
		f.fail(f.dueAt(1), bus.EndpointFailure, 2, 60_000, 60_000)
		assert.Equal(t, fmt.Sprint(storetest.After(60_002).UnixMilli()), f.Redis.HGet(t.Context(), "delivery:alice--1", "throttled_until").Val())
		assert.Nil(t, f.dueAt(3))
		f.RequireSound()
	})
}

func TestAPauseIsNoted(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f, ctx := newFixture(t, server), t.Context()
		require.ErrorIs(t, f.Pause(ctx, storetest.Alice, bus.Forever), bus.ErrNotSubscribed)
		require.ErrorIs(t, f.Resume(ctx, storetest.Alice), bus.ErrNotSubscribed)
		f.AddSubscriber(storetest.Alice, 0, 1, "widgets")
		before := rdbtest.Dump(t, f.Redis)
		require.NoError(t, f.Resume(ctx, storetest.Alice), "it was not paused")
		require.NoError(t, f.Pause(ctx, storetest.Alice, bus.Forever))
		f.AddSubscriber(storetest.Alice, 0, 1, "widgets")
		assert.Equal(t, "253402300799999", f.Redis.HGet(ctx, "delivery:alice--1", "paused_until").Val(),
			"to subscribe again is not to resume")
		f.RequireSound()
		require.NoError(t, f.Resume(ctx, storetest.Alice))
		assert.Equal(t, before, rdbtest.Dump(t, f.Redis))
	})
}

func TestATestEventIsQueued(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f, ctx := newFixture(t, server), t.Context()
		_, err := f.TestEvent(ctx, storetest.Alice, storetest.Start)
		require.ErrorIs(t, err, bus.ErrNotSubscribed)
		f.AddSubscriber(storetest.Alice, time.Hour, 3, "widgets", "gadgets")
		f.PublishEvents("widgets", 1, 1, 0)
		bid, err := f.TestEvent(ctx, storetest.Alice, storetest.After(1))
		require.NoError(t, err)
		f.RequireSound()
		_, err = f.TestEvent(ctx, storetest.Alice, storetest.After(2))
		require.ErrorIs(t, err, bus.ErrTestWaits)
		f.PublishEvents("widgets", 2, 2, 0)

		assert.Equal(t, map[string]string{"test": "1"}, f.Redis.HGetAll(ctx, "batches:state:"+string(bid)).Val())
		assert.Equal(t, string(bid), f.Redis.HGet(ctx, "delivery:alice--1", "test").Val())
		assert.Len(t, f.Redis.HGet(ctx, "delivery:alice--1", "plan").Val(), 8)
		task := f.Take("w1", 3)
		require.NotNil(t, task)
		assert.Equal(t, bid, task.Delivery.Batch)
		require.Len(t, task.Delivery.Events, 1)
		json, err := wire.AppendEventJSON(nil, task.Delivery.Events[0])
		require.NoError(t, err)
		assert.JSONEq(t, fmt.Sprintf(
			`{"topic":"gadgets","type":"noop","url":"https://routemaster.invalid/test","t":%d,"data":{"test":true}}`,
			storetest.After(1).UnixMilli()), string(json))

		f.Redis.Del(ctx, "batch:"+string(bid)) // as if the bus had dropped it
		_, err = f.TestEvent(ctx, storetest.Alice, storetest.After(4))
		require.NoError(t, err)
	})
}

// TestATestEventGoesWithTheSubscriber lets a subscriber come back before its test event is taken,
// and go while one is in flight.
func TestATestEventGoesWithTheSubscriber(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f, ctx := newFixture(t, server), t.Context()
		f.AddSubscriber(storetest.Alice, time.Hour, 3, "widgets")
		_, err := f.TestEvent(ctx, storetest.Alice, storetest.After(1))
		require.NoError(t, err)
		require.NoError(t, f.DeleteSubscriber(ctx, storetest.Alice))
		f.RequireSound()
		f.AddSubscriber(storetest.Alice, time.Hour, 3, "widgets")
		require.Nil(t, f.Take("w1", 3))

		_, err = f.TestEvent(ctx, storetest.Alice, storetest.After(4))
		require.NoError(t, err)
		require.NotNil(t, f.Take("w1", 5))
		require.NoError(t, f.DeleteSubscriber(ctx, storetest.Alice))
		f.RequireSound()
	})
}

// TestOptionsGoWithTheSubscriber also has a token rotated in between.
func TestOptionsGoWithTheSubscriber(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f, ctx := newFixture(t, server), t.Context()
		f.AddSubscriber(storetest.Alice, time.Hour, 3, "widgets")
		f.patch(storetest.Alice, map[string]string{"partial": "true"})
		f.Redis.LPush(ctx, "attempts:alice--1", "x")
		_, _, err := f.RotateToken(ctx, storetest.Alice, "alice--2")
		require.NoError(t, err)
		f.RequireSound()
		f.patch(storetest.Alice, map[string]string{"max_bytes": "4096"}) // by the old token
		record, err := f.Options(ctx, "alice--2")
		require.NoError(t, err)
		assert.Equal(t, bus.Options{Partial: true, MaxBytes: 4096}, record.Options)
		assert.Equal(t, []string{"x"}, f.Redis.LRange(ctx, "attempts:alice--2", 0, -1).Val())
		require.NoError(t, f.DeleteSubscriber(ctx, storetest.Alice))
		f.RequireSound()
		for key := range rdbtest.Dump(t, f.Redis) {
			assert.NotContains(t, key, "alice")
		}
	})
}
