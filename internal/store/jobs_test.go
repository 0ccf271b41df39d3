package store_test

import (
	"context"
	"encoding/hex"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store/storetest"
)

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
		task, err := f.Acquire(ctx, bus.QueueAux, "w1", bus.Failing, storetest.Start)
		require.NoError(t, err)
		assert.Equal(t, job, task.Job)
		assert.Nil(t, task.Delivery)
		assert.False(t, enqueue(), "pending")
		f.Complete(task, storetest.Result{RetryAt: storetest.After(10)})
		assert.False(t, enqueue(), "scheduled")
		f.RequireSound()
		moved, err := f.Schedule(ctx, bus.QueueAux, storetest.After(10), 10)
		require.NoError(t, err)
		assert.Equal(t, 1, moved)
		task, err = f.Acquire(ctx, bus.QueueAux, "w1", bus.Failing, storetest.Start)
		require.NoError(t, err)
		f.Complete(task, storetest.Done)
		assert.True(t, enqueue())
		f.RequireSound()
	})
}

func TestScheduleIsBounded(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		f.AddSubscriber(storetest.Alice, time.Second, 2, "widgets")
		f.AddSubscriber(storetest.Bob, time.Second, 2, "widgets")
		f.PublishEvents("widgets", 1, 1, 0)
		due, err := f.Due(t.Context(), bus.QueueMain, storetest.After(999))
		require.NoError(t, err)
		assert.Zero(t, due)
		due, err = f.Due(t.Context(), bus.QueueMain, storetest.After(1000))
		require.NoError(t, err)
		assert.Equal(t, int64(2), due)
		moved, err := f.Schedule(t.Context(), bus.QueueMain, storetest.After(5000), 1)
		require.NoError(t, err)
		assert.Equal(t, 1, moved)
		f.RequireSound()
	})
}

func TestWaiter(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		f.AddSubscriber(storetest.Alice, 0, 1, "widgets")
		waiter := f.NewWaiter(bus.QueueMain, time.Minute)
		defer waiter.Close()
		require.NoError(t, waiter.Wait(t.Context(), 10*time.Millisecond), "a wait in vain is no error")

		returned := make(chan error)
		go func() { returned <- waiter.Wait(t.Context(), time.Minute) }()
		f.PublishEvents("widgets", 1, 1, 0)
		require.NoError(t, <-returned)
		before := rdbtest.Dump(t, f.Redis)
		require.NoError(t, waiter.Wait(t.Context(), time.Minute), "it is still there")
		assert.Equal(t, before, rdbtest.Dump(t, f.Redis), "waiting takes nothing")
		assert.Equal(t, []int{1}, storetest.Numbers(t, f.Take("w1", 0)))

		ctx, cancel := context.WithCancel(t.Context())
		go func() { returned <- waiter.Wait(ctx, time.Minute) }()
		cancel()
		require.ErrorIs(t, <-returned, context.Canceled)
	})
}
