package store_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store"
	"routemaster/internal/store/storetest"
)

// TestARepeatedResultRemovesNothingMore: a throttled subscriber acknowledges a part of a batch. The
// step that notes it also wakes the batch; the reply is lost, so the worker repeats the step.
func TestARepeatedResultRemovesNothingMore(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newSliced(t, server, 10, map[string]string{"partial": "true", "strict_order": "true"})
		task := f.Take("w1", 0)
		require.True(t, f.Complete(task, storetest.Result{
			RetryAt: storetest.After(100), ThrottledUntil: storetest.After(100), Failure: bus.EndpointFailure,
			Slice: &store.SliceResult{KeepTurn: true},
		}))
		f.MakeInstant(100)
		task = f.Take("w1", 100)
		some := storetest.Result{
			RetryAt: storetest.After(200), Delivered: 2,
			Slice: &store.SliceResult{KeepTurn: true, Removed: store.Ranges{{First: 0, Last: 1}}},
		}
		for range 2 {
			_, next, err := f.CompleteAndAcquire(t.Context(), task, some, bus.Failing, storetest.After(100))
			require.NoError(t, err)
			require.NoError(t, next.Err)
			assert.EqualValues(t, 8, f.queued(storetest.Alice))
			f.RequireSound()
		}
		task = f.Take("w1", 200)
		require.NotNil(t, task)
		assert.Len(t, task.Delivery.Events, 8)
	})
}
