package web

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/store"
	"routemaster/internal/store/storetest"
)

// countedTokens counts what is asked of the tokens of a store.
type countedTokens struct {
	*store.Store
	reads, lookUps atomic.Int64
}

func (c *countedTokens) Tokens(ctx context.Context) (map[bus.Token]bus.ClientName, error) {
	c.reads.Add(1)
	return c.Store.Tokens(ctx)
}

func (c *countedTokens) FindToken(ctx context.Context, tokens []bus.Token) (bus.Token, bus.ClientName, error) {
	c.lookUps.Add(1)
	return c.Store.FindToken(ctx, tokens)
}

func TestRefusedBasicCredentialsCostOneLookUpAtMost(t *testing.T) {
	storetest.Each(t, func(t *testing.T, redis *storetest.Server) {
		ctx, now := t.Context(), time.Now()
		tokens := &countedTokens{Store: redis.Open(t)}
		d := newDirectory(tokens, "the-root-key", func() time.Time { return now })
		find := func(credentials string) (bus.Token, int64) {
			before := tokens.lookUps.Load()
			found, _, err := d.find(ctx, userNames(credentials, len(d.rootKey)))
			require.NoError(t, err)
			return found.token, tokens.lookUps.Load() - before
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
		now = now.Add(refusalMaxAge - time.Millisecond)
		token, _ = find("new:one:x")
		assert.Empty(t, token, "refused a moment ago")
		now = now.Add(time.Millisecond)
		token, _ = find("new:one:x")
		assert.Equal(t, bus.Token("new:one"), token)

		for i := range maxRefusals + 10 {
			_, refuse := d.refused.look([32]byte{byte(i), byte(i >> 8)})
			refuse()
		}
		assert.LessOrEqual(t, len(d.refused.known), maxRefusals)
	})
}

func TestARefusalDoesNotOutliveATokenAddedHere(t *testing.T) {
	tokens := &countedTokens{Store: storetest.Embedded(t).Open(t)}
	d := newDirectory(tokens, "the-root-key", time.Now)
	find := func() (ok bool) {
		_, ok, err := d.find(t.Context(), []string{"new"})
		require.NoError(t, err)
		return ok
	}
	assert.False(t, find())
	_, refuse := d.refused.look([32]byte{1}) // is being looked up while the token is added
	require.NoError(t, tokens.PutToken(t.Context(), "new", "new"))
	d.forget()
	refuse()
	assert.True(t, find())
	known, _ := d.refused.look([32]byte{1})
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

func (f *fixedTokens) FindToken(context.Context, []bus.Token) (bus.Token, bus.ClientName, error) {
	return "", "", nil
}

// TestWrongDigestsReadTheTokensTwiceASecondAtMost sends a wrong Digest every ms for 3 s.
func TestWrongDigestsReadTheTokensTwiceASecondAtMost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tokens := &fixedTokens{names: map[bus.Token]bus.ClientName{"alice--1": "alice"}}
		d := newDirectory(tokens, "the-root-key", time.Now)
		named := func(name, token string) bool {
			_, ok, err := d.findNamed(t.Context(), name, func(secret string) bool { return secret == token })
			assert.NoError(t, err)
			return ok
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
					assert.LessOrEqual(t, time.Since(began), directoryMaxAge)
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
		_, _, err := d.findNamed(gone, "alice", func(string) bool { return false })
		assert.ErrorIs(t, err, context.Canceled, "nobody waits for a client that has left")
	})
}

func TestSeenNoncesAreBounded(t *testing.T) {
	seen, begun := newSeenNonces(), time.UnixMilli(1_700_000_000_000)
	seen.max = 100
	nonce := func(i int) openNonce {
		n := openNonce{madeAt: begun.Add(time.Duration(i) * time.Millisecond)}
		copy(n.seal[:], fmt.Sprint(i))
		return n
	}
	for i := range 1000 {
		require.True(t, seen.count(nonce(i), 1, begun), i)
	}
	assert.Len(t, seen.counts, 100)
	assert.Len(t, seen.oldest, 100)
	assert.False(t, seen.count(nonce(899), 2, begun), "it was forgotten: nobody knows which counts it has had")
	assert.False(t, seen.count(nonce(5), 9, begun))
	assert.False(t, seen.count(nonce(950), 1, begun), "it is remembered")
	assert.True(t, seen.count(nonce(950), 2, begun))
	assert.True(t, seen.count(nonce(1000), 1, begun))

	assert.True(t, seen.count(nonce(5000), 1, begun.Add(4*time.Second)))
	assert.Len(t, seen.counts, 1, "those that have expired are forgotten")
}
