package store_test

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store"
)

// What something else than this program does to a subscriber's data.
var poisons = []struct {
	name   string
	poison func(*testing.T, *redis.Client)
}{
	{"an event gauge that is no number", func(t *testing.T, raw *redis.Client) {
		require.NoError(t, raw.HSet(t.Context(), "batches:gauges:event", string(bob), "abc").Err())
	}},
	{"a batch gauge that is no number", func(t *testing.T, raw *redis.Client) {
		require.NoError(t, raw.HSet(t.Context(), "batches:gauges:batch", string(bob), "1.5").Err())
	}},
	{"current is no set", func(t *testing.T, raw *redis.Client) {
		require.NoError(t, raw.Set(t.Context(), "batches:current:"+string(bob), "x", 0).Err())
	}},
	{"the line is no sorted set", func(t *testing.T, raw *redis.Client) {
		require.NoError(t, raw.Set(t.Context(), "batches:line:"+string(bob), "x", 0).Err())
	}},
	{"the subscriber is no hash", func(t *testing.T, raw *redis.Client) {
		require.NoError(t, raw.Set(t.Context(), "subscriber:"+string(bob), "x", 0).Err())
	}},
	{"a current batch that is no list", func(t *testing.T, raw *redis.Client) {
		require.NoError(t, raw.SAdd(t.Context(), "batches:current:"+string(bob), "ABCDEFGHIJKLMNOPQRST").Err())
		require.NoError(t, raw.Set(t.Context(), "batch:ABCDEFGHIJKLMNOPQRST", "x", 0).Err())
	}},
}

// TestAPoisonedSubscriberHarmsNobodyElse publishes to two subscribers and delivers, while the data of one has been tampered with:
// before the publish, and between publish and delivery.
func TestAPoisonedSubscriberHarmsNobodyElse(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		for _, c := range poisons {
			for _, early := range []bool{true, false} {
				require.NoError(t, server.Raw.FlushAll(t.Context()).Err())
				f := newFixture(t, server)
				f.subscribe(alice, 0, 3, "widgets")
				f.subscribe(bob, 0, 3, "widgets")
				if early {
					c.poison(t, f.raw)
				}
				f.publish("widgets", 1, 4, 0)
				f.publish("widgets", 5, 5, 0)
				if !early {
					c.poison(t, f.raw)
				}
				delivered := map[bus.Token]int{}
				for tries := 0; tries < 20; tries++ {
					task, err := f.Acquire(t.Context(), bus.QueueMain, "w1", bus.Failing, after(1))
					if err != nil {
						require.ErrorIs(t, err, bus.ErrPoisoned, c.name)
						continue
					}
					if task == nil {
						break
					}
					delivered[task.Delivery.Subscriber] += len(task.Delivery.Events)
					require.True(t, f.settle(task, store.Outcome{Health: 1, Delivered: 1}), c.name)
				}
				assert.Equal(t, 5, delivered[alice], "%s, early: %v", c.name, early)
				if bobs := delivered[bob]; bobs != 5 {
					assert.True(t, strings.Contains(c.name, "line") || strings.Contains(c.name, "hash"), "%s, early: %v: bob got %d", c.name, early, bobs)
				}
				assert.Nil(t, f.acquire("w2", 1), "nothing is stuck")
			}
		}
	})
}

// TestAPoisonedGaugeHindersNoPublish publishes to a subscriber who is being served, whose gauge says nothing.
func TestAPoisonedGaugeHindersNoPublish(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		for _, whole := range []bool{true, false} {
			require.NoError(t, server.Raw.FlushAll(t.Context()).Err())
			f := newFixture(t, server)
			f.subscribe(alice, 0, 2, "widgets")
			f.publish("widgets", 1, 1, 0)
			first := f.acquire("w1", 0)
			if whole {
				require.NoError(t, f.raw.Del(t.Context(), "batches:gauges:batch").Err())
				require.NoError(t, f.raw.Set(t.Context(), "batches:gauges:batch", "x", 0).Err())
			} else {
				require.NoError(t, f.raw.HSet(t.Context(), "batches:gauges:batch", string(alice), "x").Err())
			}
			f.publish("widgets", 2, 7, 1)
			f.settle(first, store.Done)
			var got []int // in some order, which goes by the gauge
			for task := f.acquire("w1", 1); task != nil; task = f.acquire("w1", 1) {
				got = append(got, numbers(t, task)...)
				f.settle(task, store.Done)
			}
			assert.ElementsMatch(t, []int{2, 3, 4, 5, 6, 7}, got)
		}
	})
}

func TestAPoisonedJobIsPutOffAndTold(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		ctx := t.Context()
		f.subscribe(alice, 0, 1, "widgets")
		f.publish("widgets", 1, 1, 0)
		require.NoError(t, f.raw.Set(ctx, "batches:line:"+string(alice), "x", 0).Err())
		_, err := f.Acquire(ctx, bus.QueueMain, "w1", bus.Failing, after(1))
		require.ErrorIs(t, err, bus.ErrPoisoned)
		assert.ErrorContains(t, err, "WRONGTYPE")
		assert.NotContains(t, err.Error(), string(alice))
		assert.Nil(t, f.acquire("w1", 1))
		require.NoError(t, f.raw.Del(ctx, "batches:line:"+string(alice)).Err())
		assert.Zero(t, f.schedule(59_000))
		assert.Equal(t, 1, f.schedule(61_000), "it comes up again a minute later")
		assert.Equal(t, []int{1}, numbers(t, f.acquire("w1", 61_000)))
		f.sound()
	})
}

func TestAPoisonedSubscriberCanBeDeleted(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		for _, key := range []string{"subscriber:", "batches:line:"} {
			require.NoError(t, server.Raw.FlushAll(t.Context()).Err())
			f := newFixture(t, server)
			f.subscribe(alice, 0, 1, "widgets")
			require.NoError(t, f.raw.Del(t.Context(), key+string(alice)).Err())
			require.NoError(t, f.raw.Set(t.Context(), key+string(alice), "x", 0).Err())
			require.NoError(t, f.DeleteSubscriber(t.Context(), alice), key)
			assert.Zero(t, f.raw.SCard(t.Context(), "subscribers").Val())
		}
	})
}

func TestDropOldestGetsPastWhatIsWrong(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		ctx := t.Context()
		f.subscribe(alice, time.Hour, 1, "widgets")
		f.subscribe(bob, time.Hour, 10, "widgets")
		f.publish("widgets", 1, 3, 0)
		require.NoError(t, f.raw.ZAdd(ctx, "batches:index", redis.Z{Score: 0, Member: strings.Repeat("x", 300)}).Err())
		require.NoError(t, f.raw.Del(ctx, "batches:current:"+string(bob)).Err())
		require.NoError(t, f.raw.Set(ctx, "batches:current:"+string(bob), "x", 0).Err())
		require.NoError(t, f.raw.HSet(ctx, "batches:gauges:event", string(alice), "x").Err())
		dropped, err := f.DropOldest(ctx)
		require.NoError(t, err)
		assert.Len(t, dropped, 5)
		assert.Zero(t, f.raw.ZCard(ctx, "batches:index").Val())
		assert.Zero(t, f.raw.Exists(ctx, "jobs:index:main", "jobs:instant:main", "jobs:scheduled:main").Val())
	})
}
