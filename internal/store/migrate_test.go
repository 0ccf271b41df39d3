package store_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store"
	"routemaster/internal/store/storetest"
	"routemaster/internal/wire"
)

// original does to Redis what the last version of the Ruby original does, step by step.
type original struct{ *fixture }

// ingest stores an event for one subscriber, as the original's web does: three steps between which anything may happen. It fails
// when the original would answer 500.
func (o original) ingest(token bus.Token, event wire.PackedEvent, maxEvents int, now, deadline int64) error {
	ctx := o.T.Context()
	current := o.Redis.SRandMember(ctx, "batches:current:"+string(token)).Val()
	bid := o.Redis.Eval(ctx, `
		local bid = ARGV[1]
		if bid == '' or redis.call('SISMEMBER', KEYS[1], bid) == 0 then
			bid = ARGV[2]
			redis.call('SADD', KEYS[1], bid)
			redis.call('ZADD', 'batches:index', ARGV[5], bid)
			redis.call('RPUSH', 'batches:' .. bid, ARGV[4], ARGV[5], 0)
			redis.call('HINCRBY', 'batches:gauges:batch', ARGV[4], 1)
		end
		redis.call('RPUSH', 'batches:' .. bid, ARGV[3])
		redis.call('HINCRBY', 'batches:gauges:event', ARGV[4], 1)
		if redis.call('LLEN', 'batches:' .. bid) - 3 >= tonumber(ARGV[6]) then redis.call('SREM', KEYS[1], bid) end
		return bid`,
		[]string{"batches:current:" + string(token)}, current, newUID(), []byte(event), string(token), now, maxEvents).Val().(string)
	o.enqueue(bid, deadline)
	length := o.Redis.LLen(ctx, "batches:"+bid).Val()
	if length > 0 && length < 3 {
		return fmt.Errorf("batch %s is inconsistent", bid)
	}
	if length-3 >= int64(maxEvents) {
		o.Redis.Eval(ctx, `
			if redis.call('ZREM', 'jobs:scheduled:main', ARGV[1]) == 1 then redis.call('LPUSH', 'jobs:instant:main', ARGV[1]) end
			return 1`, nil, job(bid))
	}
	return nil
}

// enqueue adds a batch's job, unless it is there.
func (o original) enqueue(bid string, deadline int64) {
	o.Redis.Eval(o.T.Context(), `
		if redis.call('SADD', 'jobs:index:main', ARGV[1]) == 1 then redis.call('ZADD', 'jobs:scheduled:main', ARGV[2], ARGV[1]) end
		return 1`, nil, job(bid), deadline)
}

// take is how the original's worker takes a job, and closes its batch, if it finds it. It returns nothing when there is no job.
func (o original) take(worker string, lastSeen time.Time) (bid string) {
	ctx := o.T.Context()
	o.Redis.HSet(ctx, "workers", worker, lastSeen.UnixMilli())
	packed := o.Redis.LMove(ctx, "jobs:instant:main", "jobs:pending:main:"+worker, "RIGHT", "LEFT").Val()
	if packed == "" {
		return ""
	}
	bid = packed[len(jobHead):]
	o.Redis.SRem(ctx, "batches:current:"+o.Redis.LIndex(ctx, "batches:"+bid, 0).Val(), bid)
	return bid
}

// finish is how it goes on after a delivery, or when it does not find the batch.
func (o original) finish(worker, bid string) {
	o.Redis.Eval(o.T.Context(), `
		local key = 'batches:' .. ARGV[1]
		local header, length = redis.call('LRANGE', key, 0, 2), redis.call('LLEN', key)
		redis.call('DEL', key)
		redis.call('ZREM', 'batches:index', ARGV[1])
		if length >= 3 then
			redis.call('HINCRBY', 'batches:gauges:batch', header[1], -1)
			redis.call('HINCRBY', 'batches:gauges:event', header[1], 3 - length)
		end
		redis.call('LREM', 'jobs:pending:main:' .. ARGV[2], 0, ARGV[3])
		redis.call('SREM', 'jobs:index:main', ARGV[3])
		return 1`, nil, bid, worker, job(bid))
}

