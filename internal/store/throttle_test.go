package store_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store"
	"routemaster/internal/store/storetest"
)

// failing returns a bus whose subscriber alice has three batches. The first has failed, so alice is
// throttled, and nothing comes up.
func failing(t *testing.T, server *rdbtest.Server) *storetest.Bus {
	t.Helper()
	f := storetest.NewBus(t, server)
	f.AddSubscriber(storetest.Alice, 0, 1, "widgets")
	f.PublishEvents("widgets", 1, 3, 0)
	f.Complete(f.Take("w1", 0), storetest.Result{
		Failure: bus.EndpointFailure, Health: -100, RetryAt: storetest.After(60_000), ThrottledUntil: storetest.After(60_000),
	})
	require.Nil(t, f.Take("w1", 1))
	return f
}

func TestAThrottledSubscriberIsTriedAtOnce(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := failing(t, server)
		require.NoError(t, store.EndThrottle(t.Context(), f.Store, storetest.Alice))
		f.RequireSound()
		task := f.Take("w1", 1)
		require.NotNil(t, task)
		assert.Equal(t, bus.Untried, task.Delivery.Standing, "that it is to be tried proves nothing")
		f.Complete(task, storetest.Result{
			Failure: bus.EndpointFailure, RetryAt: storetest.After(60_001), ThrottledUntil: storetest.After(60_001),
		})
		assert.Nil(t, f.Take("w1", 2), "one failure, and it is throttled again")

		require.NoError(t, store.EndThrottle(t.Context(), f.Store, storetest.Alice))
		f.Complete(f.Take("w1", 2), storetest.Result{Delivered: 1})
		for range 2 {
			task := f.Take("w1", 2)
			require.NotNil(t, task, "one success, and the others follow")
			f.Complete(task, storetest.Result{Delivered: 1})
		}
		f.RequireSound()
	})
}

func TestABatchThatHoldsUpItsLaneIsTriedAtOnce(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := storetest.NewBus(t, server)
		f.AddSubscriber(storetest.Alice, 0, 1, "widgets")
		f.SetOption(storetest.Alice, "strict_order", "true")
		f.PublishEvents("widgets", 1, 3, 0)
		f.Complete(f.Take("w1", 0), storetest.Result{
			Failure: bus.EndpointFailure, RetryAt: storetest.After(60_000), ThrottledUntil: storetest.After(60_000),
			Slice: &store.SliceResult{KeepTurn: true},
		})
		require.Nil(t, f.Take("w1", 1))
		require.NoError(t, store.EndThrottle(t.Context(), f.Store, storetest.Alice))
		assert.Equal(t, []int{1}, storetest.Numbers(t, f.Take("w1", 1)))
		f.RequireSound()
	})
}

func TestWhoIsNotTried(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		ctx := t.Context()
		f := failing(t, server)
		require.NoError(t, f.Pause(ctx, storetest.Alice, storetest.After(3_600_000)))
		require.NoError(t, store.EndThrottle(ctx, f.Store, storetest.Alice))
		assert.Nil(t, f.Take("w1", 1), "it is paused")

		f.AddSubscriber(storetest.Bob, time.Hour, 100, "gadgets")
		before := rdbtest.Dump(t, f.Redis)
		require.NoError(t, store.EndThrottle(ctx, f.Store, storetest.Bob), "it does not fail")
		require.ErrorIs(t, store.EndThrottle(ctx, f.Store, "nobody--1"), bus.ErrNotSubscribed)
		assert.Equal(t, before, rdbtest.Dump(t, f.Redis))

		f.Redis.Del(ctx, "delivery:alice--1")
		f.Redis.Set(ctx, "delivery:alice--1", "x", 0)
		require.ErrorContains(t, store.EndThrottle(ctx, f.Store, storetest.Alice), "WRONGTYPE")
	})
}
