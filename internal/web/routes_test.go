package web_test

import (
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store/storetest"
)

func TestWhoMayDoWhat(t *testing.T) {
	const event = `{"type":"noop","url":"https://x.example/"}`
	const subscription = `{"topics":["widgets"],"callback":"https://x.example/"}`
	routes := []struct {
		method, path, body         string
		anyone, client, root, junk int
	}{
		{"GET", "/health", "", 200, 200, 200, 200},
		{"GET", "/health/ping", "", 200, 200, 200, 200},
		{"GET", "/health/ping.json", "", 200, 200, 200, 200},
		{"GET", "/health/ready", "", 200, 200, 200, 200},
		{"GET", "/openapi.json", "", 200, 200, 200, 200},
		{"GET", "/pulse", "", 401, 204, 204, 401},
		{"GET", "/pulse/scaling", "", 401, 204, 204, 401},
		{"GET", "/metrics", "", 401, 200, 200, 401},
		{"GET", "/api_tokens", "", 401, 403, 200, 401},
		{"POST", "/api_tokens", `{"name":"x"}`, 401, 403, 201, 401},
		{"DELETE", "/api_tokens/none", "", 401, 403, 204, 401},
		{"POST", "/api_tokens/none/rotate", "", 401, 403, 404, 401},
		{"GET", "/topics", "", 401, 200, 200, 401},
		{"POST", "/topics/widgets", event, 401, 200, 403, 401},
		{"POST", "/subscription", subscription, 401, 204, 403, 401},
		{"POST", "/subscriber", subscription, 401, 204, 403, 401},
		{"GET", "/subscriptions", "", 401, 200, 200, 401},
		{"GET", "/subscribers", "", 401, 200, 200, 401},
		{"DELETE", "/subscription/topics/widgets", "", 401, 204, 403, 401},
		{"DELETE", "/subscriber/topics/widgets", "", 401, 404, 403, 401},
		{"DELETE", "/subscriber", "", 401, 204, 403, 401},
		{"DELETE", "/subscription", "", 401, 404, 403, 401},
		{"DELETE", "/topics/widgets", "", 401, 204, 404, 401},
		{"DELETE", "/topic/widgets", "", 401, 404, 404, 401},
	}
	test := func(t *testing.T, redis *rdbtest.Server, scheme string) {
		a := newAPI(t, redis)
		a.scheme = scheme
		for _, r := range routes {
			for who, want := range map[string]int{"": r.anyone, "nobody--9": r.junk, "NOT a token": r.junk, alice: r.client} {
				a.ahead += time.Second // tokens are due to be read: refused Digests do not wait for that
				got := a.do(who, r.method, r.path, r.body)
				assert.Equal(t, want, got.status, "%s %s as %q: %s", r.method, r.path, who, got.body)
				if want == http.StatusUnauthorized {
					challenges := got.header.Values("WWW-Authenticate")
					require.Len(t, challenges, 3)
					assert.Contains(t, challenges[0], `Digest realm="routemaster", qop="auth", algorithm=SHA-256, nonce="`)
					assert.Contains(t, challenges[1], `Digest realm="routemaster", qop="auth", algorithm=MD5, nonce="`)
					assert.Equal(t, `Basic realm="routemaster", charset="UTF-8"`, challenges[2])
				}
			}
			got := a.do(rootKey, r.method, r.path, r.body)
			assert.Equal(t, r.root, got.status, "%s %s as root: %s", r.method, r.path, got.body)
		}
		storetest.RequireSound(t, a.Store)
	}
	rdbtest.Each(t, func(t *testing.T, redis *rdbtest.Server) { test(t, redis, "") })
	for _, algorithm := range []string{"SHA-256", "MD5"} {
		t.Run(algorithm, func(t *testing.T) { test(t, rdbtest.Embedded(t), algorithm) })
	}
}