func newUID() string {
	const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	uid := make([]byte, bus.UIDLen)
	for i := range uid {
		uid[i] = digits[rand.IntN(len(digits))]
	}
	return string(uid)
}

// left is a bus that the original has left: Alice, whose batches have two events, has 1 to 5; Bob has 1 to 3 in one batch that
// takes in events. Both wait for their time.
type left struct {
	original
	ctx context.Context
}

func newLeft(t *testing.T, server *rdbtest.Server) *left {
	f := newFixture(t, server)
	l := &left{original{f}, t.Context()}
	f.AddSubscriber(alice, 500*time.Millisecond, 2, "widgets")
	f.AddSubscriber(bob, time.Hour, 10, "widgets")
	for i := range 5 {
		require.NoError(t, l.ingest(alice, packed(t, "widgets", i+1), 2, after(i).UnixMilli(), after(i+500).UnixMilli()))
	}
	for i := range 3 {
		require.NoError(t, l.ingest(bob, packed(t, "widgets", i+1), 10, after(i).UnixMilli(), time.Now().Add(time.Minute).UnixMilli()))
	}
	return l
}

const eventsOfLeft = 8

// batchesOf are the UIDs of a subscriber's batches, oldest first, wherever they are.
func (l *left) batchesOf(token bus.Token) (bids []string) {
	for _, bid := range l.Redis.ZRange(l.ctx, "batches:index", 0, -1).Val() {
		for _, key := range []string{"batches:", "batch:"} {
			if l.Redis.LIndex(l.ctx, key+bid, 0).Val() == string(token) {
				bids = append(bids, bid)
			}
		}
	}
	return bids
}

// migrate returns what it counts and what it tells.
func (l *left) migrate(m store.Migration) (store.Migrated, []string) {
	l.T.Helper()
	told := []string{}
	m.Tell = func(u store.Unmoved) {
		state := "refused"
		if u.Later {
			state = "later"
		}
		told = append(told, fmt.Sprintf("%s: %s [%s]", u.Key, u.Reason, state))
	}
	done, err := l.Migrate(l.ctx, m)
	require.NoError(l.T, err)
	slices.Sort(told)
	return done, told
}

func (l *left) apply() (store.Migrated, []string) {
	l.T.Helper()
	return l.migrate(store.Migration{Apply: true})
}

// drain delivers what there is, whatever its time, and returns the numbers of each subscriber's events in the order of their delivery.
func (l *left) drain() map[bus.Token][]int {
	got := map[bus.Token][]int{}
	for range 3 {
		l.MakeInstant(1 << 40)
		for task := l.Take("w9", 1<<40); task != nil; task = l.Take("w9", 1<<40) {
			if task.Delivery != nil {
				got[task.Delivery.Subscriber] = append(got[task.Delivery.Subscriber], numbers(l.T, task)...)
			}
			l.Complete(task, store.Done)
		}
	}
	return got
}

func TestMigrate(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		l := newLeft(t, server)
		l.Redis.HSet(l.ctx, "batches:gauges:event", "gone--3", 0)
		before := dump(t, l.Redis)
		want := store.Migrated{Batches: 4, Events: eventsOfLeft, Removed: 1}
		done, told := l.migrate(store.Migration{})
		assert.Equal(t, want, done)
		assert.Empty(t, told)
		assert.Equal(t, before, dump(t, l.Redis), "a dry run writes nothing")

		var progress store.Migrated
		done, told = l.migrate(store.Migration{Apply: true, Progress: func(m store.Migrated) { progress = m }})
		assert.Equal(t, want, done)
		assert.Empty(t, told)
		assert.Equal(t, want.Events, progress.Events)
		l.RequireSound()
		moved := dump(t, l.Redis)
		for key, value := range before {
			if bid, is := cutUID(key, "batches:"); is {
				assert.Equal(t, value, moved["batch:"+bid])
				assert.NotContains(t, moved, key)
			}
		}
		assert.Equal(t, before["batches:index"], moved["batches:index"])
		assert.Equal(t, before["jobs:index:main"], moved["jobs:index:main"])
		assert.NotContains(t, moved, "batches:current:bob--2", "nobody is to append to it")

		done, told = l.apply()
		assert.True(t, done.Done(), done)
		assert.Empty(t, told)
		assert.Equal(t, moved, dump(t, l.Redis), "a second run finds nothing to do")

		l.PublishEvents("widgets", 6, 7, 100)
		assert.Equal(t, map[bus.Token][]int{alice: {1, 2, 3, 4, 5, 6, 7}, bob: {1, 2, 3, 6, 7}}, l.drain())
		l.RequireSound()
		assert.Empty(t, l.Redis.HGetAll(l.ctx, "batches:gauges:event").Val())
	})
}

