package console_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/console"
	"routemaster/internal/layout"
	"routemaster/internal/rdb"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store/storetest"
)

const rootKey, namespace = "the-root-key", "ns:"

// open opens the partition that has a bus's sessions: on a cluster the first one, whose namespace
// begins their keys too.
func open(t testing.TB, redis *rdbtest.Server) *rdb.Partition {
	t.Helper()
	if redis.IsCluster() {
		return storetest.OpenAll(t, redis).First().Partition()
	}
	return redis.Open(t).Partition(namespace)
}

var (
	client = console.Session{Token: "shop--1", Client: "shop", Person: "Ada", From: "192.0.2.7"}
	root   = console.Session{Client: "root", LookOnly: true}
)

func TestASessionIsGoodOnEveryProcessUntilItIsEnded(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, redis *rdbtest.Server) {
		ctx, now := t.Context(), time.UnixMilli(time.Now().UnixMilli())
		clock := func() time.Time { return now }
		p := open(t, redis)
		one, other := console.NewSessions(p, rootKey, clock), console.NewSessions(open(t, redis), rootKey, clock)
		keys, before := layout.Keys{Namespace: p.Namespace()}, rdbtest.Dump(t, redis.Raw)
		for made, ttl := range map[console.Session]time.Duration{client: 12 * time.Hour, root: 30 * 24 * time.Hour} {
			cookie, err := one.Begin(ctx, made)
			require.NoError(t, err)
			made.MadeAt = now
			found, err := other.Find(ctx, cookie)
			require.NoError(t, err)
			assert.Equal(t, made, found)

			for key, value := range rdbtest.Dump(t, redis.Raw) {
				assert.NotContains(t, key+value, cookie)
				assert.NotContains(t, key+value, rootKey)
			}
			ids := redis.Raw.ZRange(ctx, keys.Sessions(), 0, -1).Val()
			require.Len(t, ids, 1)
			for _, key := range []string{keys.Session(ids[0]), keys.Sessions()} {
				assert.InDelta(t, ttl.Seconds(), redis.Raw.PTTL(ctx, key).Val().Seconds(), 60, key)
			}

			require.NoError(t, other.End(ctx, cookie))
			for _, s := range []*console.Store{one, other} {
				_, err = s.Find(ctx, cookie)
				assert.ErrorIs(t, err, console.ErrNone)
			}
			assert.Equal(t, before, rdbtest.Dump(t, redis.Raw))
		}
	})
}

func TestWhoWritesToRedisMakesAndChangesNoSession(t *testing.T) {
	redis := rdbtest.Embedded(t)
	ctx, p := t.Context(), open(t, redis)
	s, keys := console.NewSessions(p, rootKey, time.Now), layout.Keys{Namespace: p.Namespace()}
	begin := func(made console.Session) (cookie, key string, fields map[string]string) {
		cookie, err := s.Begin(ctx, made)
		require.NoError(t, err)
		sum := sha256.Sum256([]byte(cookie))
		key = keys.Session(hex.EncodeToString(sum[:]))
		return cookie, key, redis.Raw.HGetAll(ctx, key).Val()
	}
	lookOnly := client
	lookOnly.LookOnly = true
	_, _, ofRoot := begin(root)
	for _, made := range []console.Session{client, lookOnly, root} {
		cookie, key, fields := begin(made)
		require.Len(t, fields, 7)
		changes := map[string]string{
			"token": "", "client": "root", "person": "Eve", "from": "192.0.2.8", "look_only": strconv.FormatBool(!made.LookOnly),
			"made_at": fmt.Sprint(time.Now().Add(time.Hour).UnixMilli()), "proof": ofRoot["proof"],
		}
		if made.Root() {
			changes["token"], changes["client"] = string(client.Token), client.Client
		}
		for field, value := range changes {
			require.NoError(t, redis.Raw.HSet(ctx, key, field, value).Err())
			_, err := s.Find(ctx, cookie)
			assert.ErrorIs(t, err, console.ErrNone, "%s is %q", field, value)
			require.NoError(t, redis.Raw.HSet(ctx, key, field, fields[field]).Err())
			_, err = s.Find(ctx, cookie)
			require.NoError(t, err, "it is as it was")
		}
		require.NoError(t, redis.Raw.HDel(ctx, key, "token").Err())
		_, err := s.Find(ctx, cookie)
		assert.Equal(t, made.Root(), err == nil, "without a token: %v", err)
		require.NoError(t, redis.Raw.HSet(ctx, key, ofRoot).Err())
		_, err = s.Find(ctx, cookie)
		assert.ErrorIs(t, err, console.ErrNone, "all of it is another's")
	}
}

func TestNoPartOfASessionMovesToAnotherField(t *testing.T) {
	redis := rdbtest.Embedded(t)
	ctx, p := t.Context(), open(t, redis)
	s, keys := console.NewSessions(p, rootKey, time.Now), layout.Keys{Namespace: p.Namespace()}
	cookie, err := s.Begin(ctx, client)
	require.NoError(t, err)
	id := redis.Raw.ZRange(ctx, keys.Sessions(), 0, -1).Val()[0]
	require.NoError(t, redis.Raw.HSet(ctx, keys.Session(id), "token", "", "client", string(client.Token)+client.Client).Err())
	_, err = s.Find(ctx, cookie)
	assert.ErrorIs(t, err, console.ErrNone)
}

