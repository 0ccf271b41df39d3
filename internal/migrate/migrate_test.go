package migrate_test

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/migrate"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store/storetest"
)

func TestMigrate(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		l := newLeft(t, server)
		l.Redis.HSet(l.ctx, "batches:gauges:event", "gone--3", 0)
		before := rdbtest.Dump(t, l.Redis)
		want := migrate.Result{Batches: 4, Events: eventsOfLeft, Removed: 1}
		done, reports := l.migrate(migrate.Options{})
		assert.Equal(t, want, done)
		assert.Empty(t, reports)
		assert.Equal(t, before, rdbtest.Dump(t, l.Redis), "a dry run writes nothing")

		var progress migrate.Result
		done, reports = l.migrate(migrate.Options{Apply: true, Progress: func(m migrate.Result) { progress = m }})
		assert.Equal(t, want, done)
		assert.Empty(t, reports)
		assert.Equal(t, want.Events, progress.Events)
		l.RequireSound()
		moved := rdbtest.Dump(t, l.Redis)
		for key, value := range before {
			if bid, is := cutUID(key, "batches:"); is {
				assert.Equal(t, value, moved["batch:"+bid])
				assert.NotContains(t, moved, key)
			}
		}
		assert.Equal(t, before["batches:index"], moved["batches:index"])
		assert.Equal(t, before["jobs:index:main"], moved["jobs:index:main"])
		assert.NotContains(t, moved, "batches:current:bob--2", "nobody is to append to it")

		done, reports = l.apply()
		assert.True(t, done.NothingLeft(), done)
		assert.Empty(t, reports)
		assert.Equal(t, moved, rdbtest.Dump(t, l.Redis), "a second run finds nothing to do")

		l.PublishEvents("widgets", 6, 7, 100)
		assert.Equal(t, map[bus.Token][]int{storetest.Alice: {1, 2, 3, 4, 5, 6, 7}, storetest.Bob: {1, 2, 3, 6, 7}}, l.drain())
		l.RequireSound()
		assert.Empty(t, l.Redis.HGetAll(l.ctx, "batches:gauges:event").Val())
	})
}

// TestMigrateGivesEachBatchOneJob uses states that the original and its workers may leave when they
// are killed.
func TestMigrateGivesEachBatchOneJob(t *testing.T) {
	for _, state := range []struct {
		name      string
		make      func(l *left, bid string)
		completed int
	}{
		{"killed before it had a job", func(l *left, bid string) {
			l.Redis.ZRem(l.ctx, "jobs:scheduled:main", storetest.Job(bid))
			l.Redis.SRem(l.ctx, "jobs:index:main", storetest.Job(bid))
		}, 0},
		{"a timestamp far in the future", func(l *left, bid string) {
			l.Redis.SRem(l.ctx, "batches:current:bob--2", bid)
			l.Redis.ZAdd(l.ctx, "jobs:scheduled:main", redis.Z{Score: 1e19, Member: storetest.Job(bid)})
		}, 0},
		{"its worker is dead", func(l *left, bid string) {
			l.Redis.ZRem(l.ctx, "jobs:scheduled:main", storetest.Job(bid))
			l.Redis.RPush(l.ctx, "jobs:instant:main", storetest.Job(bid))
			l.take("dead", time.Now().Add(-time.Hour))
		}, 0},
		{"its worker is unknown", func(l *left, bid string) {
			l.Redis.ZRem(l.ctx, "jobs:scheduled:main", storetest.Job(bid))
			l.Redis.RPush(l.ctx, "jobs:pending:main:unknown", storetest.Job(bid))
		}, 0},
		{"moved, and then a worker of the original did not find it", func(l *left, bid string) {
			l.apply()
			l.Redis.LRem(l.ctx, "jobs:instant:main", 0, storetest.Job(bid))
			l.Redis.RPush(l.ctx, "jobs:pending:main:ruby", storetest.Job(bid))
			l.finish("ruby", bid)
		}, 1},
	} {
		t.Run(state.name, func(t *testing.T) {
			rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
				l := newLeft(t, server)
				bid := l.batchesOf(storetest.Bob)[0]
				state.make(l, bid)
				before := rdbtest.Dump(t, l.Redis)
				would, reports := l.migrate(migrate.Options{})
				assert.Equal(t, before, rdbtest.Dump(t, l.Redis))
				assert.Empty(t, reports)
				done, reports := l.apply()
				assert.Empty(t, reports)
				assert.Equal(t, would, done)
				assert.Equal(t, state.completed, done.Completed)
				l.RequireSound()
				assert.NoError(t, l.Redis.LPos(l.ctx, "jobs:instant:main", storetest.Job(bid), redis.LPosArgs{}).Err(), "it is to be run now")
				again, _ := l.apply()
				assert.True(t, again.NothingLeft(), again)
				assert.Equal(t, map[bus.Token][]int{storetest.Alice: {1, 2, 3, 4, 5}, storetest.Bob: {1, 2, 3}}, l.drain())
				l.RequireSound()
			})
		})
	}
}