func cutUID(key, prefix string) (string, bool) {
	if len(key) == len(prefix)+bus.UIDLen && key[:len(prefix)] == prefix {
		return key[len(prefix):], true
	}
	return "", false
}

// TestMigrateGivesEachBatchOneJob has what the original and its workers may leave when they are killed.
func TestMigrateGivesEachBatchOneJob(t *testing.T) {
	for _, state := range []struct {
		name      string
		make      func(l *left, bid string)
		completed int
	}{
		{"killed before it had a job", func(l *left, bid string) {
			l.Redis.ZRem(l.ctx, "jobs:scheduled:main", job(bid))
			l.Redis.SRem(l.ctx, "jobs:index:main", job(bid))
		}, 0},
		{"a timestamp far in the future", func(l *left, bid string) {
			l.Redis.SRem(l.ctx, "batches:current:bob--2", bid)
			l.Redis.ZAdd(l.ctx, "jobs:scheduled:main", redis.Z{Score: 1e19, Member: job(bid)})
		}, 0},
		{"its worker is dead", func(l *left, bid string) {
			l.Redis.ZRem(l.ctx, "jobs:scheduled:main", job(bid))
			l.Redis.RPush(l.ctx, "jobs:instant:main", job(bid))
			l.take("dead", time.Now().Add(-time.Hour))
		}, 0},
		{"its worker is unknown", func(l *left, bid string) {
			l.Redis.ZRem(l.ctx, "jobs:scheduled:main", job(bid))
			l.Redis.RPush(l.ctx, "jobs:pending:main:unknown", job(bid))
		}, 0},
		{"moved, and then a worker of the original did not find it", func(l *left, bid string) {
			l.apply()
			l.Redis.LRem(l.ctx, "jobs:instant:main", 0, job(bid))
			l.Redis.RPush(l.ctx, "jobs:pending:main:ruby", job(bid))
			l.finish("ruby", bid)
		}, 1},
	} {
		t.Run(state.name, func(t *testing.T) {
			rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
				l := newLeft(t, server)
				bid := l.batchesOf(bob)[0]
				state.make(l, bid)
				before := dump(t, l.Redis)
				would, told := l.migrate(store.Migration{})
				assert.Equal(t, before, dump(t, l.Redis))
				assert.Empty(t, told)
				done, told := l.apply()
				assert.Empty(t, told)
				assert.Equal(t, would, done)
				assert.Equal(t, state.completed, done.Completed)
				l.RequireSound()
				assert.NoError(t, l.Redis.LPos(l.ctx, "jobs:instant:main", job(bid), redis.LPosArgs{}).Err(), "it is to be run now")
				again, _ := l.apply()
				assert.True(t, again.Done(), again)
				assert.Equal(t, map[bus.Token][]int{alice: {1, 2, 3, 4, 5}, bob: {1, 2, 3}}, l.drain())
				l.RequireSound()
			})
		})
	}
}

