package web_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store"
)

func TestTokens(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, redis *rdbtest.Server) {
		a := newAPI(t, redis)
		got := a.Do(rootKey, "POST", "/api_tokens", `{"name":"carol"}`)
		require.Equal(t, 201, got.Status)
		var made struct{ Name, Token string }
		require.NoError(t, json.Unmarshal([]byte(got.Body), &made))
		assert.Equal(t, "carol", made.Name)
		assert.Regexp(t, `^carol--[0-9a-f]{32}$`, made.Token)
		assert.Equal(t, 204, a.Do(made.Token, "GET", "/pulse", "").Status, "it works at once")

		got = a.Do(rootKey, "POST", "/api_tokens", `{"token":"dave:1","name":"dave"}`)
		assert.Equal(t, 201, got.Status)
		assert.JSONEq(t, `{"name":"dave","token":"dave:1"}`, got.Body)
		again := a.Do(rootKey, "POST", "/api_tokens", `{"token":"dave:1","name":"dave"}`)
		assert.Equal(t, 201, again.Status, "it is there already")
		assert.Equal(t, got.Body, again.Body)
		taken := a.Problem(rootKey, "POST", "/api_tokens", `{"token":"dave:1","name":"eve"}`)
		assert.Equal(t, 409, taken.Status)
		assert.Equal(t, "/token", taken.Pointer)
		got = a.Do(rootKey, "GET", "/api_tokens", "")
		assert.JSONEq(t, `[{"name":"alice","token":"alice--1"},{"name":"bob","token":"bob--2"},`+
			`{"name":"carol","token":"`+made.Token+`"},{"name":"dave","token":"dave:1"}]`, got.Body)

		got = a.Do(rootKey, "GET", "/api_tokens?client=dave", "")
		assert.JSONEq(t, `[{"name":"dave","token":"dave:1"}]`, got.Body)
		for _, nobody := range []string{"dav", ""} {
			assert.Equal(t, 204, a.Do(rootKey, "GET", "/api_tokens?client="+nobody, "").Status)
		}

		a.RequireDone("dave:1", "POST", "/subscription", `{"topics":["widgets"],"callback":"https://d.example/"}`)
		for _, token := range []string{alice, bob, made.Token, "dave:1", "dave:1"} {
			a.RequireDone(rootKey, "DELETE", "/api_tokens/"+token, "")
		}
		assert.Equal(t, 204, a.Do(rootKey, "GET", "/api_tokens", "").Status)
		assert.JSONEq(t, `[]`, a.Do(rootKey, "GET", "/subscriptions", "").Body, "its subscriber is gone too")
	})
}

// withinASecond is just less than a second.
const withinASecond = time.Second - time.Nanosecond

func TestATokenRemovedByAnotherProcessStopsWorkingWithinASecond(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, redis *rdbtest.Server) {
		a, other := newAPI(t, redis), newAPI(t, redis)
		require.Equal(t, 204, a.Do(alice, "GET", "/pulse", "").Status)
		other.RequireDone(rootKey, "DELETE", "/api_tokens/"+alice, "")
		a.Ahead += withinASecond
		assert.Equal(t, 401, a.Do(alice, "GET", "/pulse", "").Status)
	})
}

func TestATokenRemovedAMomentAgoLeavesNothingBehind(t *testing.T) {
	a := newAPI(t, rdbtest.Embedded(t))
	require.Equal(t, 204, a.Do(alice, "GET", "/pulse", "").Status)
	require.NoError(t, a.DeleteToken(t.Context(), alice)) // this process does not know it yet
	assert.Equal(t, 401, a.Problem(alice, "POST", "/subscription", `{"topics":["a"],"callback":"https://x.example/"}`).Status)
	assert.Equal(t, 401, a.Problem(alice, "POST", "/topics/a", `{"type":"noop","url":"https://x.example/"}`).Status)
	assert.JSONEq(t, `[]`, a.Do(rootKey, "GET", "/subscriptions", "").Body)
	assert.JSONEq(t, `[]`, a.Do(rootKey, "GET", "/topics", "").Body)
}

func TestANameDoesNotRevealItsToken(t *testing.T) {
	a := newAPI(t, rdbtest.Embedded(t))
	assert.Equal(t, "/token", a.Problem(rootKey, "POST", "/api_tokens", `{"name":"s3cret","token":"s3cret"}`).Pointer)
	require.NoError(t, a.PutToken(t.Context(), "s3cret", "s3cret"))
	stored := a.Do(rootKey, "POST", "/api_tokens", `{"name":"s3cret","token":"s3cret"}`)
	assert.Equal(t, 201, stored.Status, "a script may register what is stored")
	assert.JSONEq(t, `{"name":"s3cret","token":"s3cret"}`, stored.Body)
	require.NoError(t, a.PutToken(t.Context(), "other", "alice"))
	assert.Equal(t, 400, a.Problem(rootKey, "POST", "/api_tokens", `{"name":"other","token":"other"}`).Status)
	a.RequireDone("s3cret", "POST", "/topics/a", `{"type":"noop","url":"https://x.example/"}`)
	assert.NotContains(t, a.Do(alice, "GET", "/topics", "").Body, "s3cret")
}

func TestTokensSayWhenTheyWereLastUsed(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, redis *rdbtest.Server) {
		a := newAPI(t, redis)
		began := time.Now().Add(-time.Second) // the time in memory may be half a second old
		require.Equal(t, 204, a.Do(alice, "GET", "/pulse", "").Status)
		stopped, stop := context.WithCancel(t.Context())
		stop()
		a.Server.Auth.Run(stopped) // Run notes the uses when it stops
		var listed []struct {
			Token string
			Last  int64 `json:"last_used_at"`
		}
		require.NoError(t, json.Unmarshal([]byte(a.Do(rootKey, "GET", "/api_tokens", "").Body), &listed))
		require.Len(t, listed, 2)
		assert.WithinRange(t, time.UnixMilli(listed[0].Last), began, time.Now())
		assert.Zero(t, listed[1].Last, "bob's")
		a.RequireDone(rootKey, "DELETE", "/api_tokens/"+alice, "")
		used, err := store.TokensUsed(t.Context(), a.First())
		require.NoError(t, err)
		assert.Empty(t, used)
	})
}
