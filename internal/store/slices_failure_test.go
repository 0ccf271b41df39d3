package store_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/queue"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store"
	"routemaster/internal/store/storetest"
)

func TestAResultOfTooManyValuesLeavesTheBatchToItsWorker(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newSliced(t, server, 2000, map[string]string{"partial": "true", "dead_letters": "{}"})
		task := f.Take("w1", 0)
		var letters []store.DeadLetter
		for i := range 2000 {
			letters = append(letters, store.DeadLetter{ID: bus.NewBatchID(), Events: store.Ranges{{First: i, Last: i}}})
		}
		_, err := f.CompleteAt(t.Context(), task, storetest.Result{Works: true, Slice: &store.SliceResult{Letters: letters}}, storetest.Start)
		require.Error(t, err)
		f.RequireSound()
		f.complete(task, storetest.Result{Delivered: 2000}, 1)
		assert.Zero(t, f.queued(storetest.Alice))
	})
}

func TestATestEventWhosePlanCannotBeReadStaysOne(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		f.AddSubscriber(storetest.Alice, time.Hour, 100, "widgets")
		_, err := f.TestEvent(t.Context(), storetest.Alice, storetest.Start)
		require.NoError(t, err)
		task := f.Take("w1", 0)
		require.True(t, task.Delivery.Plan.Test)
		_, err = f.Queue.Complete(t.Context(), task.Task, queue.Result{RetryAt: storetest.After(1000)}, storetest.After(1))
		require.NoError(t, err)
		f.MakeInstant(1000)
		task = f.Take("w1", 1000)
		require.NotNil(t, task.Delivery.Plan)
		assert.True(t, task.Delivery.Plan.Test)
	})
}

func TestUnusedPaceMakesNoStateOfASubscriberThatIsGone(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newSliced(t, server, 100, map[string]string{"max_bytes": "2000", "max_events_per_minute": "60"})
		task := f.Take("w1", 0)
		require.NoError(t, f.DeleteSubscriber(t.Context(), storetest.Alice))
		_, err := f.CompleteAt(t.Context(), task, storetest.Result{RetryAt: storetest.After(1), Delivered: 20, Slice: &store.SliceResult{KeepTurn: true, UnusedPace: 30 * time.Second, Removed: store.Ranges{{First: 0, Last: 19}}}}, storetest.After(1))
		require.NoError(t, err)
		assert.Zero(t, f.Redis.Exists(t.Context(), "delivery:"+string(storetest.Alice)).Val())
	})
}

// TestStrictOrderHasOneInFlight also where the operator allows more.
func TestStrictOrderHasOneInFlight(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixtureInFlight(t, server, 2)
		f.AddSubscriber(storetest.Alice, 0, 1, "widgets")
		f.setOptions(storetest.Alice, map[string]string{"strict_order": "true"})
		f.PublishEvents("widgets", 1, 4, 0)
		first := f.Take("w1", 0)
		assert.Nil(t, f.Take("w2", 0))
		f.complete(first, storetest.Result{
			RetryAt: storetest.After(30_000), Failure: bus.BatchFailure, Slice: &store.SliceResult{KeepTurn: true},
		}, 1)
		f.PublishEvents("widgets", 5, 5, 2)
		f.MakeInstant(29_999)
		assert.Nil(t, f.Take("w2", 29_999), "it waits for its time, and the others for it")
		f.MakeInstant(30_000)
		for want := 1; want <= 5; want++ {
			task := f.Take("w1", 30_000)
			require.Equal(t, []int{want}, storetest.Numbers(t, task))
			assert.Nil(t, f.Take("w2", 30_000))
			owned, next, err := f.CompleteAndAcquire(
				t.Context(), task, storetest.Result{Delivered: 1}, bus.Failing, storetest.After(30_000))
			require.NoError(t, err)
			require.True(t, owned)
			if want++; want <= 5 {
				require.Equal(t, []int{want}, storetest.Numbers(t, next.Task))
				f.complete(next.Task, storetest.Result{Delivered: 1}, 30_000)
			}
		}
		f.RequireSound()
	})
}