// TestMigrateRefuses has what is not as the original writes it, or what it would not be safe to move.
func TestMigrateRefuses(t *testing.T) {
	const uid = "AAAABBBBCCCCDDDDEEEE"
	event := func(t *testing.T) string { return string(packed(t, "widgets", 1)) }
	list := func(elements ...any) func(l *left, bid string) {
		return func(l *left, _ string) { l.Redis.RPush(l.ctx, "batches:"+uid, elements...) }
	}
	const alone = "batches:" + uid + ": "
	for _, odd := range []struct {
		name string
		make func(l *left, bid string)
		// told has %s for Bob's batch.
		told  string
		later bool
	}{
		{"another type", func(l *left, _ string) { l.Redis.Set(l.ctx, "batches:"+uid, "x", 0) }, alone + "is not a list, so it is no batch [refused]", false},
		{"nobody's", list("carol--3", 1, 0, event(t)), alone + "is not as the bus writes it, or the bus does not know whose it is [refused]", false},
		{"no header", list("bob--2", event(t)), alone + "is not as the bus writes it, or the bus does not know whose it is [refused]", false},
		{"no times", list("bob--2", "x", 0, event(t)), alone + "is not as the bus writes it, or the bus does not know whose it is [refused]", false},
		{"no event", list("bob--2", 1, 0), alone + "has no event [refused]", false},
		{"events alone", list(event(t), event(t)), alone + "has events, but does not say whose [refused]", false},
		{"no MessagePack", list("bob--2", 1, 0, event(t), "\xc1"), alone + "its element 4, counted from 0, cannot be read: ", false},
		{"a message that is no event", list("bob--2", 1, 0, "\x92\xa1p\x80"), alone + "its element 3, counted from 0, cannot be read: ", false},
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
			l.Redis.ZRem(l.ctx, "jobs:scheduled:main", job(bid))
			l.Redis.RPush(l.ctx, "jobs:instant:main", job(bid))
			l.take("ruby", time.Now())
		}, "batches:%s: is being delivered: run this again when it has been [later]", true},
	} {
		t.Run(odd.name, func(t *testing.T) {
			rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
				l := newLeft(t, server)
				bid := l.batchesOf(bob)[0]
				odd.make(l, bid)
				told := odd.told
				if before, after, is := strings.Cut(told, "%s"); is {
					told = before + bid + after
				}
				before := dump(t, l.Redis)
				would, tells := l.migrate(store.Migration{})
				assert.Equal(t, before, dump(t, l.Redis))
				require.Len(t, tells, 1)
				assert.Contains(t, tells[0], told)
				done, applied := l.apply()
				assert.Equal(t, would, done)
				assert.Equal(t, tells, applied)
				after := dump(t, l.Redis)
				for key, value := range before {
					if key == "batches:"+uid || key == "batches:"+bid && strings.Contains(told, bid) {
						assert.Equal(t, value, after[key], "it stays as it was")
					}
				}
				if odd.later {
					assert.Equal(t, store.Migrated{Batches: 3, Events: 5, Later: 1}, done)
					l.finish("ruby", bid)
					done, tells = l.apply()
					assert.Empty(t, tells)
					assert.Zero(t, done.Batches)
					done, _ = l.apply()
					assert.True(t, done.Done(), done)
				}
				assert.Equal(t, []int{1, 2, 3, 4, 5}, l.drain()[alice], "the others are moved")
			})
		})
	}
}

func TestMigrateRefusesAStrangeRedis(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		f.Redis.Set(t.Context(), "batches:index", "x", 0)
		_, err := f.Migrate(t.Context(), store.Migration{Apply: true})
		assert.ErrorContains(t, err, "batches:index is a string, must be a zset")
	})
	t.Run("cluster", func(t *testing.T) {
		f := storetest.Open(t, rdbtest.ClusterNode(t))
		_, err := f.Migrate(t.Context(), store.Migration{})
		assert.ErrorContains(t, err, "Redis Cluster")
	})
}

func TestMigrateMovesWhatCannotBeReadIfAskedTo(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		l := newLeft(t, server)
		bid := l.batchesOf(bob)[0]
		l.Redis.LInsertBefore(l.ctx, "batches:"+bid, string(packed(t, "widgets", 2)), "\xc1")
		l.Redis.HIncrBy(l.ctx, "batches:gauges:event", string(bob), 1)
		_, told := l.apply()
		require.Len(t, told, 1)
		done, told := l.migrate(store.Migration{Apply: true, Unreadable: true})
		assert.Empty(t, told)
		assert.Equal(t, store.Migrated{Batches: 1, Events: 4}, done)
		l.RequireSound()
	})
}

