package web_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/inspect"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store/storetest"
	"routemaster/internal/web"
)

func TestANameDoesNotMakeRoot(t *testing.T) {
	a := newAPI(t, rdbtest.Embedded(t))
	require.NoError(t, a.PutToken(t.Context(), "evil", "root"))
	assert.Equal(t, 403, a.Problem("evil", "GET", "/api_tokens", "").Status)
}

func TestWithoutARootKeyNobodyIsRoot(t *testing.T) {
	a := newAPI(t, rdbtest.Embedded(t), func(c *web.Config) { c.RootKey = "" })
	r := httptest.NewRequestWithContext(t.Context(), "GET", "/api_tokens", nil)
	r.SetBasicAuth("", "")
	w := httptest.NewRecorder()
	a.Handler.ServeHTTP(w, r)
	assert.Equal(t, 401, w.Code)
}

func TestBasicCredentialsWithColons(t *testing.T) {
	a := newAPI(t, rdbtest.Embedded(t), func(c *web.Config) { c.RootKey = "alice--1:root" })
	ctx := t.Context()
	require.NoError(t, a.PutToken(ctx, "svc", "short"))
	require.NoError(t, a.PutToken(ctx, "svc:one", "long"))
	owner := func(user, password, topic string) bus.Token {
		r := httptest.NewRequestWithContext(ctx, "POST", "/topics/"+topic, strings.NewReader(`{"type":"noop","url":"https://x.example/"}`))
		r.SetBasicAuth(user, password)
		w := httptest.NewRecorder()
		a.Handler.ServeHTTP(w, r)
		require.Equal(t, 200, w.Code)
		topics, _, err := storetest.Topics(ctx, inspect.OfBus(a.Bus))
		require.NoError(t, err)
		for _, found := range topics {
			if string(found.Name) == topic {
				return found.Publisher
			}
		}
		return ""
	}
	assert.Equal(t, bus.Token("svc:one"), owner("svc:one", "", "a"))
	assert.Equal(t, bus.Token("svc:one"), owner("svc:one", "pass:word", "b"))
	assert.Equal(t, bus.Token("svc"), owner("svc", "two:three", "c"))
	require.NoError(t, a.PutToken(ctx, "svc:two", "new"))
	assert.Equal(t, 200, a.Do("alice--1:root", "GET", "/api_tokens", "").Status, "the root key, although it begins like a token")
	r := httptest.NewRequestWithContext(ctx, "GET", "/pulse", nil)
	r.SetBasicAuth(strings.Repeat(":", 10_000), "")
	w := httptest.NewRecorder()
	a.Handler.ServeHTTP(w, r)
	assert.Equal(t, 401, w.Code)
}

// TestBasicTakesANameAndItsToken has clients whose names and tokens contain colons, or are alike.
func TestBasicTakesANameAndItsToken(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, redis *rdbtest.Server) {
		a := newAPI(t, redis)
		for token, name := range map[bus.Token]bus.ClientName{"s3cret": "shop", "a:secret": "shop:one", "shop": "other", "same": "same"} {
			require.NoError(t, a.PutToken(t.Context(), token, name))
		}
		who := func(user, password string) string {
			r := httptest.NewRequestWithContext(t.Context(), "GET", "/whoami", nil)
			r.SetBasicAuth(user, password)
			r.Header.Set("Authorization", strings.Replace(r.Header.Get("Authorization"), " ", "   ", 1))
			w := httptest.NewRecorder()
			a.Handler.ServeHTTP(w, r)
			if w.Code != http.StatusOK {
				return strconv.Itoa(w.Code)
			}
			var caller struct{ Client string }
			require.NoError(t, json.Unmarshal(w.Body.Bytes(), &caller))
			return caller.Client
		}
		for range 2 { // looked up, then known
			for credentials, want := range map[[2]string]string{
				{"alice", alice}: "alice", {"root", rootKey}: "root", {rootKey, "x"}: "root",
				{"shop", "s3cret"}: "shop", {"shop:one", "a:secret"}: "shop:one", {"shop", "x"}: "other", {"shop", ""}: "other",
				{"alice", ""}: "401", {"alice", bob}: "401", {"bob", alice}: "401", {"alice", rootKey}: "401", {"root", alice}: "401",
				{"root", ""}: "401", {"nobody", alice}: "401", {"", alice}: "401", {"alice", alice + "x"}: "401",
			} {
				assert.Equal(t, want, who(credentials[0], credentials[1]), credentials)
			}
			assert.NotEqual(t, "401", who("same", "same"))
			a.Ahead += time.Second
		}
	})
}

// TestGuessesGet429 sends wrong credentials, all at once, and right ones from the same address.
func TestGuessesGet429(t *testing.T) {
	rdbtest.OneRedisOnly(t, "wrong credentials are counted in the process")
	a := newAPI(t, rdbtest.Embedded(t))
	handler := a.Server.Handler()
	const guesses = 100
	answers := make(chan *httptest.ResponseRecorder, guesses)
	for range guesses {
		go func() {
			r := httptest.NewRequestWithContext(t.Context(), "GET", "/pulse", nil)
			r.SetBasicAuth("guess", "")
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, r)
			answers <- w
		}()
	}
	a.RequireDone(alice, "GET", "/pulse", "")
	slowed := 0
	for range guesses {
		w := <-answers
		if w.Code == http.StatusUnauthorized {
			continue
		}
		slowed++
		require.Equal(t, http.StatusTooManyRequests, w.Code)
		assert.Equal(t, "1", w.Header().Get("Retry-After"))
		assert.Contains(t, w.Body.String(), `"id":"too_many_wrong_credentials"`)
	}
	assert.Positive(t, slowed)
}
