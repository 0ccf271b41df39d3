package session_test

import (
	"fmt"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/console/session"
	"routemaster/internal/rdb"
	"routemaster/internal/rdb/rdbtest"
)

func TestMain(m *testing.M) { rdbtest.Main(m) }

const rootKey = "the-root-key"

var (
	client = session.Session{Token: "shop--1", Client: "shop", Person: "Ada"}
	root   = session.Session{Client: "root", LookOnly: true}
)

func TestASessionIsGoodOnEveryProcessUntilItIsEnded(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, redis *rdbtest.Server) {
		ctx, now := t.Context(), time.UnixMilli(time.Now().UnixMilli())
		clock := func() time.Time { return now }
		one := session.New(redis.Open(t).Partition("ns:"), rootKey, clock)
		other := session.New(redis.Open(t).Partition("ns:"), rootKey, clock)
		keys := session.Keys{Namespace: "ns:"}
		for made, ttl := range map[session.Session]time.Duration{client: 12 * time.Hour, root: 30 * 24 * time.Hour} {
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
			for _, s := range []*session.Store{one, other} {
				_, err = s.Find(ctx, cookie)
				assert.ErrorIs(t, err, session.ErrNone)
			}
			assert.Empty(t, rdbtest.Dump(t, redis.Raw))
		}
	})
}

func TestOnlyWhoKnowsTheRootKeyMakesSessionsOfRoot(t *testing.T) {
	redis := rdbtest.Embedded(t)
	ctx, keys := t.Context(), session.Keys{}
	s := session.New(redis.Open(t).Partition(""), rootKey, time.Now)
	ofRoot, err := s.Begin(ctx, root)
	require.NoError(t, err)
	ofClient, err := s.Begin(ctx, client)
	require.NoError(t, err)

	renewed := session.New(redis.Open(t).Partition(""), "another-root-key", time.Now)
	_, err = renewed.Find(ctx, ofRoot)
	assert.ErrorIs(t, err, session.ErrNone)
	_, err = renewed.Find(ctx, ofClient)
	assert.NoError(t, err, "a client's does not depend on the root key")

	// Somebody who writes to Redis makes a client's session root's, with the proof of another.
	var proof string
	for _, id := range redis.Raw.ZRange(ctx, keys.Sessions(), 0, -1).Val() {
		if redis.Raw.HGet(ctx, keys.Session(id), "token").Val() == "" {
			proof = redis.Raw.HGet(ctx, keys.Session(id), "proof").Val()
		}
	}
	require.NotEmpty(t, proof)
	for _, id := range redis.Raw.ZRange(ctx, keys.Sessions(), 0, -1).Val() {
		require.NoError(t, redis.Raw.HSet(ctx, keys.Session(id), "token", "", "proof", proof).Err())
	}
	_, err = s.Find(ctx, ofClient)
	assert.ErrorIs(t, err, session.ErrNone)
	_, err = s.Find(ctx, ofRoot)
	assert.NoError(t, err)
}

func TestTooManySessionsEndTheFirst(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, redis *rdbtest.Server) {
		ctx, keys := t.Context(), session.Keys{}
		s := session.New(redis.Open(t).Partition(""), rootKey, time.Now)
		first, err := s.Begin(ctx, client)
		require.NoError(t, err)
		var others []goredis.Z
		for i := range 999 {
			others = append(others, goredis.Z{Score: float64(time.Now().Add(13 * time.Hour).UnixMilli()), Member: fmt.Sprint("other", i)})
		}
		others = append(others, goredis.Z{Score: float64(time.Now().UnixMilli() - 1), Member: "ended"})
		require.NoError(t, redis.Raw.ZAdd(ctx, keys.Sessions(), others...).Err())

		second, err := s.Begin(ctx, client)
		require.NoError(t, err)
		_, err = s.Find(ctx, first)
		assert.ErrorIs(t, err, session.ErrNone, "it would have ended first")
		_, err = s.Find(ctx, second)
		assert.NoError(t, err)
		assert.Equal(t, int64(1000), redis.Raw.ZCard(ctx, keys.Sessions()).Val())
		assert.ErrorIs(t, redis.Raw.ZScore(ctx, keys.Sessions(), "ended").Err(), rdb.Nil)
	})
}

func TestWhileRedisIsAwayWhoWasThereMayLook(t *testing.T) {
	redis := rdbtest.Real(t)
	ctx, now := t.Context(), time.Now()
	s := session.New(redis.Open(t).Partition(""), rootKey, func() time.Time { return now })
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