// TestMigrateRefuses uses data that the original does not write, or that is not safe to move.
func TestMigrateRefuses(t *testing.T) {
	const uid = "AAAABBBBCCCCDDDDEEEE"
	event := func(t *testing.T) string { return string(storetest.Packed(t, "widgets", 1)) }
	list := func(elements ...any) func(l *left, bid string) {
		return func(l *left, _ string) { l.Redis.RPush(l.ctx, "batches:"+uid, elements...) }
	}
	const lone = "batches:" + uid + ": "
	for _, odd := range []struct {
		name string
		make func(l *left, bid string)
		// report has %s for Bob's batch.
		report string
		later  bool
	}{
		{"another type", func(l *left, _ string) { l.Redis.Set(l.ctx, "batches:"+uid, "x", 0) }, lone + "is not a list, so it is no batch [refused]", false},
		{"nobody's", list("carol--3", 1, 0, event(t)), lone + "is not as the bus writes it, or the bus does not know whose it is [refused]", false},
		{"no header", list("bob--2", event(t)), lone + "is not as the bus writes it, or the bus does not know whose it is [refused]", false},
		{"no times", list("bob--2", "x", 0, event(t)), lone + "is not as the bus writes it, or the bus does not know whose it is [refused]", false},
		{"no event", list("bob--2", 1, 0), lone + "has no event [refused]", false},
		{"events alone", list(event(t), event(t)), lone + "has events, but does not say whose [refused]", false},
		{"no MessagePack", list("bob--2", 1, 0, event(t), "\xc1"), lone + "its element 4, counted from 0, cannot be read: ", false},
		{"a message that is no event", list("bob--2", 1, 0, "\x92\xa1p\x80"), lone + "its element 3, counted from 0, cannot be read: ", false},
		{"another batch in its place", func(l *left, bid string) { l.Redis.RPush(l.ctx, "batch:"+bid, "bob--2", 1, 0, event(t)) },
			"batches:%s: cannot be moved: there is another batch in its place [refused]", false},
		{"something in its place", func(l *left, bid string) { l.Redis.Set(l.ctx, "batch:"+bid, "x", 0) },
			"batches:%s: cannot be moved: there is something else, which is no list, in its place [refused]", false},
		{"something of it that is not of its type", func(l *left, _ string) {
			l.Redis.Del(l.ctx, "batches:current:bob--2")
			l.Redis.Set(l.ctx, "batches:current:bob--2", "x", 0)
		}, "batches:%s: cannot be moved: something that belongs to it is not of its type [refused]", false},
		{"an older layout", func(l *left, _ string) { l.Redis.RPush(l.ctx, "queue:new:bob", "x") },
			"queue:new:: 1 keys of an older version of the original, which its last version does not read either [refused]", false},
		{"a batch that is being delivered", func(l *left, bid string) {
			l.Redis.ZRem(l.ctx, "jobs:scheduled:main", storetest.Job(bid))
			l.Redis.RPush(l.ctx, "jobs:instant:main", storetest.Job(bid))
			l.take("ruby", time.Now())
		}, "batches:%s: is being delivered: run this again when it has been [later]", true},
	} {
		t.Run(odd.name, func(t *testing.T) {
			rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
				l := newLeft(t, server)
				bid := l.batchesOf(storetest.Bob)[0]
				odd.make(l, bid)
				report := odd.report
				if before, after, is := strings.Cut(report, "%s"); is {
					report = before + bid + after
				}
				before := rdbtest.Dump(t, l.Redis)
				would, reports := l.migrate(migrate.Options{})
				assert.Equal(t, before, rdbtest.Dump(t, l.Redis))
				require.Len(t, reports, 1)
				assert.Contains(t, reports[0], report)
				done, applied := l.apply()
				assert.Equal(t, would, done)
				assert.Equal(t, reports, applied)
				after := rdbtest.Dump(t, l.Redis)
				for key, value := range before {
					if key == "batches:"+uid || key == "batches:"+bid && strings.Contains(report, bid) {
						assert.Equal(t, value, after[key], "it stays as it was")
					}
				}
				if odd.later {
					assert.Equal(t, migrate.Result{Batches: 3, Events: 5, Later: 1}, done)
					l.finish("ruby", bid)
					done, reports = l.apply()
					assert.Empty(t, reports)
					assert.Zero(t, done.Batches)
					done, _ = l.apply()
					assert.True(t, done.NothingLeft(), done)
				}
				assert.Equal(t, []int{1, 2, 3, 4, 5}, l.drain()[storetest.Alice], "the others are moved")
			})
		})
	}
}

