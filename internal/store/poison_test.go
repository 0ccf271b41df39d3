package store_test

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/rdb"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store"
	"routemaster/internal/store/storetest"
)

// How another program corrupts a subscriber's data.
var poisons = []struct {
	name   string
	poison func(*testing.T, rdb.Commands)
}{
	{"an event gauge that is no number", func(t *testing.T, raw rdb.Commands) {
		require.NoError(t, raw.HSet(t.Context(), "batches:gauges:event", string(storetest.Bob), "abc").Err())
	}},
	{"a batch gauge that is no number", func(t *testing.T, raw rdb.Commands) {
		require.NoError(t, raw.HSet(t.Context(), "batches:gauges:batch", string(storetest.Bob), "1.5").Err())
	}},
	{"current is no set", func(t *testing.T, raw rdb.Commands) {
		require.NoError(t, raw.Set(t.Context(), "batches:current:"+string(storetest.Bob), "x", 0).Err())
	}},
	{"the lane is no sorted set", func(t *testing.T, raw rdb.Commands) {
		require.NoError(t, raw.Set(t.Context(), "jobs:lane:batch:"+string(storetest.Bob), "x", 0).Err())
	}},
	{"the subscriber is no hash", func(t *testing.T, raw rdb.Commands) {
		require.NoError(t, raw.Set(t.Context(), "subscriber:"+string(storetest.Bob), "x", 0).Err())
	}},
	{"a current batch that is no list", func(t *testing.T, raw rdb.Commands) {
		require.NoError(t, raw.SAdd(t.Context(), "batches:current:"+string(storetest.Bob), "ABCDEFGHIJKLMNOPQRST").Err())
		require.NoError(t, raw.Set(t.Context(), "batch:ABCDEFGHIJKLMNOPQRST", "x", 0).Err())
	}},
}

// TestAPoisonedSubscriberHarmsNobodyElse publishes to two subscribers and delivers, while the data
// of one has been tampered with: before the publish, and between publish and delivery.
func TestAPoisonedSubscriberHarmsNobodyElse(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		for _, c := range poisons {
			for _, early := range []bool{true, false} {
				require.NoError(t, server.Raw.FlushAll(t.Context()).Err())
				f := newFixture(t, server)
				f.AddSubscriber(storetest.Alice, 0, 3, "widgets")
				f.AddSubscriber(storetest.Bob, 0, 3, "widgets")
				if early {
					c.poison(t, f.Redis)
				}
				f.PublishEvents("widgets", 1, 4, 0)
				f.PublishEvents("widgets", 5, 5, 0)
				if !early {
					c.poison(t, f.Redis)
				}
				delivered := map[bus.Token]int{}
				for tries := 0; tries < 20; tries++ {
					task, err := f.Acquire(t.Context(), bus.QueueMain, "w1", bus.Failing, storetest.After(1))
					if err != nil {
						require.ErrorIs(t, err, bus.ErrPoisoned, c.name)
						continue
					}
					if task == nil {
						break
					}
					delivered[task.Delivery.Subscriber] += len(task.Delivery.Events)
					require.True(t, f.Complete(task, storetest.Result{Health: 1, Delivered: 1}), c.name)
				}
				assert.Equal(t, 5, delivered[storetest.Alice], "%s, early: %v", c.name, early)
				if bobs := delivered[storetest.Bob]; bobs != 5 {
					assert.True(t, strings.Contains(c.name, "lane") || strings.Contains(c.name, "hash"), "%s, early: %v: bob got %d", c.name, early, bobs)
				}
				assert.Nil(t, f.Take("w2", 1), "nothing is stuck")
			}
		}
	})
}

// TestAPoisonedGaugeHindersNoPublish publishes to a subscriber that is being served and has a
// corrupt gauge.
func TestAPoisonedGaugeHindersNoPublish(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		for _, whole := range []bool{true, false} {
			require.NoError(t, server.Raw.FlushAll(t.Context()).Err())
			f := newFixture(t, server)
			f.AddSubscriber(storetest.Alice, 0, 2, "widgets")
			f.PublishEvents("widgets", 1, 1, 0)
			first := f.Take("w1", 0)
			if whole {
				require.NoError(t, f.Redis.Del(t.Context(), "batches:gauges:batch").Err())
				require.NoError(t, f.Redis.Set(t.Context(), "batches:gauges:batch", "x", 0).Err())
			} else {
				require.NoError(t, f.Redis.HSet(t.Context(), "batches:gauges:batch", string(storetest.Alice), "x").Err())
			}
			f.PublishEvents("widgets", 2, 7, 1)
			f.Complete(first, storetest.Done)
			var got []int // in any order: that depends on the gauge
			for task := f.Take("w1", 1); task != nil; task = f.Take("w1", 1) {
				got = append(got, storetest.Numbers(t, task)...)
				f.Complete(task, storetest.Done)
			}
			assert.ElementsMatch(t, []int{2, 3, 4, 5, 6, 7}, got)
		}
	})
}

