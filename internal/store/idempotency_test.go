package store_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store"
	"routemaster/internal/store/storetest"
	"routemaster/internal/wire"
)

// keyed is a publication of one event with an idempotency key, at a time in ms after start.
func (f *fixture) keyed(by bus.Token, key, digest string, ttl time.Duration, ms int64) store.Publication {
	return store.Publication{
		Topic: "widgets", Publisher: by, Events: []wire.PackedEvent{storetest.Packed(f.T, "widgets", 1)}, ReceivedAt: storetest.Start.UnixMilli() + ms,
		IdempotencyKey: &bus.IdempotencyKey{Key: key, Digest: digest, TTL: ttl},
	}
}

// store publishes, and returns whether that stored anything.
func (f *fixture) store(p store.Publication) bool {
	f.T.Helper()
	receipt := f.PublishAll(f.T.Context(), p)[0]
	require.NoError(f.T, receipt.Err)
	return receipt.Stored
}

// keysOf returns how many idempotency keys a client has, and in how many slices.
func (f *fixture) keysOf(name bus.ClientName) (keys, slices int) {
	f.T.Helper()
	for _, key := range f.Redis.Keys(f.T.Context(), "idempotency:"+string(name)+"/*").Val() {
		keys += int(f.Redis.HLen(f.T.Context(), key).Val()) - 1
		slices++
	}
	return keys, slices
}

func TestIdempotentPublish(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		ctx := t.Context()
		f.AddSubscriber(storetest.Alice, 0, 100, "widgets", "gadgets")
		publish := func(by bus.Token, topic bus.TopicName, key, digest string) error {
			p := f.keyed(by, key, digest, time.Hour, 0)
			p.Topic = topic
			return f.Publish(ctx, p)
		}
		require.NoError(t, publish(storetest.Publisher, "widgets", "k", "d"))
		before := rdbtest.Dump(t, f.Redis)
		require.NoError(t, publish(storetest.Publisher, "widgets", "k", "d"), "a repetition")
		require.ErrorIs(t, publish(storetest.Publisher, "widgets", "k", "other"), bus.ErrIdempotencyKeyReused)
		assert.Equal(t, before, rdbtest.Dump(t, f.Redis), "neither adds anything")
		require.NoError(t, publish(storetest.Publisher, "widgets", "k2", "d"))
		require.NoError(t, publish(storetest.Bob, "gadgets", "k", "other"), "keys are each publisher's own")
		require.ErrorIs(t, publish(storetest.Bob, "widgets", "k3", "d"), bus.ErrTopicClaimed)
		bobs, _ := f.keysOf("bob")
		assert.Equal(t, 1, bobs, "a refused request uses no key up")
		assert.Len(t, storetest.Numbers(t, f.Take("w1", 0)), 3)
		f.RequireSound()
	})
}

func TestAnIdempotencyKeyLivesAsLongAsItsRequestSays(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		for _, ttl := range []time.Duration{time.Minute, 10 * time.Minute, time.Hour, 24 * time.Hour} {
			require.NoError(t, f.Redis.FlushAll(t.Context()).Err())
			f.Register()
			ms := ttl.Milliseconds()
			assert.True(t, f.store(f.keyed(storetest.Publisher, "k", "d", ttl, 0)))
			expires := f.Redis.PTTL(t.Context(), "idempotency:publisher/1").Val()
			assert.Greater(t, expires, ttl-time.Minute/2)
			assert.LessOrEqual(t, expires, ttl+ttl/4)
			assert.False(t, f.store(f.keyed(storetest.Publisher, "k", "d", ttl, ms-1)), "within its life")
			assert.False(t, f.store(f.keyed(storetest.Publisher, "k", "d", ttl, 2*ms-2)), "which begins anew with each use")
			renewed := f.Redis.PTTL(t.Context(), "idempotency:publisher/1").Val()
			assert.Greater(t, renewed, ttl-time.Minute/2)
			assert.True(t, f.store(f.keyed(storetest.Publisher, "k", "other", ttl, 4*ms)), "it is over")
			assert.LessOrEqual(t, f.Redis.PTTL(t.Context(), "idempotency:publisher/1").Val(), ttl+ttl/4)
		}
	})
}

