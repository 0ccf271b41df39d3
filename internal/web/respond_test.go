package web_test

import (
	"context"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/rdb/rdbtest"
)

// TestReadinessNeedsScripts without which Redis answers all else, and no publish can be stored.
func TestReadinessNeedsScripts(t *testing.T) {
	redis := rdbtest.Real(t)
	if redis.IsCluster() {
		t.Skip("it sets the access rules of one server")
	}
	a := newAPI(t, redis)
	for i, status := range []int{503, 200} {
		right := []string{"-evalsha", "+evalsha"}[i]
		require.NoError(t, redis.Raw.Do(t.Context(), "acl", "setuser", "default", right).Err())
		assert.Equal(t, status, a.Do("", "GET", "/health/ready", "").Status, right)
		assert.Equal(t, status, a.Do(alice, "POST", "/topics/a", `{"type":"noop","url":"https://x.example/"}`).Status, right)
		assert.Equal(t, 200, a.Do("", "GET", "/health", "").Status)
	}
}

func TestRedisAwayIs503(t *testing.T) {
	redis := rdbtest.Real(t, "--appendonly", "yes") // so that alice is known after it
	a := newAPI(t, redis)
	limit := 2 * time.Second
	if redis.IsCluster() {
		limit += 2 * time.Second // for which nodes that were restarted refuse everything
	}
	rdbtest.Promptly(t, limit, func() time.Duration {
		redis.Kill(t)
		for _, path := range []string{"/pulse", "/topics", "/subscriptions", "/health/ready", "/v1/jobs/a", "/v2/job-types", "/state-machines", "/state-machines/a/labels/b"} {
			got := a.Problem(alice, "GET", path, "")
			assert.Equal(t, []any{503, "service_unavailable", path}, []any{got.Status, got.ID, got.Instance})
			assert.Equal(t, "1", a.Do(alice, "GET", path, "").Header.Get("Retry-After"))
		}
		assert.Equal(t, 503, a.Problem(alice, "POST", "/topics/a", `{"type":"noop","url":"https://x.example/"}`).Status)
		assert.Equal(t, 503, a.Problem("wrong", "GET", "/topics", "").Status, "never a free pass")
		assert.Equal(t, 503, a.Problem(rootKey, "GET", "/pulse", "").Status)
		assert.JSONEq(t, `{"status":"error","message":"the bus cannot reach its storage","version":"1.2.3"}`, a.Do("", "GET", "/", "").Body)
		assert.Equal(t, 200, a.Do("", "GET", "/health", "").Status)
		redis.Restart(t)
		return rdbtest.Took(func() {
			require.Eventually(t, func() bool { return a.Do(alice, "GET", "/pulse", "").Status == 204 }, time.Minute, time.Millisecond)
		})
	})
}

func TestAHangingRedisHoldsUpRequestsTogetherNotInTurn(t *testing.T) {
	t.Parallel()
	redis := rdbtest.Real(t)
	redis.URL = rdbtest.Hurried(redis.URL) + "&read_timeout=1s"
	a := newAPI(t, redis)
	redis.Freeze(t)
	began := time.Now()
	const all = 40
	var requests sync.WaitGroup
	for range all { // each waits for a second, or more
		requests.Go(func() { assert.Equal(t, 503, a.Do(alice, "GET", "/topics", "").Status) })
	}
	requests.Wait()
	assert.Less(t, time.Since(began), all*time.Second/2)
	redis.Thaw(t)
}

func TestAClientThatLeavesIsNoError(t *testing.T) {
	redis := rdbtest.Real(t)
	a := newAPI(t, redis)
	ctx, leave := context.WithCancel(t.Context())
	leave()
	r := httptest.NewRequestWithContext(ctx, "GET", "/topics", nil)
	r.SetBasicAuth(alice, "")
	a.Handler.ServeHTTP(httptest.NewRecorder(), r)
	assert.NotContains(t, a.Log.String(), "ERROR")
}
