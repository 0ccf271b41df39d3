package rest

import (
	"context"
	"encoding/base64"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"routemaster/internal/bus"
)

func TestAHeaderIsRecalledOnlyAsLongAsTheTokens(t *testing.T) {
	now := time.UnixMilli(1_790_000_000_000)
	tokens := &failingTokens{fixedTokens: fixedTokens{names: map[bus.Token]bus.ClientName{"alice--1": "alice"}}}
	a := New(Config{RootKey: "the-root-key", NonceTTL: time.Minute}, tokens, slog.New(slog.DiscardHandler), func() time.Time { return now })
	header := "Basic " + base64.StdEncoding.EncodeToString([]byte("alice--1:x"))
	recalled := func() bool {
		_, ok := a.tokens.recall(digestOf(header))
		return ok
	}
	authenticate := func() error {
		r := httptest.NewRequest(http.MethodPost, "/topics/widgets", nil)
		r.Header.Set("Authorization", header)
		client, err := a.Authenticate(r)
		if err == nil {
			assert.Equal(t, Client{Name: "alice", Token: "alice--1"}, client)
		}
		return err
	}
	for range 2 {
		assert.NoError(t, authenticate())
		assert.True(t, recalled())
	}
	now = now.Add(tokenCacheTTL)
	assert.False(t, recalled(), "the tokens have to be read first")
	assert.NoError(t, authenticate())
	assert.True(t, recalled())
	assert.Equal(t, now, time.UnixMilli(a.tokens.uses.find("alice--1").at.Load()), "it is used")

	now = now.Add(tokenCacheTTL)
	tokens.err = bus.ErrUnavailable
	assert.ErrorIs(t, authenticate(), bus.ErrUnavailable)
	assert.False(t, recalled())
	now = now.Add(tokenCacheTTL)
	tokens.err = nil
	assert.NoError(t, authenticate())

	a.TokensChanged()
	assert.False(t, recalled())
	assert.NoError(t, authenticate())
	delete(tokens.names, "alice--1")
	now = now.Add(tokenCacheTTL)
	assert.ErrorIs(t, authenticate(), ErrRefused, "the token was removed")
	assert.False(t, recalled())
}

// failingTokens cannot be read while err is set.
type failingTokens struct {
	fixedTokens
	err error
}

func (f *failingTokens) Tokens(ctx context.Context) (map[bus.Token]bus.ClientName, error) {
	names, _ := f.fixedTokens.Tokens(ctx)
	return names, f.err
}

func TestRecalledHeadersAreBounded(t *testing.T) {
	now := time.Now()
	c := newTokenCache(&fixedTokens{names: map[bus.Token]bus.ClientName{"alice--1": "alice"}}, "the-root-key", func() time.Time { return now })
	for i := range maxHeaders + 10 {
		_, err := c.find(t.Context(), digestOf(strconv.Itoa(i)), []candidate{{secret: "alice--1"}})
		assert.NoError(t, err)
		_, ok := c.recall(digestOf(strconv.Itoa(i)))
		assert.True(t, ok)
		assert.LessOrEqual(t, len(c.current.byHeader), maxHeaders)
	}
}