func TestMigrateRefusesAStrangeRedis(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := storetest.NewBus(t, server)
		f.Redis.Set(t.Context(), "batches:index", "x", 0)
		_, err := migrate.Run(t.Context(), f.Partition, migrate.Options{Apply: true})
		assert.ErrorContains(t, err, "batches:index is a string, must be a zset")
	})
	t.Run("cluster", func(t *testing.T) {
		f := rdbtest.ClusterNode(t).Open(t)
		_, err := migrate.Run(t.Context(), f.Partition(""), migrate.Options{})
		assert.ErrorContains(t, err, "Redis Cluster")
	})
}

func TestMigrateMovesWhatCannotBeReadIfAskedTo(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		l := newLeft(t, server)
		bid := l.batchesOf(storetest.Bob)[0]
		l.Redis.LInsertBefore(l.ctx, "batches:"+bid, string(storetest.Packed(t, "widgets", 2)), "\xc1")
		l.Redis.HIncrBy(l.ctx, "batches:gauges:event", string(storetest.Bob), 1)
		_, reports := l.apply()
		require.Len(t, reports, 1)
		done, reports := l.migrate(migrate.Options{Apply: true, Unreadable: true})
		assert.Empty(t, reports)
		assert.Equal(t, migrate.Result{Batches: 1, Events: 4}, done)
		l.RequireSound()
	})
}

// TestMigrateReadsLargeBatches has more events than one read takes, the last of them unreadable.
func TestMigrateReadsLargeBatches(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		l := newLeft(t, server)
		bid := l.batchesOf(storetest.Bob)[0]
		var events []any
		for i := range 2500 {
			events = append(events, []byte(storetest.Packed(t, "widgets", i+4)))
		}
		l.Redis.RPush(l.ctx, "batches:"+bid, events...)
		l.Redis.RPush(l.ctx, "batches:"+bid, "x")
		_, reports := l.apply()
		require.Len(t, reports, 1)
		assert.Contains(t, reports[0], "its element 2506, counted from 0, cannot be read")
		l.Redis.RPop(l.ctx, "batches:"+bid)
		l.Redis.HIncrBy(l.ctx, "batches:gauges:event", string(storetest.Bob), 2500)
		done, reports := l.apply()
		assert.Empty(t, reports)
		assert.Equal(t, migrate.Result{Batches: 1, Events: 2503}, done)
		l.RequireSound()
		assert.Len(t, l.drain()[storetest.Bob], 2503)
	})
}