// TestMigrateReadsLargeBatches has more events than are read at once, the last of which cannot be read.
func TestMigrateReadsLargeBatches(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		l := newLeft(t, server)
		bid := l.batchesOf(bob)[0]
		var events []any
		for i := range 2500 {
			events = append(events, []byte(packed(t, "widgets", i+4)))
		}
		l.Redis.RPush(l.ctx, "batches:"+bid, events...)
		l.Redis.RPush(l.ctx, "batches:"+bid, "x")
		_, told := l.apply()
		require.Len(t, told, 1)
		assert.Contains(t, told[0], "its element 2506, counted from 0, cannot be read")
		l.Redis.RPop(l.ctx, "batches:"+bid)
		l.Redis.HIncrBy(l.ctx, "batches:gauges:event", string(bob), 2500)
		done, told := l.apply()
		assert.Empty(t, told)
		assert.Equal(t, store.Migrated{Batches: 1, Events: 2503}, done)
		l.RequireSound()
		assert.Len(t, l.drain()[bob], 2503)
	})
}

// TestMigrateJoinsWhatTheOriginalAppendedToOurs has the original's web find a batch of ours current, and take it for its own.
func TestMigrateJoinsWhatTheOriginalAppendedToOurs(t *testing.T) {
	for _, by := range []string{"a migration", "a worker", "memory"} {
		t.Run(by, func(t *testing.T) {
			rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
				f := newFixture(t, server)
				l := &left{original{f}, t.Context()}
				f.AddSubscriber(bob, time.Hour, 10, "widgets")
				f.PublishEvents("widgets", 1, 2, 0)
				for i := 3; i <= 5; i++ {
					err := l.ingest(bob, packed(t, "widgets", i), 10, after(i).UnixMilli(), after(i).UnixMilli())
					assert.Equal(t, i < 5, err != nil, "the original answers 500 to the first two")
				}
				bid := l.batchesOf(bob)[0]
				require.EqualValues(t, 3, l.Redis.LLen(l.ctx, "batches:"+bid).Val())
				switch by {
				case "a migration":
					done, told := l.apply()
					assert.Equal(t, store.Migrated{Batches: 1, Events: 3}, done)
					assert.Empty(t, told)
					l.RequireSound()
				case "memory":
					dropped, err := l.DropOldest(l.ctx)
					require.NoError(t, err)
					assert.Equal(t, []store.DroppedBatch{{Subscriber: bob, Events: 5}}, dropped)
					l.RequireSound()
					assert.Empty(t, l.drain())
					return
				}
				assert.Equal(t, map[bus.Token][]int{bob: {1, 2, 3, 4, 5}}, l.drain())
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
		assert.Equal(t, []int{1, 2, 3, 4, 5, 6, 7}, sortedCopy(got[alice]))
		assert.Equal(t, []int{1, 2, 3, 6, 7}, sortedCopy(got[bob]))
		l.RequireSound()
		done, _ := l.migrate(store.Migration{})
		assert.Zero(t, done.Batches)
	})
}

// TestAWorkerPutsOffWhatItCannotAdopt leaves such a batch, and its job, for people to look at.
func TestAWorkerPutsOffWhatItCannotAdopt(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		l := newLeft(t, server)
		bid := l.batchesOf(bob)[0]
		l.Redis.LSet(l.ctx, "batches:"+bid, 1, "x")
		l.Redis.ZAdd(l.ctx, "jobs:scheduled:main", redis.Z{Score: 0, Member: job(bid)})
		l.MakeInstant(1000)
		for task := l.Take("w1", 1000); task != nil; task = l.Take("w1", 1000) {
			require.Equal(t, alice, task.Delivery.Subscriber)
			l.Complete(task, store.Done)
		}
		assert.InDelta(t, after(61_000).UnixMilli(), l.Redis.ZScore(l.ctx, "jobs:scheduled:main", job(bid)).Val(), 1)
		assert.EqualValues(t, 6, l.Redis.LLen(l.ctx, "batches:"+bid).Val())
	})
}