func TestANewRootKeyEndsAllSessions(t *testing.T) {
	redis := rdbtest.Embedded(t)
	one := console.NewSessions(open(t, redis), rootKey, time.Now)
	renewed := console.NewSessions(open(t, redis), "another-root-key", time.Now)
	for _, made := range []console.Session{client, root} {
		cookie, err := one.Begin(t.Context(), made)
		require.NoError(t, err)
		_, err = renewed.Find(t.Context(), cookie)
		assert.ErrorIs(t, err, console.ErrNone)
	}
}

func TestASessionEndsEvenIfRedisKeepsIt(t *testing.T) {
	redis := rdbtest.Embedded(t)
	ctx, p, now := t.Context(), open(t, redis), time.Now()
	s, keys := console.NewSessions(p, rootKey, func() time.Time { return now }), layout.Keys{Namespace: p.Namespace()}
	for _, made := range []console.Session{client, root} {
		begun := now
		cookie, err := s.Begin(ctx, made)
		require.NoError(t, err)
		for _, id := range redis.Raw.ZRange(ctx, keys.Sessions(), 0, -1).Val() {
			redis.Raw.Persist(ctx, keys.Session(id))
		}
		now = begun.Add(made.TTL() - time.Second)
		_, err = s.Find(ctx, cookie)
		require.NoError(t, err)
		now = begun.Add(made.TTL())
		_, err = s.Find(ctx, cookie)
		assert.ErrorIs(t, err, console.ErrNone)
	}
}

func TestTooManySessionsEndTheFirst(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, redis *rdbtest.Server) {
		ctx, p := t.Context(), open(t, redis)
		s, keys := console.NewSessions(p, rootKey, time.Now), layout.Keys{Namespace: p.Namespace()}
		for _, c := range []struct{ others, left int }{{498, 500}, {499, 501}, {500, 502}, {998, 1000}, {999, 1000}, {1005, 1000}} {
			require.NoError(t, redis.Raw.Del(ctx, keys.Sessions()).Err())
			first, err := s.Begin(ctx, client)
			require.NoError(t, err)
			others := []goredis.Z{{Score: float64(time.Now().UnixMilli() - 1), Member: "ended"}}
			for i := range c.others {
				others = append(others, goredis.Z{Score: float64(time.Now().Add(13 * time.Hour).UnixMilli()), Member: fmt.Sprint("other", i)})
			}
			require.NoError(t, redis.Raw.ZAdd(ctx, keys.Sessions(), others...).Err())

			second, err := s.Begin(ctx, client)
			require.NoError(t, err)
			_, err = s.Find(ctx, second)
			assert.NoError(t, err)
			_, err = s.Find(ctx, first)
			assert.Equal(t, c.others >= 999, errors.Is(err, console.ErrNone), "it would end first; %d others", c.others)
			assert.Equal(t, int64(c.left), redis.Raw.ZCard(ctx, keys.Sessions()).Val(), "%d others", c.others)
			assert.ErrorIs(t, redis.Raw.ZScore(ctx, keys.Sessions(), "ended").Err(), rdb.Nil)
		}
	})
}

func TestAClientsSessionsEndNoneButItsOwn(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, redis *rdbtest.Server) {
		ctx, p, now := t.Context(), open(t, redis), time.Now()
		s, keys := console.NewSessions(p, rootKey, func() time.Time { return now }), layout.Keys{Namespace: p.Namespace()}
		found := func(cookie string) bool {
			_, err := s.Find(ctx, cookie)
			return err == nil
		}
		begin := func(made console.Session) string {
			now = now.Add(time.Second)
			cookie, err := s.Begin(ctx, made)
			require.NoError(t, err)
			return cookie
		}
		ofRoot := begin(console.Session{Client: "root"})
		ofOther := begin(console.Session{Token: "search--1", Client: "search"})
		require.NoError(t, redis.Raw.ZAdd(ctx, keys.Sessions(), goredis.Z{Score: float64(now.Add(time.Hour).UnixMilli()), Member: "odd"}).Err())
		require.NoError(t, redis.Raw.Set(ctx, keys.Session("odd"), "no hash", 0).Err())
		var own []string
		for range 20 {
			own = append(own, begin(client))
		}
		assert.True(t, found(own[0]), "20 may be")
		for range 3 {
			own = append(own, begin(client))
		}
		for i, cookie := range own {
			assert.Equal(t, i >= 3, found(cookie), "its %dth", i)
		}
		assert.True(t, found(ofRoot))
		assert.True(t, found(ofOther))
	})
}

func TestWhileRedisIsAwayWhoWasThereMayLook(t *testing.T) {
	redis := rdbtest.Real(t)
	ctx, now := t.Context(), time.Now()
	s := console.NewSessions(open(t, redis), rootKey, func() time.Time { return now })
	seen, err := s.Begin(ctx, client)
	require.NoError(t, err)
	unseen, err := s.Begin(ctx, client)
	require.NoError(t, err)
	_, err = s.Find(ctx, seen)
	require.NoError(t, err)

	redis.Kill(t)
	_, err = s.Find(ctx, unseen)
	assert.ErrorIs(t, err, bus.ErrUnavailable)
	now = now.Add(15*time.Minute - time.Millisecond)
	found, err := s.Find(ctx, seen)
	require.NoError(t, err)
	assert.True(t, found.Stale)
	assert.Equal(t, client.Token, found.Token)
	now = now.Add(time.Millisecond)
	_, err = s.Find(ctx, seen)
	assert.ErrorIs(t, err, bus.ErrUnavailable)
	assert.ErrorIs(t, s.End(ctx, seen), bus.ErrUnavailable)
}