// TestAnIdempotencyKeyIsFoundInWhicheverSliceItStands publishes with keys of all lives, in an order
// of its own, and again with keys that must still be there.
func TestAnIdempotencyKeyIsFoundInWhicheverSliceItStands(t *testing.T) {
	t.Parallel()
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		random := rand.New(rand.NewPCG(14, 0))
		until := map[int]int64{} // a key to when its life ends (ms)
		now := int64(0)
		for n := range 1000 {
			now += random.Int64N(120_000)
			ttl := time.Duration(60+random.IntN(600)) * time.Second
			if random.IntN(4) == 0 {
				ttl = time.Duration(60+random.IntN(86_341)) * time.Second
			}
			require.True(t, f.store(f.keyed(storetest.Publisher, strconv.Itoa(n), "d", ttl, now)))
			until[n] = now + ttl.Milliseconds()
			maps.DeleteFunc(until, func(_ int, ends int64) bool { return ends <= now })
			for old := range until { // one of them, by chance
				require.False(t, f.store(f.keyed(storetest.Publisher, strconv.Itoa(old), "d", time.Minute, now)), "key %d", old)
				until[old] = max(until[old], now+time.Minute.Milliseconds())
				require.ErrorIs(t, f.Publish(t.Context(), f.keyed(storetest.Publisher, strconv.Itoa(old), "other", ttl, now)), bus.ErrIdempotencyKeyReused)
				break
			}
		}
		_, slices := f.keysOf("publisher")
		assert.LessOrEqual(t, slices, 8)
		f.RequireSound()
	})
}

func TestAClientHasSoManyIdempotencyKeysAtMost(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server, func(o *store.Options) { o.IdempotencyKeys = 80 })
		require.True(t, f.store(f.keyed(storetest.Bob, "bob's", "d", time.Hour, 0)))
		require.NoError(t, f.DeleteTopic(t.Context(), "widgets", storetest.Bob))
		dropped, last := 0, 499
		for n := range last + 1 {
			p := f.keyed(storetest.Publisher, strconv.Itoa(n), "d", time.Hour, int64(n))
			receipt := f.PublishAll(t.Context(), p)[0]
			require.NoError(t, receipt.Err)
			require.True(t, receipt.Stored)
			dropped += receipt.DroppedKeys
			keys, _ := f.keysOf("publisher")
			require.LessOrEqual(t, keys, 80)
			require.Equal(t, n+1, keys+dropped, "all that have gone are counted")
		}
		for n := last; n > last-70; n-- {
			require.False(t, f.store(f.keyed(storetest.Publisher, strconv.Itoa(n), "d", time.Hour, int64(last))), "the newest stay: %d", n)
		}
		require.True(t, f.store(f.keyed(storetest.Publisher, "0", "d", time.Hour, int64(last))), "the oldest have gone")
		bobs, _ := f.keysOf("bob")
		assert.Equal(t, 1, bobs, "other clients' stay")
		f.RequireSound()
	})
}