// TestSubscriberRoutes has a client use the paths of its subscriber, and root those that name the
// client.
func TestSubscriberRoutes(t *testing.T) {
	routes := []struct {
		method, below, body string
		client, root        int // the statuses of its request, and of root's that follows it
	}{
		{"GET", "", "", 200, 200},
		{"PATCH", "", `{"max":7}`, 204, 204},
		{"POST", "/pause", "", 204, 204},
		{"POST", "/resume", "", 204, 204},
		{"POST", "/test", "", 202, 409},
		{"GET", "/attempts", "", 200, 200},
		{"GET", "/batches", "", 200, 200},
		{"GET", "/batches/x", "", 404, 404},
		{"DELETE", "/batches/x", "", 404, 404},
		{"GET", "/secrets", "", 200, 200},
		{"POST", "/secrets", "", 201, 201},
		{"DELETE", "/secrets/x", "", 404, 404},
		{"GET", "/dead_letters", "", 200, 200},
		{"GET", "/dead_letters/x", "", 404, 404},
		{"DELETE", "/dead_letters/x", "", 404, 404},
		{"POST", "/dead_letters/x/redeliver", "", 404, 404},
		{"POST", "/dead_letters/redeliver", `{"all":true}`, 200, 200},
		{"POST", "/dead_letters/discard", `{"all":true}`, 200, 200},
	}
	rdbtest.Each(t, func(t *testing.T, redis *rdbtest.Server) {
		a := newAPI(t, redis)
		a.requireDone(alice, "POST", "/subscription", `{"topics":["widgets"],"callback":"https://a.example/"}`)
		for _, r := range routes {
			status := func(who, path string) int { return a.do(who, r.method, path+r.below, r.body).status }
			assert.Equal(t, r.client, status(alice, "/subscriber"), "%s %s", r.method, r.below)
			assert.Equal(t, r.root, status(rootKey, "/subscribers/alice--1"), "%s %s as root", r.method, r.below)
			assert.Equal(t, 403, status(rootKey, "/subscriber"), r.below)
			assert.Equal(t, 403, status(alice, "/subscribers/alice--1"), r.below)
			for _, path := range []string{"/subscriber", "/subscribers/alice--1"} {
				assert.Equal(t, 401, status("", path), r.below)
				assert.Equal(t, 401, status("nobody--9", path), r.below)
			}
			assert.Equal(t, 404, status(bob, "/subscriber"), "bob is not subscribed: %s", r.below)
			assert.Equal(t, 404, status(rootKey, "/subscribers/bob--2"), "bob is not subscribed: %s", r.below)
			assert.Equal(t, 404, status(rootKey, "/subscribers/nobody--9"), r.below)
			assert.Equal(t, 400, a.problem(alice, r.method, "/subscriber"+r.below+"?colour=red", r.body).Status, r.below)
		}
		assert.NotContains(t, a.log.String(), alice)
		assert.NotContains(t, a.log.String(), bob)
		storetest.RequireSound(t, a.Store)
	})
}

func TestUnknownPathsAndMethods(t *testing.T) {
	a := newAPI(t, rdbtest.Embedded(t))
	assert.Equal(t, 404, a.problem("", "GET", "/nowhere", "").Status)
	assert.Equal(t, 404, a.problem("", "PROPFIND", "/nowhere", "").Status)
	assert.Equal(t, 404, a.problem(alice, "GET", "/topics/", "").Status)
	for path, allow := range map[string]string{
		"/topics/widgets": "POST, DELETE", "/topics": "GET, HEAD", "/subscription": "POST, DELETE", "/subscriber": "GET, HEAD, POST, PATCH, DELETE", "/health": "GET, HEAD", "/api_tokens": "GET, HEAD, POST",
	} {
		assert.Equal(t, 405, a.problem(alice, "PUT", path, "").Status)
		assert.Equal(t, allow, a.do(alice, "PUT", path, "").header.Get("Allow"), path)
	}
}

func TestHeadIsGetWithoutItsBody(t *testing.T) {
	a := newAPI(t, rdbtest.Embedded(t))
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for path, status := range map[string]int{"/health": 200, "/health/ready": 200, "/topics": 401, "/subscription": 405} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodHead, a.run()+path, nil)
		require.NoError(t, err)
		resp, err := client.Do(r)
		require.NoError(t, err)
		text, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		assert.Equal(t, status, resp.StatusCode, path)
		assert.Empty(t, text)
	}
}

func TestPathsAreDecoded(t *testing.T) {
	a := newAPI(t, rdbtest.Embedded(t))
	require.NoError(t, a.PutToken(t.Context(), "svc:one", "svc"))
	a.requireDone("svc:one", "POST", "/topics/a%5Fb", `{"type":"noop","url":"https://x.example/"}`)
	a.requireDone(rootKey, "DELETE", "/api_tokens/svc%3Aone", "")
	name, err := a.ClientName(t.Context(), "svc:one")
	require.NoError(t, err)
	assert.Empty(t, name)
}