func sortedCopy(numbers []int) []int { return slices.Sorted(slices.Values(numbers)) }

func TestMigrateHidesTokensInCounters(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		l := newLeft(t, server)
		gone := "carol--0123456789abcdef0123456789abcdef"
		counter := func(name string, values ...string) bus.Counter {
			var tags []bus.Tag
			for i, value := range values {
				tags = append(tags, bus.Tag{Name: []string{"queue", "status"}[i], Value: value})
			}
			return bus.NewCounter(name, tags...)
		}
		require.NoError(t, l.AddCounters(l.ctx, map[bus.Counter]int64{
			counter("events.added", string(alice)): 5, counter("events.added", "alice"): 2,
			counter("delivery.batches", gone, "success"): 3, counter("jobs.scrubbed", "main"): 1,
		}))
		l.Redis.HSet(l.ctx, "counters", "\xc1", 1)
		before := dump(t, l.Redis)
		would, _ := l.migrate(store.Migration{})
		assert.Equal(t, before, dump(t, l.Redis))
		done, _ := l.apply()
		assert.Equal(t, would, done)
		assert.Equal(t, 2, done.Renamed)
		counts, err := l.Counters(l.ctx)
		require.NoError(t, err)
		assert.Equal(t, map[bus.Counter]int64{
			counter("events.added", "alice"): 7, counter("delivery.batches", string(bus.PublicName(bus.Token(gone), "")), "success"): 3, counter("jobs.scrubbed", "main"): 1,
		}, counts)
		done, _ = l.apply()
		assert.True(t, done.Done(), done)
	})
}

func TestMigrateLeavesCountersThatAreNoNumbers(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		l := newLeft(t, server)
		counter := bus.NewCounter("events.added", bus.Tag{Name: "queue", Value: string(alice)})
		require.NoError(t, l.AddCounters(l.ctx, map[bus.Counter]int64{counter: 5}))
		field := l.Redis.HKeys(l.ctx, "counters").Val()[0]
		l.Redis.HSet(l.ctx, "counters", field, "1.5")
		l.Redis.HSet(l.ctx, "batches:gauges:event", "carol--3", 0)
		would, tells := l.migrate(store.Migration{})
		assert.Equal(t, []string{"counters: 1 counters with a token in their name whose value is no integer [refused]"}, tells)
		done, applied := l.apply()
		assert.Equal(t, would, done)
		assert.Equal(t, tells, applied)
		assert.Equal(t, 1, done.Removed, "it goes on")
		assert.Equal(t, "1.5", l.Redis.HGet(l.ctx, "counters", field).Val())
	})
}

