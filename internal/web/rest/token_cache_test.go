package rest

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store"
	"routemaster/internal/store/storetest"
)

func TestMain(m *testing.M) { storetest.MainWithCluster(m) }

// countedTokens counts the calls to the stores of a bus that read tokens.
type countedTokens struct {
	*store.Bus
	reads, lookUps atomic.Int64
}

func (c *countedTokens) Tokens(ctx context.Context) (map[bus.Token]bus.ClientName, error) {
	c.reads.Add(1)
	return c.Bus.Tokens(ctx)
}

func (c *countedTokens) FindTokens(ctx context.Context, tokens []bus.Token) (map[bus.Token]bus.ClientName, error) {
	c.lookUps.Add(1)
	return c.Bus.FindTokens(ctx, tokens)
}

func TestRefusedBasicCredentialsCostOneLookUpAtMost(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, redis *rdbtest.Server) {
		ctx, now := t.Context(), time.Now()
		tokens := &countedTokens{Bus: storetest.OpenAll(t, redis)}
		c := newTokenCache(tokens, "the-root-key", func() time.Time { return now })
		find := func(credentials string) (bus.Token, int64) {
			before := tokens.lookUps.Load()
			client, err := c.find(ctx, digestOf(credentials), candidatesOf(credentials, len(c.rootKey)))
			if err != ErrRefused {
				require.NoError(t, err)
			}
			return client.Token, tokens.lookUps.Load() - before
		}
		colons := strings.Repeat(":", 200)
		for range 3 {
			token, _ := find(colons)
			assert.Empty(t, token)
		}
		assert.Equal(t, int64(1), tokens.lookUps.Load(), "of 64 parts that may be tokens, and three tries")
		_, lookUps := find("NO TOKEN:")
		assert.Zero(t, lookUps, "what cannot be a token")

		find("new:one:x")
		require.NoError(t, tokens.PutToken(ctx, "new", "short"))
		require.NoError(t, tokens.PutToken(ctx, "new:one", "long"))
		token, lookUps := find("new:one:two:y")
		assert.Equal(t, []any{bus.Token("new:one"), int64(1)}, []any{token, lookUps}, "the longest that is known")
		now = now.Add(negativeCacheTTL - time.Millisecond)
		token, _ = find("new:one:x")
		assert.Empty(t, token, "refused a moment ago")
		now = now.Add(time.Millisecond)
		token, _ = find("new:one:x")
		assert.Equal(t, bus.Token("new:one"), token)

		for i := range maxNegative + 10 {
			_, remember := c.unknown.look(secretDigest{byte(i), byte(i >> 8)})
			remember()
		}
		assert.LessOrEqual(t, len(c.unknown.refusedAt), maxNegative)
	})
}

func TestARefusalDoesNotOutliveATokenAddedHere(t *testing.T) {
	tokens := &countedTokens{Bus: storetest.OpenAll(t, rdbtest.Embedded(t))}
	c := newTokenCache(tokens, "the-root-key", time.Now)
	find := func() error {
		_, err := c.find(t.Context(), secretDigest{}, []candidate{{secret: "new"}})
		return err
	}
	assert.Equal(t, ErrRefused, find())
	_, remember := c.unknown.look(secretDigest{1}) // is being looked up while the token is added
	require.NoError(t, tokens.PutToken(t.Context(), "new", "new"))
	c.invalidate()
	remember()
	require.NoError(t, find())
	known, _ := c.unknown.look(secretDigest{1})
	assert.False(t, known)
}

// fixedTokens are tokens without a Redis, for a bubble of [synctest].
type fixedTokens struct {
	mu    sync.Mutex
	names map[bus.Token]bus.ClientName
	reads []time.Time
}

func (f *fixedTokens) Tokens(context.Context) (map[bus.Token]bus.ClientName, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reads = append(f.reads, time.Now())
	names := map[bus.Token]bus.ClientName{}
	for token, name := range f.names {
		names[token] = name
	}
	return names, nil
}

func (f *fixedTokens) FindTokens(context.Context, []bus.Token) (map[bus.Token]bus.ClientName, error) {
	return nil, nil
}

// TestWrongDigestsReadTheTokensTwiceASecondAtMost sends a wrong Digest every ms for 3 s.
func TestWrongDigestsReadTheTokensTwiceASecondAtMost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tokens := &fixedTokens{names: map[bus.Token]bus.ClientName{"alice--1": "alice"}}
		c := newTokenCache(tokens, "the-root-key", time.Now)
		named := func(name, token string) bool {
			_, err := c.findNamed(t.Context(), name, func(secret string) bool { return secret == token })
			if err != ErrRefused {
				assert.NoError(t, err)
			}
			return err == nil
		}
		var wrong sync.WaitGroup
		for i := range 3000 {
			wrong.Go(func() { assert.False(t, named([]string{"alice", "nobody"}[i%2], "wrong")) })
			time.Sleep(time.Millisecond)
			if i == 1234 {
				tokens.mu.Lock()
				tokens.names["alice--2"] = "alice"
				tokens.mu.Unlock()
				wrong.Go(func() {
					began := time.Now()
					assert.True(t, named("alice", "alice--2"), "a new token works on every process, with its first request")
					assert.LessOrEqual(t, time.Since(began), tokenCacheTTL)
				})
			}
		}
		wrong.Wait()
		for i := 2; i < len(tokens.reads); i++ {
			assert.GreaterOrEqual(t, tokens.reads[i].Sub(tokens.reads[i-2]), time.Second)
		}
		assert.Greater(t, len(tokens.reads), 4)
		before := len(tokens.reads)
		began := time.Now()
		assert.True(t, named("alice", "alice--1"))
		assert.Zero(t, time.Since(began), "right credentials do not wait")
		assert.LessOrEqual(t, len(tokens.reads), before+1)

		gone, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Millisecond, cancel)
		_, err := c.findNamed(gone, "alice", func(string) bool { return false })
		assert.ErrorIs(t, err, context.Canceled, "nobody waits for a client that has left")
	})
}
