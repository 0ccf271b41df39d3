package migrate_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/layout"
	"routemaster/internal/migrate"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store"
	"routemaster/internal/store/storetest"
)

// TestMigrateJoinsWhatTheOriginalAppendedToOurs: the original's web finds a batch of ours current,
// and appends to it as to its own.
func TestMigrateJoinsWhatTheOriginalAppendedToOurs(t *testing.T) {
	for _, by := range []string{"a migration", "a worker", "memory"} {
		t.Run(by, func(t *testing.T) {
			rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
				f := storetest.NewBus(t, server)
				l := &left{original{f}, t.Context()}
				f.AddSubscriber(storetest.Bob, time.Hour, 10, "widgets")
				f.PublishEvents("widgets", 1, 2, 0)
				for i := 3; i <= 5; i++ {
					err := l.ingest(storetest.Bob, storetest.Packed(t, "widgets", i), 10, storetest.After(i).UnixMilli(), storetest.After(i).UnixMilli())
					assert.Equal(t, i < 5, err != nil, "the original answers 500 to the first two")
				}
				bid := l.batchesOf(storetest.Bob)[0]
				require.EqualValues(t, 3, l.Redis.LLen(l.ctx, "batches:"+bid).Val())
				switch by {
				case "a migration":
					done, reports := l.apply()
					assert.Equal(t, migrate.Result{Batches: 1, Events: 3}, done)
					assert.Empty(t, reports)
					l.RequireSound()
				case "a worker":
					announce := f.Redis.Set(l.ctx, layout.Keys{}.Migration(), "1", 0)
					require.NoError(t, announce.Err())
				case "memory":
					dropped, err := l.OldestBatches().Drop(l.ctx, time.UnixMilli(0), nil)
					require.NoError(t, err)
					assert.Equal(t, []store.DroppedBatch{{Subscriber: storetest.Bob, Events: 5}}, dropped)
					l.RequireSound()
					assert.Empty(t, l.drain())
					return
				}
				assert.Equal(t, map[bus.Token][]int{storetest.Bob: {1, 2, 3, 4, 5}}, l.drain())
				l.RequireSound()
				assert.Empty(t, l.Redis.Exists(l.ctx, "batches:"+bid).Val())
			})
		})
	}
}

// TestAWorkerAdoptsWhatComesUp has our workers and web on a Redis that was not migrated.
func TestAWorkerAdoptsWhatComesUp(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		l := newLeft(t, server)
		l.PublishEvents("widgets", 6, 7, 10)
		got := l.drain()
		assert.Equal(t, []int{1, 2, 3, 4, 5, 6, 7}, sortedCopy(got[storetest.Alice]))
		assert.Equal(t, []int{1, 2, 3, 6, 7}, sortedCopy(got[storetest.Bob]))
		l.RequireSound()
		done, _ := l.migrate(migrate.Options{})
		assert.Zero(t, done.Batches)
	})
}

// TestAWorkerPutsOffWhatItCannotAdopt leaves such a batch, and its job, for people to look at.
func TestAWorkerPutsOffWhatItCannotAdopt(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		l := newLeft(t, server)
		bid := l.batchesOf(storetest.Bob)[0]
		l.Redis.LSet(l.ctx, "batches:"+bid, 1, "x")
		l.Redis.ZAdd(l.ctx, "jobs:scheduled:main", redis.Z{Score: 0, Member: storetest.Job(bid)})
		l.MakeInstant(1000)
		for task := l.Take("w1", 1000); task != nil; task = l.Take("w1", 1000) {
			require.Equal(t, storetest.Alice, task.Delivery.Subscriber)
			l.Complete(task, storetest.Done)
		}
		assert.InDelta(t, storetest.After(61_000).UnixMilli(), l.Redis.ZScore(l.ctx, "jobs:scheduled:main", storetest.Job(bid)).Val(), 1)
		assert.EqualValues(t, 6, l.Redis.LLen(l.ctx, "batches:"+bid).Val())
	})
}

// TestARunAnnouncesTheMigration makes the workers look for the original's additions, but not for a
// dry run, which writes nothing.
func TestARunAnnouncesTheMigration(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		l := newLeft(t, server)
		announced := func() time.Duration { return l.Redis.PTTL(l.ctx, layout.Keys{}.Migration()).Val() }
		l.migrate(migrate.Options{})
		assert.Negative(t, announced())
		l.apply()
		assert.InDelta(t, 24*time.Hour, announced(), float64(time.Hour))
	})
}