// TestMigrateBack gives what this program has to the original.
func TestMigrateBack(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		l := &left{original{f}, t.Context()}
		f.AddSubscriber(alice, 500*time.Millisecond, 2, "widgets")
		f.AddSubscriber(bob, time.Hour, 10, "widgets")
		f.PublishEvents("widgets", 1, 5, 0)
		running := f.Take("w1", 1)
		require.Nil(t, f.Take("w2", 1), "the second waits for its turn")
		l.Redis.HSet(l.ctx, "workers", "w1", time.Now().UnixMilli())
		before := dump(t, l.Redis)
		would, told := l.migrate(store.Migration{Back: true})
		assert.Equal(t, before, dump(t, l.Redis))
		assert.Equal(t, store.Migrated{Batches: 3, Events: 8, Later: 1}, would)
		done, again := l.migrate(store.Migration{Back: true, Apply: true})
		assert.Equal(t, would, done)
		assert.Equal(t, told, again)
		assert.Equal(t, []string{"batch:" + string(running.Delivery.Batch) + ": is being delivered: run this again when it has been [later]"}, told)
		assert.Empty(t, l.Redis.Keys(l.ctx, "batches:current:*").Val())
		f.Complete(running, store.Done)
		done, told = l.migrate(store.Migration{Back: true, Apply: true})
		assert.True(t, done.Done(), done)
		assert.Empty(t, told)
		assert.Empty(t, l.Redis.Keys(l.ctx, "batch:*").Val())
		assert.Empty(t, l.Redis.Keys(l.ctx, "batches:line:*").Val())

		// The original delivers it all.
		got := map[string]int{}
		for l.Redis.LLen(l.ctx, "jobs:instant:main").Val() > 0 {
			bid := l.take("ruby", time.Now())
			batch := l.Redis.LRange(l.ctx, "batches:"+bid, 0, -1).Val()
			for _, event := range batch[3:] {
				got[fmt.Sprintf("%s %d", batch[0], number(t, wire.PackedEvent(event)))]++
			}
			l.finish("ruby", bid)
		}
		assert.Equal(t, map[string]int{"alice--1 3": 1, "alice--1 4": 1, "alice--1 5": 1,
			"bob--2 1": 1, "bob--2 2": 1, "bob--2 3": 1, "bob--2 4": 1, "bob--2 5": 1}, got)
		assert.Zero(t, l.Redis.SCard(l.ctx, "jobs:index:main").Val())
		assert.Zero(t, l.Redis.ZCard(l.ctx, "batches:index").Val())
	})
}

// TestMigrateBackAndForth ends where it began, but for the current batches.
func TestMigrateBackAndForth(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		l := newLeft(t, server)
		l.apply()
		there := dump(t, l.Redis)
		done, told := l.migrate(store.Migration{Back: true, Apply: true})
		assert.Equal(t, 4, done.Batches)
		assert.Empty(t, told)
		assert.NotEqual(t, there, dump(t, l.Redis))
		l.apply()
		assert.Equal(t, there, dump(t, l.Redis))
	})
}

// TestMigrateBackRefusesWhatTheOriginalCannotRead has events that end its worker.
func TestMigrateBackRefusesWhatTheOriginalCannotRead(t *testing.T) {
	for reason, event := range map[string]bus.Event{
		"its URL has a query":                 {URL: "https://x.example/1?a=b"},
		"its data is no object":               {URL: "https://x.example/1", Data: []byte(`[1]`)},
		"its data has more than the 64 bytes": {URL: "https://x.example/1", Data: []byte(`{"a":"` + strings.Repeat("a", 100) + `"}`)},
		"":                                    {URL: "https://x.example/1", Data: []byte(`{"a":["?"]}`)},
	} {
		t.Run(reason, func(t *testing.T) {
			rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
				f := newFixture(t, server)
				l := &left{original{f}, t.Context()}
				f.AddSubscriber(bob, time.Hour, 10, "widgets")
				event.Topic, event.Type = "widgets", bus.Update
				packed, err := wire.PackEvent(&event, 1000)
				require.NoError(t, err)
				require.NoError(t, f.Publish(l.ctx, store.Publication{
					Topic: "widgets", Publisher: publisher, Events: []wire.PackedEvent{packed}, ReceivedAt: start.UnixMilli(),
				}))
				done, told := l.migrate(store.Migration{Back: true, Apply: true})
				if reason == "" {
					assert.Equal(t, store.Migrated{Batches: 1, Events: 1}, done)
					return
				}
				assert.Equal(t, store.Migrated{Refused: 1}, done)
				assert.Contains(t, told[0], "its element 3, counted from 0, cannot be read: "+reason)
				done, _ = l.migrate(store.Migration{Back: true, Apply: true, Unreadable: true})
				assert.Equal(t, store.Migrated{Batches: 1, Events: 1}, done)
			})
		})
	}
}

// TestMigrateWhileEverythingRuns has the original's web run, our worker, and migrations one after the other; and either our
// web or a worker of the original. Every event that was acknowledged must be delivered.
func TestMigrateWhileEverythingRuns(t *testing.T) {
	for _, also := range []string{"our web", "their worker"} {
		t.Run(also, func(t *testing.T) {
			rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) { migrateWhile(t, server, also == "our web") })
		})
	}
}