// TestAnIdempotencyKeyTakesUnder100Bytes measures a real Redis, with slices of a few hundred keys,
// which it packs, and of many, around where their tables grow.
func TestAnIdempotencyKeyTakesUnder100Bytes(t *testing.T) {
	rdbtest.OneGoroutine(t)
	t.Parallel()
	server := rdbtest.Real(t)
	f := newFixture(t, server)
	ctx := t.Context()
	for _, c := range []struct {
		packed string
		keys   int
	}{{"128", 100}, {"128", 300}, {"512", 500}, {"128", 8_300}, {"128", 12_500}, {"128", 25_000}, {"128", 100_000}} {
		require.NoError(t, f.Redis.ConfigSet(ctx, "hash-max-listpack-entries", c.packed).Err())
		require.NoError(t, f.Redis.FlushAll(ctx).Err())
		f.Register()
		f.PublishEvents("widgets", 1, 1, 0)
		memory := func() int64 {
			m, err := f.Partition.Memory(ctx)
			require.NoError(t, err)
			return m.Used
		}
		for range 2 { // the buffers of the connection grow at the first
			f.PublishAll(ctx, f.keyedMany(storetest.Bob, 0, 1000)...)
		}
		before := memory()
		for n := 0; n < c.keys; n += 1000 {
			for _, receipt := range f.PublishAll(ctx, f.keyedMany(storetest.Publisher, n, min(1000, c.keys-n))...) {
				require.NoError(t, receipt.Err)
				require.Zero(t, receipt.DroppedKeys)
			}
		}
		var inKeys int64 // without what Redis needs for connections
		for _, key := range f.Redis.Keys(ctx, "idempotency:publisher/*").Val() {
			inKeys += f.Redis.MemoryUsage(ctx, key, 0).Val()
		}
		keys, slices := f.keysOf("publisher")
		require.Equal(t, c.keys, keys)
		t.Logf("%d keys in %d slices, packed up to %s: %.1f bytes a key, of %.1f that redis uses more", keys, slices, c.packed,
			float64(inKeys)/float64(keys), float64(memory()-before)/float64(keys))
		assert.Less(t, inKeys/int64(keys), int64(100))
		if keys >= 8_000 { // else the connection's buffers are more than the keys
			assert.Less(t, (memory()-before)/int64(keys), int64(100))
		}
	}
}

// keyedMany are publications with new keys.
func (f *fixture) keyedMany(by bus.Token, first, n int) []store.Publication {
	all := make([]store.Publication, n)
	for i := range all {
		key := fmt.Sprintf("%s/%d/%040d", by, i, first)
		all[i] = f.keyed(by, key, "d", time.Hour, 0)
		all[i].Topic = "of_" + bus.TopicName(strings.TrimRight(string(by), "-0123456789"))
	}
	return all
}

// TestAnIdempotencyKeyCostsFewCommands counts the commands of a publish with a key, and without
// one.
func TestAnIdempotencyKeyCostsFewCommands(t *testing.T) {
	server := rdbtest.Real(t)
	f := newFixture(t, server)
	f.AddSubscriber(storetest.Alice, time.Hour, 100, "widgets")
	require.True(t, f.store(f.keyed(storetest.Publisher, "first", "d", time.Hour, 0)))
	commands := func(p store.Publication) map[string]int {
		require.NoError(t, f.Redis.ConfigResetStat(t.Context()).Err())
		require.True(t, f.store(p))
		calls := map[string]int{}
		for line := range strings.SplitSeq(f.Redis.Info(t.Context(), "commandstats").Val(), "\r\n") {
			command, rest, _ := strings.Cut(strings.TrimPrefix(line, "cmdstat_"), ":calls=")
			n, _, _ := strings.Cut(rest, ",")
			if calls[command], _ = strconv.Atoi(n); calls[command] == 0 || strings.Contains(command, "config") {
				delete(calls, command)
			}
		}
		return calls
	}
	p := f.keyed(storetest.Publisher, "second", "d", time.Hour, 0)
	with := commands(p)
	p.IdempotencyKey = nil
	without := commands(p)
	for command, calls := range without {
		with[command] -= calls
	}
	maps.DeleteFunc(with, func(_ string, calls int) bool { return calls == 0 })
	assert.Equal(t, map[string]int{"hmget": 8, "hlen": 1, "hset": 1}, with, "of a key, beside what each publish costs: %v", without)
	assert.Equal(t, 1, without["hlen"], "of the plans only")
	for _, command := range []string{"unlink", "pexpire", "type", "get", "exists"} {
		assert.Zero(t, without[command], command)
	}
}

