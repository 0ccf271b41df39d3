package console_test

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/console"
	"routemaster/internal/layout"
	"routemaster/internal/rdb"
	"routemaster/internal/rdb/rdbtest"
)

func keyOf(p *rdb.Partition, code string) string {
	sum := sha256.Sum256([]byte(code))
	return layout.Keys{Namespace: p.Namespace()}.LoginCode(hex.EncodeToString(sum[:]))
}

func TestACodeIsGoodOnceForAMinute(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, redis *rdbtest.Server) {
		ctx, p, before := t.Context(), open(t, redis), rdbtest.Dump(t, redis.Raw)
		one := console.NewSessions(p, rootKey, time.Now)
		other := console.NewSessions(open(t, redis), rootKey, time.Now)
		code, err := one.NewCode(ctx, client.Token, client.Person, true)
		require.NoError(t, err)
		assert.InDelta(t, time.Minute.Seconds(), redis.Raw.PTTL(ctx, keyOf(p, code)).Val().Seconds(), 30)
		for key, value := range rdbtest.Dump(t, redis.Raw) {
			assert.NotContains(t, key+value, code)
		}
		_, err = other.Find(ctx, code)
		assert.ErrorIs(t, err, console.ErrNone, "it is no cookie")

		var taken []console.Session
		var mu sync.Mutex
		var all sync.WaitGroup
		for i := range 8 {
			all.Go(func() {
				made, err := []*console.Store{one, other}[i%2].TakeCode(ctx, code)
				if err == nil {
					mu.Lock()
					defer mu.Unlock()
					taken = append(taken, made)
					return
				}
				assert.ErrorIs(t, err, console.ErrNone)
			})
		}
		all.Wait()
		assert.Equal(t, []console.Session{{Token: client.Token, Person: client.Person, LookOnly: true}}, taken)
		assert.Equal(t, before, rdbtest.Dump(t, redis.Raw))
	})
}

// TestAClientHas20Codes, however many it makes, and ends none but its own.
func TestAClientHas20Codes(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, redis *rdbtest.Server) {
		ctx, p := t.Context(), open(t, redis)
		s := console.NewSessions(p, rootKey, time.Now)
		keys := layout.Keys{Namespace: p.Namespace()}
		make := func(token bus.Token) string {
			code, err := s.NewCode(ctx, token, "Ada", false)
			require.NoError(t, err)
			return code
		}
		ofRoot, ofOther := make(""), make("search--1")
		require.NoError(t, redis.Raw.Set(ctx, keys.LoginCodes(console.ID(string(client.Token))), "something else", 0).Err())
		var own []string
		for range 300 {
			own = append(own, make(client.Token))
		}
		list := keys.LoginCodes(console.ID(string(client.Token)))
		assert.Equal(t, int64(20), redis.Raw.LLen(ctx, list).Val())
		assert.InDelta(t, time.Minute.Seconds(), redis.Raw.PTTL(ctx, list).Val().Seconds(), 30)
		left := 0
		for key := range rdbtest.Dump(t, redis.Raw) {
			if strings.HasPrefix(key, keys.LoginCode("")) {
				left++
			}
		}
		assert.Equal(t, 22, left)
		for i, code := range append(own, ofRoot, ofOther) {
			_, err := s.TakeCode(ctx, code)
			assert.Equal(t, i >= 280, err == nil, "its %dth", i)
		}
		assert.Zero(t, redis.Raw.Exists(ctx, list).Val())
	})
}

func TestWhoWritesToRedisMakesNoCode(t *testing.T) {
	redis := rdbtest.Embedded(t)
	ctx, p := t.Context(), open(t, redis)
	s := console.NewSessions(p, rootKey, time.Now)
	renewed := console.NewSessions(p, "another-root-key", time.Now)
	for name, change := range map[string]func(string) string{
		"of root":    func(text string) string { return strings.Replace(text, string(client.Token), "", 1) },
		"to change":  func(text string) string { return strings.Replace(text, `"look_only":true`, `"look_only":false`, 1) },
		"by another": func(text string) string { return strings.Replace(text, "Ada", "Eve", 1) },
		"no JSON":    func(string) string { return "{" },
		"as it was":  func(text string) string { return text },
	} {
		code, err := s.NewCode(ctx, client.Token, "Ada", true)
		require.NoError(t, err)
		text := redis.Raw.Get(ctx, keyOf(p, code)).Val()
		require.NoError(t, redis.Raw.Set(ctx, keyOf(p, code), change(text), 0).Err())
		_, err = s.TakeCode(ctx, code)
		assert.Equal(t, name == "as it was", err == nil, "%s: %v", name, err)
	}
	code, err := s.NewCode(ctx, "", "", false)
	require.NoError(t, err)
	_, err = renewed.TakeCode(ctx, code)
	assert.ErrorIs(t, err, console.ErrNone, "the root key is another")
	require.NoError(t, redis.Raw.LPush(ctx, keyOf(p, "odd"), "no string").Err())
	_, err = s.TakeCode(ctx, "odd")
	assert.ErrorIs(t, err, console.ErrNone)
}

func TestACodeNeedsRedis(t *testing.T) {
	redis := rdbtest.Real(t)
	s := console.NewSessions(open(t, redis), rootKey, time.Now)
	redis.Kill(t)
	_, err := s.NewCode(t.Context(), "", "", false)
	assert.ErrorIs(t, err, bus.ErrUnavailable)
	_, err = s.TakeCode(t.Context(), "any")
	assert.ErrorIs(t, err, bus.ErrUnavailable)
}
