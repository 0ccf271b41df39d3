package store_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store"
	"routemaster/internal/store/storetest"
)

// deliverAll delivers all instant batches and returns their number.
func (f *fixture) deliverAll() (delivered int) {
	f.T.Helper()
	for task := f.Take("w1", 0); task != nil; task = f.Take("w1", 0) {
		f.Complete(task, storetest.Done)
		delivered++
	}
	return delivered
}

func TestDropOldest(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		ctx := t.Context()
		f.AddSubscriber(storetest.Alice, time.Hour, 2, "widgets")
		f.AddSubscriber(storetest.Bob, 0, 1, "gadgets")
		f.PublishEvents("widgets", 1, 2, 0)   // full: instant, and then taken
		f.PublishEvents("gadgets", 3, 3, 1)   // instant
		f.PublishEvents("widgets", 4, 5, 2)   // instant, and then waits for its turn
		f.PublishEvents("widgets", 6, 6, 3)   // current: scheduled
		f.PublishEvents("gadgets", 7, 107, 4) // instant
		held := f.Take("w1", 5)
		require.Equal(t, []int{1, 2}, storetest.Numbers(t, held))
		require.Equal(t, []int{3}, storetest.Numbers(t, f.Take("w2", 5)))
		require.Nil(t, f.Take("w3", 6), "some of the others now wait for their turn")
		dropped, err := f.OldestBatches().Drop(ctx, storetest.Start, nil)
		require.NoError(t, err)
		require.Len(t, dropped, 100, "what one call drops at most")
		assert.Equal(t, []store.DroppedBatch{{storetest.Alice, 2}, {storetest.Alice, 1}, {storetest.Bob, 1}}, dropped[:3], "oldest first, but not what is being delivered")
		f.RequireSound()
		dropped, err = f.OldestBatches().Drop(ctx, storetest.Start, nil)
		require.NoError(t, err)
		assert.Equal(t, []store.DroppedBatch{{storetest.Bob, 1}, {storetest.Bob, 1}, {storetest.Bob, 1}}, dropped)
		dropped, err = f.OldestBatches().Drop(ctx, storetest.Start, nil)
		require.NoError(t, err)
		assert.Empty(t, dropped, "nothing but what is being delivered is left")
		f.RequireSound()
		assert.True(t, f.Complete(held, storetest.Result{Delivered: 2}))

		f.PublishEvents("widgets", 200, 200, 7)
		f.MakeInstant(int(2 * time.Hour / time.Millisecond))
		assert.Equal(t, []int{200}, storetest.Numbers(t, f.Take("w1", 8)), "all goes on")
		f.RequireSound()
	})
}

func TestDropOldestIsBoundedByEvents(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		f.AddSubscriber(storetest.Alice, time.Hour, 600, "widgets")
		f.PublishEvents("widgets", 1, 3000, 0)
		dropped, err := f.OldestBatches().Drop(t.Context(), storetest.Start, nil)
		require.NoError(t, err)
		assert.Equal(t, []store.DroppedBatch{{storetest.Alice, 600}, {storetest.Alice, 600}}, dropped)
		f.RequireSound()
	})
}

func TestDropOldestCleansTheIndexAndSparesDeepJobs(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		ctx := t.Context()
		require.NoError(t, f.Redis.ZAdd(ctx, "batches:index", redis.Z{Score: 1, Member: "gone"}).Err())
		f.AddSubscriber(storetest.Bob, 0, 1, "gadgets")
		f.PublishEvents("gadgets", 1, 1, 0)
		for i := range 2000 { // in front of the job of event 1
			_, err := f.Enqueue(ctx, bus.QueueMain, bus.Job{Name: "x", Args: []string{strconv.Itoa(i)}})
			require.NoError(t, err)
		}
		job := f.Redis.RPop(ctx, "jobs:instant:main").Val()
		require.NoError(t, f.Redis.LPush(ctx, "jobs:instant:main", job).Err())
		dropped, err := f.OldestBatches().Drop(ctx, storetest.Start, nil)
		require.NoError(t, err)
		assert.Equal(t, []store.DroppedBatch{{"", 0}, {storetest.Bob, 1}}, dropped)
		assert.Empty(t, f.Redis.Keys(ctx, "batch*").Val())
		assert.True(t, f.Redis.SIsMember(ctx, "jobs:index:main", job).Val(), "it goes when it comes up")
		for range 2000 {
			require.True(t, f.Complete(f.Take("w1", 1), storetest.Done))
		}
		assert.Nil(t, f.Take("w1", 1))
		f.RequireSound()
	})
}
