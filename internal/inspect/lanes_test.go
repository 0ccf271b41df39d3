package inspect_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/inspect"
	"routemaster/internal/overview"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store"
	"routemaster/internal/store/storetest"
)

// TestLanes follows a subscriber whose lanes become fewer while a batch in one that goes fails.
func TestLanes(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f, ctx := storetest.NewBus(t, server), t.Context()
		requireDetail := func(ms, next, blocked int) {
			t.Helper()
			detail, err := f.Detail(ctx, storetest.Alice, storetest.After(ms))
			require.NoError(t, err)
			require.Equal(t, storetest.After(next), detail.NextDeliveryAt)
			require.Equal(t, blocked, detail.Blocked)
		}
		requireLanes := func(want overview.Lanes) {
			t.Helper()
			snapshot, err := snapshotOf(ctx, f, storetest.Start)
			require.NoError(t, err)
			require.Equal(t, want, snapshot.backlogs[0].Lanes)
		}
		publish := func(lane, ms int) {
			number := f.NumberIn(storetest.Alice, "widgets", lane)
			f.PublishEvents("widgets", number, number, ms)
		}
		f.AddSubscriber(storetest.Alice, time.Second, 2, "widgets")
		f.SetOption(storetest.Alice, "lanes", "2")
		publish(1, 0)
		requireDetail(1, 1000, 0)
		publish(0, 100)
		requireDetail(101, 1000, 0)
		publish(0, 200)
		requireDetail(201, 201, 0) // one is full
		full := f.Take("w1", 201)
		requireDetail(202, 202, 0) // and in flight
		require.True(t, f.Complete(full, storetest.Done))
		requireDetail(203, 1000, 0)
		requireLanes(overview.Lanes{Count: 2})

		f.SetOption(storetest.Alice, "strict_order", "true")
		f.SetOption(storetest.Alice, "lanes", "1")
		requireDetail(204, 1000, 0)
		publish(0, 300)
		requireLanes(overview.Lanes{Count: 1, IsStrict: true})
		f.MakeInstant(1300)
		old, other := f.Take("w1", 1300), f.Take("w2", 1300)
		batches, _, err := f.Inspector.Batches(ctx, storetest.Alice, inspect.Page{Limit: 10}, storetest.After(1300))
		require.NoError(t, err)
		require.Len(t, batches, 2)
		assert.Equal(t, []int{1, 0}, []int{batches[0].Lane, batches[1].Lane}, "the first is in the lane that is no more")
		require.True(t, f.Complete(old, storetest.Result{
			RetryAt: storetest.After(5000), Failure: bus.BatchFailure, Slice: &store.SliceResult{KeepTurn: true},
		}))
		require.True(t, f.Complete(other, storetest.Done))
		requireDetail(2000, 5000, 1)
		requireLanes(overview.Lanes{Count: 1, IsStrict: true, Blocked: 1})

		f.MakeInstant(5000)
		require.True(t, f.Complete(f.Take("w1", 5000), storetest.Done))
		requireLanes(overview.Lanes{Count: 1, IsStrict: true})
		f.RequireSound()
	})
}
