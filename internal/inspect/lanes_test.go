package inspect_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/inspect"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store"
	"routemaster/internal/store/storetest"
)

// TestLanes follows a subscriber whose lanes are changed while a batch of the old ones fails.
func TestLanes(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f, ctx := storetest.NewBus(t, server), t.Context()
		requireDetail := func(ms, next, fence, blocked int) {
			t.Helper()
			detail, err := f.Detail(ctx, storetest.Alice, storetest.After(ms))
			require.NoError(t, err)
			require.Equal(t, storetest.After(next), detail.NextDeliveryAt)
			require.EqualValues(t, fence, detail.Fence)
			require.Equal(t, blocked, detail.Blocked)
		}
		requireLanes := func(want inspect.Lanes) {
			t.Helper()
			snapshot, err := f.Snapshot(ctx, storetest.Start)
			require.NoError(t, err)
			require.Equal(t, want, snapshot.Backlogs[0].Lanes)
		}
		publish := func(lane, ms int) {
			number := f.NumberIn(storetest.Alice, "widgets", lane)
			f.PublishEvents("widgets", number, number, ms)
		}
		f.AddSubscriber(storetest.Alice, time.Second, 2, "widgets")
		f.SetOption(storetest.Alice, "lanes", "2")
		publish(1, 0)
		requireDetail(1, 1000, 0, 0)
		publish(0, 100)
		requireDetail(101, 1000, 0, 0)
		publish(0, 200)
		requireDetail(201, 201, 0, 0) // one is full
		full := f.Take("w1", 201)
		requireDetail(202, 202, 0, 0) // and in flight
		require.True(t, f.Complete(full, storetest.Done))
		requireDetail(203, 1000, 0, 0)
		requireLanes(inspect.Lanes{Count: 2})

		f.SetOption(storetest.Alice, "strict_order", "true")
		f.SetOption(storetest.Alice, "lanes", "3")
		requireDetail(204, 204, 1, 0) // nothing joins the batch any more
		publish(2, 300)
		requireLanes(inspect.Lanes{Count: 3, Fence: 1, IsStrict: true})
		old := f.Take("w1", 301)
		require.True(t, f.Complete(old, storetest.Result{
			RetryAt: storetest.After(5000), Failure: bus.BatchFailure, Slice: &store.SliceResult{KeepTurn: true},
		}))
		f.MakeInstant(2000)
		require.Nil(t, f.Take("w1", 2000), "the new lanes wait for the old")
		requireDetail(2000, 5000, 1, 1)
		requireLanes(inspect.Lanes{Count: 3, Fence: 1, IsStrict: true, Blocked: 1})

		f.MakeInstant(5000)
		require.True(t, f.Complete(f.Take("w1", 5000), storetest.Done))
		requireDetail(5001, 5001, 0, 0)
		requireLanes(inspect.Lanes{Count: 3, IsStrict: true})
		assert.NotNil(t, f.Take("w1", 5001))
		f.RequireSound()
	})
}
