package web_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/rdb/rdbtest"
)

// TestRotateAToken rotates like a client, with each request sent twice, as if the first response
// had been lost.
func TestRotateAToken(t *testing.T) {
	t.Parallel()
	rdbtest.Each(t, func(t *testing.T, redis *rdbtest.Server) {
		t.Parallel()
		a := newAPI(t, redis)
		a.RequireDone(alice, "POST", "/subscription", `{"topics":["a"],"callback":"https://a.example/","uuid":"secret"}`)
		type progress struct {
			Name, Token, After string
			Done               bool
		}
		rotate := func(query url.Values) (got progress) {
			resp := a.Do(rootKey, "POST", "/api_tokens/"+alice+"/rotate?"+query.Encode(), "")
			require.Equal(t, http.StatusOK, resp.Status, resp.Body)
			require.NoError(t, json.Unmarshal([]byte(resp.Body), &got))
			return got
		}
		for _, keep := range []string{"true", "false"} {
			first := rotate(url.Values{"keep": {keep}})
			assert.Equal(t, "alice", first.Name)
			assert.Regexp(t, "^alice--[0-9a-f]{32}$", first.Token)
			assert.False(t, first.Done, "the first request deletes nothing: its response may be lost")
			assert.Equal(t, first.Token, rotate(url.Values{"keep": {keep}}).Token)
			a.RequireDone(alice, "POST", "/topics/a", `{"type":"noop","url":"https://x.example/"}`)
			last := first
			for !last.Done {
				last = rotate(url.Values{"keep": {keep}, "after": {last.After}})
				assert.Equal(t, first.Token, last.Token)
			}
			got := a.Do(rootKey, "GET", "/subscriptions", "").Body
			assert.Contains(t, got, `"subscriber":"`+first.Token+`"`)
			assert.Contains(t, got, `"uuid":"secret"`)
			assert.NotContains(t, got, `"`+alice+`"`)
			if keep == "true" { // the service, or rtm sub add, looks for its subscription with the old token
				got = a.Do(alice, "GET", "/subscriptions", "").Body
				assert.Contains(t, got, `"subscriber":"`+alice+`"`)
				assert.Contains(t, got, `"uuid":"secret"`)
				assert.NotContains(t, got, first.Token, "whoever has the old one need not know the new one")
			}
		}
		assert.Equal(t, http.StatusUnauthorized, a.Do(alice, "GET", "/topics", "").Status)
		assert.Equal(t, http.StatusNotFound, a.Do(rootKey, "POST", "/api_tokens/"+alice+"/rotate", "").Status)
		for _, query := range []string{"after=x", "after=1--%20", "keep=perhaps", "other=1"} {
			assert.Equal(t, http.StatusBadRequest, a.Do(rootKey, "POST", "/api_tokens/"+bob+"/rotate?"+query, "").Status, query)
		}
	})
}

// TestRotateATokenByName has root name the client. A rotation that is under way is finished, and a
// last request that is repeated begins no other.
func TestRotateATokenByName(t *testing.T) {
	t.Parallel()
	rdbtest.Each(t, func(t *testing.T, redis *rdbtest.Server) {
		t.Parallel()
		a := newAPI(t, redis)
		rotate := func(query string) (status int, token, after string) {
			resp := a.Do(rootKey, "POST", "/api_tokens/alice/rotate"+query, "")
			var got struct{ Token, After string }
			require.NoError(t, json.Unmarshal([]byte(resp.Body), &got))
			return resp.Status, got.Token, got.After
		}
		_, first, after := rotate("")
		assert.Regexp(t, "^alice--[0-9a-f]{32}$", first)
		_, again, _ := rotate("")
		assert.Equal(t, first, again)
		last := after
		for after != "" {
			last = after
			var token string
			_, token, after = rotate("?after=" + url.QueryEscape(after))
			assert.Equal(t, first, token)
		}
		assert.Equal(t, http.StatusUnauthorized, a.Do(alice, "GET", "/topics", "").Status)
		status, _, _ := rotate("?after=" + url.QueryEscape(last))
		assert.Equal(t, http.StatusNotFound, status)
		assert.Equal(t, http.StatusOK, a.Do(first, "GET", "/topics", "").Status)

		require.NoError(t, a.Bus.PutToken(t.Context(), "another", "alice"))
		status, _, _ = rotate("")
		assert.Equal(t, http.StatusBadRequest, status)
	})
}