func TestAPoisonedJobIsPutOffAndReported(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		ctx := t.Context()
		f.AddSubscriber(storetest.Alice, 0, 1, "widgets")
		f.PublishEvents("widgets", 1, 1, 0)
		require.NoError(t, f.Redis.Set(ctx, "jobs:lane:batch:"+string(storetest.Alice), "x", 0).Err())
		_, err := f.Acquire(ctx, bus.QueueMain, "w1", bus.Failing, storetest.After(1))
		require.ErrorIs(t, err, bus.ErrPoisoned)
		assert.ErrorContains(t, err, "WRONGTYPE")
		assert.NotContains(t, err.Error(), string(storetest.Alice))
		assert.Nil(t, f.Take("w1", 1))
		require.NoError(t, f.Redis.Del(ctx, "jobs:lane:batch:"+string(storetest.Alice)).Err())
		assert.Zero(t, f.MakeInstant(59_000))
		assert.Equal(t, 1, f.MakeInstant(61_000), "it comes up again a minute later")
		assert.Equal(t, []int{1}, storetest.Numbers(t, f.Take("w1", 61_000)))
		f.RequireSound()
	})
}

func TestAPoisonedSubscriberCanBeDeleted(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		for _, key := range []string{"subscriber:", "jobs:lane:batch:"} {
			require.NoError(t, server.Raw.FlushAll(t.Context()).Err())
			f := newFixture(t, server)
			f.AddSubscriber(storetest.Alice, 0, 1, "widgets")
			require.NoError(t, f.Redis.Del(t.Context(), key+string(storetest.Alice)).Err())
			require.NoError(t, f.Redis.Set(t.Context(), key+string(storetest.Alice), "x", 0).Err())
			require.NoError(t, f.DeleteSubscriber(t.Context(), storetest.Alice), key)
			assert.Zero(t, f.Redis.SCard(t.Context(), "subscribers").Val())
		}
	})
}

func TestDropOldestGetsPastWhatIsWrong(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		ctx := t.Context()
		f.AddSubscriber(storetest.Alice, time.Hour, 1, "widgets")
		f.AddSubscriber(storetest.Bob, time.Hour, 10, "widgets")
		f.PublishEvents("widgets", 1, 3, 0)
		require.NoError(t, f.Redis.ZAdd(ctx, "batches:index", redis.Z{Score: 0, Member: strings.Repeat("x", 300)}).Err())
		require.NoError(t, f.Redis.Del(ctx, "batches:current:"+string(storetest.Bob)).Err())
		require.NoError(t, f.Redis.Set(ctx, "batches:current:"+string(storetest.Bob), "x", 0).Err())
		require.NoError(t, f.Redis.HSet(ctx, "batches:gauges:event", string(storetest.Alice), "x").Err())
		dropped, err := f.OldestBatches().Drop(ctx, storetest.Start, nil)
		require.NoError(t, err)
		assert.Len(t, dropped, 5)
		assert.Zero(t, f.Redis.ZCard(ctx, "batches:index").Val())
		assert.Zero(t, f.Redis.Exists(ctx, "jobs:index:main", "jobs:instant:main", "jobs:scheduled:main").Val())
	})
}

// TestADamagedLaneHoldsUpNobodyElse: many batches of a subscriber with a damaged lane come up.
func TestADamagedLaneHoldsUpNobodyElse(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f, ctx := newFixture(t, server), t.Context()
		take := func(ms int) (*store.Delivery, int) {
			taken, err := f.Queue.Acquire(ctx, bus.QueueMain, "w1", bus.Failing, storetest.After(ms))
			require.NoError(t, err)
			if taken.Task == nil {
				return nil, len(taken.Poisoned)
			}
			return taken.Task.Payload.(*store.Delivery), len(taken.Poisoned)
		}
		f.AddSubscriber(storetest.Alice, 0, 1, "widgets")
		f.AddSubscriber(storetest.Bob, 0, 1, "gadgets")
		require.NoError(t, f.Redis.Set(ctx, "jobs:lane:batch:"+string(storetest.Bob), "x", 0).Err())
		f.PublishEvents("gadgets", 1, 99, 0)
		f.PublishEvents("widgets", 1, 1, 0)
		delivery, poisoned := take(0)
		require.NotNil(t, delivery)
		assert.Equal(t, storetest.Alice, delivery.Subscriber)
		assert.Equal(t, 99, poisoned, "each is reported")
		f.Redis.Del(ctx, "jobs:pending:main:w1")

		f.PublishEvents("gadgets", 100, 200, 1)
		delivery, poisoned = take(1)
		assert.Nil(t, delivery)
		assert.Equal(t, 100, poisoned, "one call stays short")
		delivery, poisoned = take(1)
		assert.Nil(t, delivery)
		assert.Equal(t, 1, poisoned)
	})
}

// TestACorruptCountFailsNoCompletion completes deliveries while a count in the subscriber's state
// is no number.
func TestACorruptCountFailsNoCompletion(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f, ctx := newFixture(t, server), t.Context()
		f.AddSubscriber(storetest.Alice, 0, 1, "widgets")
		f.PublishEvents("widgets", 1, 2, 0)
		f.Redis.HSet(ctx, "delivery:alice--1", "events_sent", "x", "refusals", "x")
		f.succeed(f.Take("w1", 0), 0)
		assert.Equal(t, "1", f.Redis.HGet(ctx, "delivery:alice--1", "events_sent").Val(), "it begins anew")
		f.fail(f.Take("w1", 1), bus.BatchFailure, 1, 1000, 0)
		assert.Equal(t, "1", f.Redis.HGet(ctx, "delivery:alice--1", "refusals").Val())
		f.succeed(f.dueAt(1001), 1001)
		assert.Equal(t, "2", f.Redis.HGet(ctx, "delivery:alice--1", "events_sent").Val())
		f.requireNoFailures()
	})
}
