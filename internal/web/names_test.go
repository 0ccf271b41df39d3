package web_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/rdb/rdbtest"
)

// TestNamesInPaths has root name subscribers as screens show them. What makes or removes a
// subscription still needs the token.
func TestNamesInPaths(t *testing.T) {
	const subscription = `{"topics":["widgets"],"callback":"https://a.example/"}`
	rdbtest.Each(t, func(t *testing.T, redis *rdbtest.Server) {
		a := newSubscriberAPI(t, redis)
		status := func(method, path string) int { return a.Do(rootKey, method, path, "").Status }
		assert.Equal(t, "there is no such token; GET /api_tokens lists them", a.Problem(rootKey, "GET", "/subscribers/nobody", "").Detail)
		assert.Contains(t, a.Problem(rootKey, "GET", "/subscribers/alice", "").Detail, "no such subscription")
		a.RequireDone(alice, "POST", "/subscription", subscription)
		a.RequireDone(rootKey, "POST", "/subscribers/alice/pause", "")
		assert.NotContains(t, a.Do(rootKey, "GET", "/subscribers/"+alice, "").Body, `"paused_until":null`)
		for _, path := range []string{"/subscribers/alice", "/subscribers/alice/topics/widgets"} {
			assert.Equal(t, 404, status("DELETE", path), path)
		}
		assert.Equal(t, 404, a.Problem(rootKey, "POST", "/subscribers/alice", subscription).Status)
		assert.Equal(t, 204, status("DELETE", "/api_tokens/alice"), "which removes nothing")
		assert.Equal(t, 200, status("GET", "/subscribers/alice"))

		_, _, err := a.Bus.RotateToken(t.Context(), alice)
		require.NoError(t, err)
		for _, below := range []string{"", "/attempts"} {
			assert.Equal(t, 200, status("GET", "/subscribers/alice"+below), "two tokens have one subscriber")
		}
		require.NoError(t, a.Bus.PutToken(t.Context(), "another", "alice"))
		assert.Equal(t, 200, status("GET", "/subscribers/alice"), "another token has no subscriber")
		a.RequireDone("another", "POST", "/subscription", subscription)
		for _, below := range []string{"", "/attempts"} {
			p := a.Problem(rootKey, "GET", "/subscribers/alice"+below, "")
			assert.Equal(t, 400, p.Status)
			assert.Contains(t, p.Detail, "several tokens have this name")
			assert.NotContains(t, p.Detail+p.Instance, "another")
		}
		require.NoError(t, a.Bus.PutToken(t.Context(), bus.Token("alice"), "eve"))
		assert.Contains(t, a.Problem(rootKey, "GET", "/subscribers/alice", "").Detail, "no such subscription", "a token goes before a name")
	})
}
