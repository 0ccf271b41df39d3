package web_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/activity"
	"routemaster/internal/rdb/rdbtest"
)

// TestChangesByRootAreKept requires that the operator sees changes made with the root key, but no
// secrets.
func TestChangesByRootAreKept(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, redis *rdbtest.Server) {
		a := newAPI(t, redis)
		a.Run()
		require.Equal(t, 201, a.Do(rootKey, "POST", "/api_tokens", `{"name":"carol","token":"carol--s3cret"}`).Status)
		a.RequireDone(bob, "POST", "/subscription", `{"topics":["widgets"],"callback":"https://x.example/"}`)
		a.RequireDone(rootKey, "DELETE", "/subscribers/"+bob, "")
		var got struct{ Changes []activity.Change }
		read := func(query string) string {
			answer := a.Do(rootKey, "GET", "/activity"+query, "")
			require.Equal(t, 200, answer.Status, answer.Body)
			got.Changes = nil
			require.NoError(t, json.Unmarshal([]byte(answer.Body), &got))
			return answer.Body
		}
		require.Eventually(t, func() bool { read(""); return len(got.Changes) == 2 }, time.Minute, time.Millisecond)
		assert.NotContains(t, read(""), "s3cret")
		last := got.Changes[0]
		assert.Equal(t, "subscription deleted", last.What)
		assert.Equal(t, "root", last.Client)
		assert.Equal(t, "bob", last.Fields["subscriber"])
		assert.False(t, last.Console)
		assert.NotEmpty(t, last.RequestID)
		assert.Equal(t, "token created", got.Changes[1].What)
		read("?limit=1")
		assert.Len(t, got.Changes, 1)
	})
}