func migrateWhile(t *testing.T, server *rdbtest.Server, ourWeb bool) {
	const each = 300
	l := newLeft(t, server)
	require.Len(t, l.drain(), 2)
	l.AddSubscriber(alice, 5*time.Millisecond, 3, "widgets")
	l.AddSubscriber(bob, 20*time.Millisecond, 7, "widgets")
	now := func() int64 { return time.Now().UnixMilli() }

	var mu sync.Mutex
	acknowledged, delivered := map[string]bool{}, map[string]int{}
	acknowledge := func(token bus.Token, n int) {
		mu.Lock()
		defer mu.Unlock()
		acknowledged[fmt.Sprintf("%s %d", token, n)] = true
	}
	receive := func(token bus.Token, event wire.PackedEvent) {
		mu.Lock()
		defer mu.Unlock()
		delivered[fmt.Sprintf("%s %d", token, number(t, event))]++
	}

	var writers, others sync.WaitGroup
	for web := range 2 { // of the original
		writers.Go(func() {
			for i := range each {
				n := 10_000*(web+1) + i
				for token, most := range map[bus.Token]int{alice: 3, bob: 7} {
					if l.ingest(token, packed(t, "widgets", n), most, now(), now()+5) == nil {
						acknowledge(token, n)
					}
				}
			}
		})
	}
	if ourWeb {
		writers.Go(func() {
			for i := range each {
				n := 50_000 + i
				p := store.Publication{Topic: "widgets", Publisher: publisher, Events: []wire.PackedEvent{packed(t, "widgets", n)}, ReceivedAt: now()}
				if assert.NoError(t, l.Publish(l.ctx, p)) {
					acknowledge(alice, n)
					acknowledge(bob, n)
				}
			}
		})
	}
	deliver := func() {
		_, err := l.Schedule(l.ctx, bus.QueueMain, time.Now(), 1000)
		assert.NoError(t, err)
		task, err := l.Acquire(l.ctx, bus.QueueMain, "w1", bus.Failing, time.Now())
		if !assert.NoError(t, err) || task == nil {
			return
		}
		for _, event := range task.Delivery.Events {
			receive(task.Delivery.Subscriber, event)
		}
		_, err = l.Settle(l.ctx, task, store.Done, time.Now())
		assert.NoError(t, err)
	}
	loops := []func(){deliver, func() {
		_, err := l.Migrate(l.ctx, store.Migration{Apply: true, Tell: func(u store.Unmoved) { assert.True(t, u.Later, u) }})
		assert.NoError(t, err)
	}}
	if !ourWeb {
		loops = append(loops, func() { // their worker, which takes away the job of a batch that it does not find
			bid := l.take("ruby", time.Now())
			if bid == "" {
				return
			}
			batch := l.Redis.LRange(l.ctx, "batches:"+bid, 0, -1).Val()
			for i := 3; i < len(batch); i++ {
				receive(bus.Token(batch[0]), wire.PackedEvent(batch[i]))
			}
			l.finish("ruby", bid)
		})
	}
	stop := make(chan struct{})
	for _, loop := range loops {
		others.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					loop()
				}
			}
		})
	}
	writers.Wait()
	close(stop)
	others.Wait()

	_, told := l.apply()
	assert.Empty(t, told)
	violations, err := storetest.Check(l.ctx, l.Store)
	require.NoError(t, err)
	for _, v := range violations {
		// The original gives a batch its job in a step of its own. Until then the batch may have been moved, given one here,
		// delivered and removed. Who takes the late job discards it.
		assert.Equal(t, "is for a batch that is not there", v.Problem, v)
	}
	for l.Redis.SCard(l.ctx, "jobs:index:main").Val() > 0 {
		deliver()
	}
	for event := range acknowledged {
		assert.NotZero(t, delivered[event], event)
	}
	for event, n := range delivered {
		assert.Equal(t, 1, n, event)
	}
	l.RequireSound()
	assert.Empty(t, l.Redis.Keys(l.ctx, "batch*:????????????????????").Val())
}
