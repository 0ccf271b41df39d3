package doctor_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/queue"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store/storetest"
)

// sinceStart is the real time, in ms after start: long delays are judged by it.
func sinceStart() int { return int(time.Since(start).Milliseconds()) }

// TestALaneThatNobodyWakesIsWoken leaves the head of a lane waiting without a wake-up.
func TestALaneThatNobodyWakesIsWoken(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		now := sinceStart()
		f.AddSubscriber(alice, 0, 1, "widgets")
		f.PublishEvents("widgets", 1, 3, now)
		first := f.Take("w1", now)
		require.Nil(t, f.Take("w2", now), "the others wait for their turn")
		assert.Empty(t, f.examine(true))
		require.NoError(t, f.Redis.ZRem(t.Context(), "jobs:lane:batch:"+string(alice), job(string(first.Delivery.Batch))).Err())
		f.Complete(first, storetest.Done)
		require.Nil(t, f.Take("w1", now))

		second := batchOf(t, f.Redis.ZRange(t.Context(), "jobs:lane:batch:"+string(alice), 0, 0).Val()[0])
		found := []string{"jobs:lane:batch:alice: begins with " + second + ", which waits for its turn, though nobody is before it [woken]"}
		before := dump(t, f.Redis)
		assert.Equal(t, found, f.examine(false))
		assert.Equal(t, before, dump(t, f.Redis), "looking changes nothing")
		assert.Equal(t, found, f.examine(true))
		assert.Empty(t, f.examine(true))
		for _, n := range []int{2, 3} {
			task := f.Take("w1", now)
			assert.Equal(t, []int{n}, numbers(t, task))
			f.Complete(task, storetest.Done)
		}
		f.RequireSound()
	})
}

// TestALaneThatStandsForAReasonIsNotWoken looks at whatever else the first of a lane may wait for.
func TestALaneThatStandsForAReasonIsNotWoken(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		now := sinceStart()
		f.AddSubscriber(alice, 0, 1, "widgets")
		f.PublishEvents("widgets", 1, 3, now)
		first := f.Take("w1", now)
		require.Nil(t, f.Take("w2", now))
		head := func() string {
			return batchOf(t, f.Redis.ZRange(t.Context(), "jobs:lane:batch:"+string(alice), 0, 0).Val()[0])
		}
		deadline := func() time.Time {
			return time.UnixMilli(int64(f.Redis.ZScore(t.Context(), "jobs:scheduled:main", job(head())).Val()))
		}
		look := func(why string) {
			t.Helper()
			before := dump(t, f.Redis)
			assert.Empty(t, f.examine(true), why)
			assert.Equal(t, before, dump(t, f.Redis), why)
		}
		look("it is being delivered")

		failed := string(first.Delivery.Batch)
		const hour = 3_600_000
		f.Complete(first, storetest.Result{RetryAt: after(now + 2*hour), ThrottledUntil: after(now + hour), Health: -1})
		require.NotEqual(t, failed, head())
		look("it is woken")
		require.Nil(t, f.Take("w1", now))
		require.Equal(t, queue.TurnDeadline(after(now)), deadline().UnixMilli(), "it is looked at now and then")
		look("its subscriber is throttled")

		f.AddSubscriber(alice, 0, 1, "widgets") // which ends that
		look("it is woken again")
		subscriber := "subscriber:" + string(alice)
		require.NoError(t, f.Redis.Rename(t.Context(), subscriber, "aside").Err())
		require.NoError(t, f.Redis.Set(t.Context(), subscriber, "x", 0).Err())
		_, err := f.Acquire(t.Context(), bus.QueueMain, "w1", bus.Failing, after(now))
		require.ErrorIs(t, err, bus.ErrPoisoned)
		require.NoError(t, f.Redis.Rename(t.Context(), "aside", subscriber).Err())
		require.Equal(t, after(now+60_000), deadline())
		look("it met something damaged, and comes up again a minute later")

		f.SetOption(alice, "lanes", "2")
		f.Redis.ZAdd(t.Context(), "jobs:scheduled:main", redis.Z{Score: float64(queue.TurnDeadline(after(now))), Member: job(head())})
		require.Len(t, f.examine(false), 1)
		f.Redis.HSet(t.Context(), "options:"+string(alice), "older", "/1/3")
		look("it waits for older lanes of an earlier release")
	})
}