func TestTheLastTokenOfAClientTakesItsIdempotencyKeysAlong(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		ctx := t.Context()
		require.NoError(t, f.PutToken(ctx, "publisher--2", "publisher"))
		for n := range 8 { // in all the slices there may be
			f.store(f.keyed(storetest.Publisher, strconv.Itoa(n), "d", time.Minute<<n, 0))
		}
		require.NoError(t, f.DeleteToken(ctx, storetest.Publisher))
		_, slices := f.keysOf("publisher")
		require.Equal(t, 8, slices)
		assert.False(t, f.store(f.keyed("publisher--2", "0", "d", time.Minute, 0)), "its other token goes on with them")
		require.NoError(t, f.DeleteToken(ctx, "publisher--2"))
		_, slices = f.keysOf("publisher")
		assert.Zero(t, slices)
	})
}

func TestForeignBytesInIdempotencyKeysHinderNoPublish(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		ctx := t.Context()
		require.NoError(t, f.Redis.Set(ctx, "idempotency:publisher/1", "x", 0).Err())
		require.NoError(t, f.Redis.HSet(ctx, "idempotency:publisher/2", "life", "soon").Err())
		findings, err := storetest.Check(ctx, f.Store)
		require.NoError(t, err)
		assert.Len(t, findings, 1, "doctor reports the one that is no hash")
		for n := range 3 {
			assert.True(t, f.store(f.keyed(storetest.Publisher, strconv.Itoa(n), "d", time.Minute<<n, 0)))
			assert.False(t, f.store(f.keyed(storetest.Publisher, strconv.Itoa(n), "d", time.Minute<<n, 0)))
		}
		f.RequireSound()
	})
}

// TestAFullRedisAnswersARepetition repeats a stored request: the bus reports it as stored, though
// Redis accepts no new data.
func TestAFullRedisAnswersARepetition(t *testing.T) {
	server := rdbtest.Real(t)
	f := newFixture(t, server)
	require.True(t, f.store(f.keyed(storetest.Publisher, "k", "d", time.Hour, 0)))
	require.NoError(t, f.Redis.ConfigSet(t.Context(), "maxmemory", "1").Err())
	require.ErrorIs(t, f.Publish(t.Context(), f.keyed(storetest.Publisher, "new", "d", time.Hour, 0)), bus.ErrUnavailable)
	assert.False(t, f.store(f.keyed(storetest.Publisher, "k", "d", time.Hour, 0)))
	assert.False(t, f.store(f.keyed(storetest.Publisher, "k", "d", 2*time.Hour, 0)), "and lives on")
	dropped, err := f.DropIdempotencyKeys(t.Context(), []bus.ClientName{"publisher", "nobody"})
	require.NoError(t, err)
	assert.Equal(t, 1, dropped)
	assert.Zero(t, f.Redis.Exists(t.Context(), "idempotency:publisher/1").Val())
}

func TestTheOldestSlicesOfIdempotencyKeysAreDroppedFirst(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server, func(o *store.Options) { o.IdempotencyKeys = 80 })
		for n := range 35 {
			f.store(f.keyed(storetest.Publisher, strconv.Itoa(n), "d", time.Hour, int64(n)))
		}
		for _, left := range []int{25, 15, 5, 0, 0} {
			dropped, err := f.DropIdempotencyKeys(t.Context(), []bus.ClientName{"publisher"})
			require.NoError(t, err)
			keys, _ := f.keysOf("publisher")
			require.Equal(t, left, keys)
			assert.Equal(t, keys > 0 || dropped == 5, dropped > 0)
			if left == 5 {
				assert.False(t, f.store(f.keyed(storetest.Publisher, "34", "d", time.Hour, 35)), "the newest is still there")
			}
		}
	})
}
