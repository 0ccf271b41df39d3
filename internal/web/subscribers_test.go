package web_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/rdb/rdbtest"
)

// TestADamagedSubscriberHidesNobodyElse overwrites Bob's keys, as a foreign program might.
func TestADamagedSubscriberHidesNobodyElse(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, redis *rdbtest.Server) {
		for _, key := range []string{"subscriber:", "topics:"} {
			a := newAPI(t, redis)
			for _, who := range []string{alice, bob} {
				a.RequireDone(who, "POST", "/subscription", `{"topics":["widgets"],"callback":"https://x.example/"}`)
			}
			p := a.Of(bob).Partition()
			damaged := p.Namespace() + key + bob
			require.NoError(t, p.Set(t.Context(), damaged, "x", 0).Err())
			for _, who := range []string{rootKey, alice, bob} {
				a.Log.Reset()
				got := a.Do(who, "GET", "/subscriptions", "")
				require.Equal(t, http.StatusOK, got.Status, got.Body)
				var listed []struct{ Subscriber string }
				require.NoError(t, json.Unmarshal([]byte(got.Body), &listed))
				require.Len(t, listed, 1)
				assert.Contains(t, []string{"alice", alice}, listed[0].Subscriber)
				assert.Equal(t, 1, strings.Count(a.Log.String(), "skipped subscribers with damaged data"), a.Log)
				assert.Contains(t, a.Log.String(), "keys=["+key+"bob]")
				assert.NotContains(t, a.Log.String(), bob, "a token is a secret")
			}
			require.NoError(t, p.Del(t.Context(), damaged).Err()) // the next subscription makes it again
		}
	})
}
