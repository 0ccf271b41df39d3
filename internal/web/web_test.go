package web_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/ingest"
	"routemaster/internal/store"
	"routemaster/internal/store/storetest"
	"routemaster/internal/telemetry/metrics"
	"routemaster/internal/web"
	"routemaster/internal/wire"
)

func TestMain(m *testing.M) { storetest.Main(m) }

const (
	rootKey = "the-root-key"
	alice   = "alice--1"
	bob     = "bob--2"
)

// api is a server of the HTTP API, and its store.
type api struct {
	*store.Store
	t       testing.TB
	handler http.Handler
	server  *web.Server
	log     *bytes.Buffer
	// ahead is how far the server's clock is ahead of the real one.
	ahead time.Duration
	// scheme is how requests are authenticated: Basic if empty, else Digest with this algorithm.
	scheme string
}

func newAPI(t testing.TB, redis *storetest.Server, adjust ...func(*web.Config)) *api {
	t.Helper()
	config := web.Config{RootKey: rootKey, NonceTTL: time.Minute, ScalingThreshold: 2, ScalingDeadline: time.Second}
	for _, f := range adjust {
		f(&config)
	}
	a := &api{Store: redis.Open(t), t: t, log: &bytes.Buffer{}}
	a.server = web.New(config, a.Store, ingest.New(a.Store, 64, nil, time.Now), metrics.NewRegistry().Handler(), a.logger(),
		func() time.Time { return time.Now().Add(a.ahead) })
	a.handler = a.server.Handler()
	require.NoError(t, a.PutToken(t.Context(), alice, "alice"))
	require.NoError(t, a.PutToken(t.Context(), bob, "bob"))
	return a
}

// useMaxEventData serves with another bound for the data of events.
func (a *api) useMaxEventData(bytes int) {
	in := ingest.New(a.Store, bytes, nil, time.Now)
	a.handler = web.New(web.Config{RootKey: rootKey}, a.Store, in, metrics.NewRegistry().Handler(), a.logger(), time.Now).Handler()
}

func (a *api) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(a.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// run serves on loopback until the test ends, and returns the URL.
func (a *api) run() (url string) {
	a.t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(a.t, err)
	ctx, stop := context.WithCancel(context.Background())
	ran := make(chan error)
	go func() { ran <- a.server.Run(ctx, listener) }()
	a.t.Cleanup(func() {
		stop()
		assert.NoError(a.t, <-ran)
	})
	return "http://" + listener.Addr().String()
}

// answer is what came back.
type answer struct {
	status int
	header http.Header
	body   string
}

// do sends a request. Who is a token or the root key, empty for no credentials.
func (a *api) do(who, method, path, body string) answer {
	a.t.Helper()
	r := httptest.NewRequestWithContext(a.t.Context(), method, path, strings.NewReader(body))
	switch {
	case who == "":
	case a.scheme == "":
		r.SetBasicAuth(who, "")
	default:
		r.Header.Set("Authorization", a.newDigest(who).header(method, path, 1))
	}
	w := httptest.NewRecorder()
	a.handler.ServeHTTP(w, r)
	got := answer{w.Code, w.Header(), strings.TrimSpace(w.Body.String())}
	requireDescribed(a.t, r, body, got)
	return got
}

type problem struct {
	Status                 int
	Title, Detail, Pointer string
}

// problem sends a request that is refused.
func (a *api) problem(who, method, path, body string) problem {
	a.t.Helper()
	got := a.do(who, method, path, body)
	assert.Equal(a.t, "application/problem+json", got.header.Get("Content-Type"), "%s %s %s", method, path, got.body)
	var p problem
	require.NoError(a.t, json.Unmarshal([]byte(got.body), &p), "%s %s %s", method, path, got.body)
	assert.Equal(a.t, got.status, p.Status)
	assert.Equal(a.t, http.StatusText(got.status), p.Title)
	assert.NotEmpty(a.t, p.Detail)
	return p
}

// requireDone sends a request that is answered without a body: 200 for a publish, 204 for the others.
func (a *api) requireDone(who, method, path, body string) {
	a.t.Helper()
	status := http.StatusNoContent
	if method == "POST" && strings.HasPrefix(path, "/topics/") {
		status = http.StatusOK
	}
	got := a.do(who, method, path, body)
	require.Equal(a.t, answer{status: status, header: got.header}, got, "%s %s", method, path)
}

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
	test := func(t *testing.T, redis *storetest.Server, scheme string) {
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
	storetest.Each(t, func(t *testing.T, redis *storetest.Server) { test(t, redis, "") })
	for _, algorithm := range []string{"SHA-256", "MD5"} {
		t.Run(algorithm, func(t *testing.T) { test(t, storetest.Embedded(t), algorithm) })
	}
}

func TestUnknownPathsAndMethods(t *testing.T) {
	a := newAPI(t, storetest.Embedded(t))
	assert.Equal(t, 404, a.problem("", "GET", "/nowhere", "").Status)
	assert.Equal(t, 404, a.problem("", "PROPFIND", "/nowhere", "").Status)
	assert.Equal(t, 404, a.problem(alice, "GET", "/topics/", "").Status)
	for path, allow := range map[string]string{
		"/topics/widgets": "POST, DELETE", "/topics": "GET, HEAD", "/subscription": "POST, DELETE", "/health": "GET, HEAD", "/api_tokens": "GET, HEAD, POST",
	} {
		assert.Equal(t, 405, a.problem(alice, "PUT", path, "").Status)
		assert.Equal(t, allow, a.do(alice, "PUT", path, "").header.Get("Allow"), path)
	}
}

func TestPublish(t *testing.T) {
	storetest.Each(t, func(t *testing.T, redis *storetest.Server) {
		a := newAPI(t, redis)
		a.requireDone(bob, "POST", "/subscription", `{"topics":["widgets"],"callback":"https://b.example/","timeout":0}`)
		before := time.Now().UnixMilli()
		for _, body := range []string{
			`{"type":"create","url":"https://x.example/1","timestamp":-7,"data":{"z":1.0,"a":18446744073709551615}}`,
			`{"\u0075rl":"https://x.example/2","type":"no\u006fp","data":null}`,
		} {
			a.requireDone(alice, "POST", "/topics/widgets", body)
		}
		task, err := a.Acquire(t.Context(), bus.QueueMain, "w1", bus.Failing, time.Now())
		require.NoError(t, err)
		require.Len(t, task.Delivery.Events, 2)
		one, err := wire.AppendEventJSON(nil, task.Delivery.Events[0])
		require.NoError(t, err)
		assert.Equal(t, `{"topic":"widgets","type":"create","url":"https://x.example/1","t":-7,"data":{"z":1.0,"a":18446744073709551615}}`, string(one))
		two, err := wire.AppendEventJSON(nil, task.Delivery.Events[1])
		require.NoError(t, err)
		var got struct {
			T    int64
			Data any
		}
		require.NoError(t, json.Unmarshal(two, &got))
		assert.GreaterOrEqual(t, got.T, before)
		assert.LessOrEqual(t, got.T, time.Now().UnixMilli())
		assert.NotContains(t, string(two), "data")

		assert.Equal(t, 403, a.problem(bob, "POST", "/topics/widgets", `{"type":"noop","url":"https://x.example/"}`).Status)
	})
}

func TestARefusedRequestChangesNothing(t *testing.T) {
	storetest.Each(t, func(t *testing.T, redis *storetest.Server) {
		a := newAPI(t, redis)
		event := func(members string) string { return `{"type":"noop","url":"https://x.example/",` + members + `}` }
		sub := func(members string) string { return `{"topics":["a"],"callback":"https://x.example/",` + members + `}` }
		for _, c := range []struct{ path, body, pointer, detail string }{
			{"/topics/Widgets", event(`"data":1`), "", "a topic name is"},
			{"/topics/a%0Ab", event(`"data":1`), "", "a topic name is"},
			{"/topics/a", ``, "", "empty"},
			{"/topics/a", "  \n", "", "empty"},
			{"/topics/a", `{`, "", "line 1, column 2: it ends too early"},
			{"/topics/a", "{\n  \"type\": noop}", "", "line 2, column 12"},
			{"/topics/a", `null`, "", "must be an object"},
			{"/topics/a", `7`, "", "must be an object"},
			{"/topics/a", event(`"data":1`) + `{}`, "", "something after the JSON value"},
			{"/topics/a", event(`"data":1`) + `x`, "", "line 1, column 52"},
			{"/topics/a", event(`"type":"noop"`), "", "duplicate"},
			{"/topics/a", "{\"type\":\"\xff\"}", "", "UTF-8"},
			{"/topics/a", event(`"extra":1`), "/extra", "known are type, url, timestamp, data"},
			{"/topics/a", `{"url":"https://x.example/"}`, "/type", "one of create"},
			{"/topics/a", `{"type":"created","url":"https://x.example/"}`, "/type", "one of create"},
			{"/topics/a", `{"type":1,"url":"https://x.example/"}`, "/type", "must be a string"},
			{"/topics/a", `{"type":"noop"}`, "/url", "https"},
			{"/topics/a", `{"type":"noop","url":null}`, "/url", "must be a string"},
			{"/topics/a", `{"type":"noop","url":"http://x.example/"}`, "/url", "https"},
			{"/topics/a", `{"type":null,"url":"https://x.example/"}`, "/type", "must be a string"},
			{"/topics/a", `{"type":"","url":"https://x.example/"}`, "/type", "one of create"},
			{"/topics/a", `{"type":"noop","url":""}`, "/url", "https"},
			{"/topics/a", `{"type":"noop","url":7}`, "/url", "must be a string"},
			{"/topics/a", `{"type":"noop","url":["https://x.example/"]}`, "/url", "must be a string"},
			{"/topics/a", `{"type":"noop","url":"https://"}`, "/url", "host"},
			{"/topics/a", `{"type":"noop","url":"//x.example/"}`, "/url", "https"},
			{"/topics/a", `{"type":"noop","url":"https://x.example/a b"}`, "/url", "percent-encode"},
			{"/topics/a", `{"type":"noop","url":"https://x.example/é"}`, "/url", "percent-encode"},
			{"/topics/a", `{"type":"noop","url":"https://x.example/%"}`, "/url", "does not parse"},
			{"/topics/a", `{"type":"noop","url":"https://x.example/` + strings.Repeat("a", 1024) + `"}`, "/url", "at most 1024"},
			{"/topics/a", `{"type":"noop","url":"https://x.example/","Type":"noop"}`, "/Type", "known are"},
			{"/topics/a", `{"type":"noop","url":"https://x.example/","a~b/c":1}`, "/a~0b~1c", "known are"},
			{"/topics/a", `{'type':'noop'}`, "", "line 1, column 2"},
			{"/topics/a", `{"type":"noop",}`, "", "line 1, column"},
			{"/topics/a", `{"type":"noop" "url":1}`, "", "line 1, column"},
			{"/topics/a", `"noop"`, "", "must be an object"},
			{"/topics/a", `true`, "", "must be an object"},
			{"/topics/a", event(`"data":NaN`), "", "line 1, column"},
			{"/topics/a", event(`"data":01`), "", "line 1, column"},
			{"/topics/a", event(`"data":{"a":1,"a":2}`), "", "duplicate"},
			{"/topics/a", event(`"data":"\ud800"`), "", "line 1, column"},
			{"/topics/a", event(`"data":` + strings.Repeat("[", 102) + strings.Repeat("]", 102)), "/data", "nested"},
			{"/topics/a", event(`"data":` + strings.Repeat("[", 20_000)), "", "depth"},
			{"/topics/a", event(`"data":1e-999`), "/data", "double"},
			{"/topics/a", event(`"data":-9223372036854775809`), "/data", "64 bits"},
			{"/topics/a", event(`"timestamp":true`), "/timestamp", "integer"},
			{"/topics/a", event(`"timestamp":1e19`), "/timestamp", "integer"},
			{"/topics/a", event(`"timestamp":1.5`), "/timestamp", "integer"},
			{"/topics/a", event(`"timestamp":1795302000000.5`), "/timestamp", "integer"},
			{"/topics/a", event(`"timestamp":15e-1`), "/timestamp", "integer"},
			{"/topics/a", event(`"timestamp":1e999999999999999999999`), "/timestamp", "integer"},
			{"/topics/a", event(`"timestamp":9223372036854775808.0`), "/timestamp", "64 bits"},
			{"/topics/a", event(`"timestamp":"1"`), "/timestamp", "integer"},
			{"/topics/a", event(`"timestamp":9223372036854775808`), "/timestamp", "64 bits"},
			{"/topics/a", event(`"data":"` + strings.Repeat("x", 64) + `"`), "/data", "at most 64"},
			{"/topics/a", event(`"data":18446744073709551616`), "/data", "64 bits"},
			{"/topics/a", event(`"data":1e999`), "/data", "double"},
			{"/subscription", sub(`"extra":1`), "/extra", "known are topics"},
			{"/subscription", `{"callback":"https://x.example/"}`, "/topics", "array"},
			{"/subscription", `{"topics":"a","callback":"https://x.example/"}`, "/topics", "array"},
			{"/subscription", `{"topics":["a",1],"callback":"https://x.example/"}`, "/topics/1", "string"},
			{"/subscription", `{"topics":["a","B"],"callback":"https://x.example/"}`, "/topics/1", "topic name"},
			{"/subscription", `{"topics":["a"]}`, "/callback", "is required"},
			{"/subscription", `{}`, "/topics", "is required"},
			{"/topics/a", `{}`, "/type", "is required"},
			{"/topics/a", `{"type":"noop"}`, "/url", "is required"},
			{"/subscription", `{"topics":["a"],"callback":"https://x.example/?a=b"}`, "/callback", "query"},
			{"/subscriber", `[]`, "", "must be an object"},
			{"/subscriber", `{"topics":null,"callback":"https://x.example/"}`, "/topics", "array"},
			{"/subscriber", `{"topics":[["a"]],"callback":"https://x.example/"}`, "/topics/0", "string"},
			{"/subscriber", `{"topics":["a","a\n"],"callback":"https://x.example/"}`, "/topics/1", "topic name"},
			{"/subscriber", `{"topics":["a"],"callback":"http://x.example/"}`, "/callback", "https"},
			{"/subscriber", `{"topics":["a"],"callback":"https://x.example/#a"}`, "/callback", "fragment"},
			{"/subscriber", `{"topics":["a"],"callback":null}`, "/callback", "string"},
			{"/subscriber", sub(`"uuid":"a:b"`), "/uuid", "colon"},
			{"/subscriber", sub(`"uuid":"a\u0000"`), "/uuid", "control"},
			{"/subscriber", sub(`"max":10001`), "/max", "1 to 10000"},
			{"/subscriber", sub(`"max":-9223372036854775808`), "/max", "1 to 10000"},
			{"/subscriber", sub(`"timeout":"500"`), "/timeout", "integer"},
			{"/subscription", sub(`"uuid":7`), "/uuid", "string"},
			{"/subscription", sub(`"timeout":-1`), "/timeout", "0 to 3600000"},
			{"/subscription", sub(`"timeout":3600001`), "/timeout", "0 to 3600000"},
			{"/subscription", sub(`"timeout":9223372036854775807`), "/timeout", "0 to 3600000"},
			{"/subscription", sub(`"max":0`), "/max", "1 to 10000"},
			{"/subscription", sub(`"max":1.0`), "/max", "integer"},
			{"/subscription", sub(`"max":true`), "/max", "integer"},
		} {
			got := a.problem(alice, "POST", c.path, c.body)
			assert.Equal(t, 400, got.Status, c.body)
			assert.Equal(t, c.pointer, got.Pointer, "%s: %s", c.body, got.Detail)
			assert.Contains(t, got.Detail, c.detail, c.body)
		}
		for _, c := range []struct{ body, pointer string }{
			{`{}`, "/name"}, {`{"name":"A"}`, "/name"}, {`{"name":"root"}`, "/name"}, {`{"name":1}`, "/name"},
			{`{"name":"` + strings.Repeat("a", 31) + `"}`, "/name"},
			{`{"name":"a","token":""}`, "/token"}, {`{"name":"a","token":"A"}`, "/token"}, {`{"name":"a","x":1}`, "/x"},
		} {
			got := a.problem(rootKey, "POST", "/api_tokens", c.body)
			assert.Equal(t, 400, got.Status, c.body)
			assert.Equal(t, c.pointer, got.Pointer, c.body)
		}
		big := event(`"data":"` + strings.Repeat("x", 70_000) + `"`)
		assert.Equal(t, 413, a.problem(alice, "POST", "/topics/a", big).Status)

		keys, err := redis.Raw.Keys(t.Context(), "*").Result()
		require.NoError(t, err)
		assert.Equal(t, []string{"api_tokens:by_token"}, keys)
	})
}

func TestTokens(t *testing.T) {
	storetest.Each(t, func(t *testing.T, redis *storetest.Server) {
		a := newAPI(t, redis)
		got := a.do(rootKey, "POST", "/api_tokens", `{"name":"carol"}`)
		require.Equal(t, 201, got.status)
		var made struct{ Name, Token string }
		require.NoError(t, json.Unmarshal([]byte(got.body), &made))
		assert.Equal(t, "carol", made.Name)
		assert.Regexp(t, `^carol--[0-9a-f]{32}$`, made.Token)
		assert.Equal(t, 204, a.do(made.Token, "GET", "/pulse", "").status, "it works at once")

		got = a.do(rootKey, "POST", "/api_tokens", `{"token":"dave:1","name":"dave"}`)
		assert.Equal(t, 201, got.status)
		assert.JSONEq(t, `{"name":"dave","token":"dave:1"}`, got.body)
		again := a.do(rootKey, "POST", "/api_tokens", `{"token":"dave:1","name":"dave"}`)
		assert.Equal(t, 201, again.status, "it is there already")
		assert.Equal(t, got.body, again.body)
		taken := a.problem(rootKey, "POST", "/api_tokens", `{"token":"dave:1","name":"eve"}`)
		assert.Equal(t, 409, taken.Status)
		assert.Equal(t, "/token", taken.Pointer)
		got = a.do(rootKey, "GET", "/api_tokens", "")
		assert.JSONEq(t, `[{"name":"alice","token":"alice--1"},{"name":"bob","token":"bob--2"},`+
			`{"name":"carol","token":"`+made.Token+`"},{"name":"dave","token":"dave:1"}]`, got.body)

		a.requireDone("dave:1", "POST", "/subscription", `{"topics":["widgets"],"callback":"https://d.example/"}`)
		for _, token := range []string{alice, bob, made.Token, "dave:1", "dave:1"} {
			a.requireDone(rootKey, "DELETE", "/api_tokens/"+token, "")
		}
		assert.Equal(t, 204, a.do(rootKey, "GET", "/api_tokens", "").status)
		assert.JSONEq(t, `[]`, a.do(rootKey, "GET", "/subscriptions", "").body, "its subscriber is gone too")
	})
}

// withinASecond is just less than a second.
const withinASecond = time.Second - time.Nanosecond

func TestATokenRemovedByAnotherProcessStopsWorkingWithinASecond(t *testing.T) {
	storetest.Each(t, func(t *testing.T, redis *storetest.Server) {
		a, other := newAPI(t, redis), newAPI(t, redis)
		require.Equal(t, 204, a.do(alice, "GET", "/pulse", "").status)
		other.requireDone(rootKey, "DELETE", "/api_tokens/"+alice, "")
		a.ahead += withinASecond
		assert.Equal(t, 401, a.do(alice, "GET", "/pulse", "").status)
	})
}

func TestListsShowCredentialsOnlyToTheirOwners(t *testing.T) {
	storetest.Each(t, func(t *testing.T, redis *storetest.Server) {
		a := newAPI(t, redis)
		a.requireDone(alice, "POST", "/topics/widgets", `{"type":"noop","url":"https://x.example/"}`)
		a.requireDone(bob, "POST", "/subscription", `{"topics":["widgets","gadgets"],"callback":"https://b.example/","uuid":"bobs-uuid","timeout":0,"max":5}`)
		a.requireDone(alice, "POST", "/topics/widgets", `{"type":"noop","url":"https://x.example/"}`)

		found, _, err := a.Subscribers(t.Context())
		require.NoError(t, err)
		oldest := strconv.FormatInt(found[0].OldestAt.UnixMilli(), 10)
		topics := func(publisher string) string {
			return `[{"name":"gadgets","publisher":null,"events":0},{"name":"widgets","publisher":"` + publisher + `","events":2}]`
		}
		subscribers := func(subscriber, uuid string) string {
			return `[{"subscriber":"` + subscriber + `","name":"bob","uuid":` + uuid + `,"callback":"https://b.example/","max_events":5,"timeout":0,` +
				`"topics":["gadgets","widgets"],"health_points":100,"last_attempted_at":null,"events":{"sent":0,"queued":1,"oldest":` + oldest + `}}]`
		}
		for who, want := range map[string][2]string{
			rootKey: {topics("alice--1"), subscribers("bob--2", `"bobs-uuid"`)},
			alice:   {topics("alice--1"), subscribers("bob", `null`)},
			bob:     {topics("alice"), subscribers("bob--2", `"bobs-uuid"`)},
		} {
			assert.JSONEq(t, want[0], a.do(who, "GET", "/topics", "").body, who)
			assert.JSONEq(t, want[1], a.do(who, "GET", "/subscriptions", "").body, who)
		}
		require.NoError(t, a.DeleteToken(t.Context(), alice))
		for range 2 {
			assert.NotContains(t, a.do(bob, "GET", "/topics", "").body, alice, "a token that is no longer one is not shown either")
			a.ahead += withinASecond
		}
	})
}

// TestADamagedSubscriberHidesNobodyElse has something else than the bus write to what is Bob's.
func TestADamagedSubscriberHidesNobodyElse(t *testing.T) {
	storetest.Each(t, func(t *testing.T, redis *storetest.Server) {
		for _, key := range []string{"subscriber:", "topics:"} {
			require.NoError(t, redis.Raw.FlushAll(t.Context()).Err())
			a := newAPI(t, redis)
			for _, who := range []string{alice, bob} {
				a.requireDone(who, "POST", "/subscription", `{"topics":["widgets"],"callback":"https://x.example/"}`)
			}
			require.NoError(t, redis.Raw.Set(t.Context(), key+bob, "x", 0).Err())
			for _, who := range []string{rootKey, alice, bob} {
				a.log.Reset()
				got := a.do(who, "GET", "/subscriptions", "")
				require.Equal(t, http.StatusOK, got.status, got.body)
				var listed []struct{ Subscriber string }
				require.NoError(t, json.Unmarshal([]byte(got.body), &listed))
				require.Len(t, listed, 1)
				assert.Contains(t, []string{"alice", alice}, listed[0].Subscriber)
				assert.Equal(t, 1, strings.Count(a.log.String(), "left out subscribers whose data is damaged"), a.log)
				assert.Contains(t, a.log.String(), "keys=["+key+"bob]")
				assert.NotContains(t, a.log.String(), bob, "a token is a secret")
			}
		}
	})
}

// TestADamagedTopicHidesNoOther has something else than the bus write to what is a topic's.
func TestADamagedTopicHidesNoOther(t *testing.T) {
	storetest.Each(t, func(t *testing.T, redis *storetest.Server) {
		a := newAPI(t, redis)
		for _, topic := range []string{"gadgets", "widgets"} {
			a.requireDone(alice, "POST", "/topics/"+topic, `{"type":"noop","url":"https://x.example/"}`)
		}
		require.NoError(t, redis.Raw.Set(t.Context(), "topic:gadgets", "x", 0).Err())
		got := a.do(rootKey, "GET", "/topics", "")
		require.Equal(t, http.StatusOK, got.status, got.body)
		assert.JSONEq(t, `[{"name":"widgets","publisher":"`+alice+`","events":1}]`, got.body)
		assert.Equal(t, 1, strings.Count(a.log.String(), "left out topics whose data is damaged"), a.log)
		assert.Contains(t, a.log.String(), "keys=[topic:gadgets]")
	})
}

func TestUnsubscribe(t *testing.T) {
	a := newAPI(t, storetest.Embedded(t))
	a.requireDone(alice, "POST", "/topics/other", `{"type":"noop","url":"https://x.example/"}`)
	assert.Equal(t, 404, a.problem(bob, "DELETE", "/subscriber", "").Status)
	a.requireDone(bob, "POST", "/subscription", `{"topics":["widgets"],"callback":"https://b.example/"}`)
	assert.Equal(t, 404, a.problem(bob, "DELETE", "/subscriber/topics/nowhere", "").Status)
	assert.Equal(t, 404, a.problem(bob, "DELETE", "/subscriber/topics/other", "").Status)
	assert.Equal(t, 404, a.problem(bob, "DELETE", "/subscriber/topics/Bad", "").Status)
	a.requireDone(bob, "DELETE", "/subscriber/topics/widgets", "")
	a.requireDone(bob, "DELETE", "/subscriber", "")
}

func TestDeleteTopic(t *testing.T) {
	redis := storetest.Embedded(t)
	a := newAPI(t, redis)
	for _, topic := range []string{"one", "two"} {
		a.requireDone(alice, "POST", "/topics/"+topic, `{"type":"noop","url":"https://x.example/"}`)
		assert.Equal(t, 403, a.problem(bob, "DELETE", "/topics/"+topic, "").Status)
	}
	a.requireDone(alice, "DELETE", "/topics/one", "")
	a.requireDone(rootKey, "DELETE", "/topic/two", "")
	assert.Equal(t, 404, a.problem(alice, "DELETE", "/topics/one", "").Status)
	assert.Equal(t, 404, a.problem(alice, "DELETE", "/topics/One", "").Status)
	redis.Raw.SAdd(t.Context(), "topics", "Widgets") // as the Ruby original let in
	a.requireDone(rootKey, "DELETE", "/topics/Widgets", "")
	assert.JSONEq(t, `[]`, a.do(alice, "GET", "/topics", "").body)
}

func TestPulseScalingIsSlowWhenThereIsMuchToDo(t *testing.T) {
	a := newAPI(t, storetest.Embedded(t))
	ctx := t.Context()
	pulse := func() time.Duration {
		return storetest.Took(func() { a.requireDone(alice, "GET", "/pulse/scaling", "") })
	}
	storetest.Promptly(t, time.Second, pulse)
	for _, name := range []bus.JobName{"x", "y"} {
		_, err := a.Enqueue(ctx, bus.QueueMain, bus.Job{Name: name})
		require.NoError(t, err)
	}
	assert.GreaterOrEqual(t, pulse(), time.Second)
}

func TestForceTLS(t *testing.T) {
	a := newAPI(t, storetest.Embedded(t), func(c *web.Config) { c.ForceTLS = true })
	for target, location := range map[string]string{
		"/topics/a%2Fb?c=d": "https://example.com/topics/a%2Fb?c=d", "/nowhere": "https://example.com/nowhere",
		"http://bus.example/topics": "https://bus.example/topics", "/healthy": "https://example.com/healthy",
	} {
		got := a.do("", "POST", target, "")
		assert.Equal(t, 308, got.status)
		assert.Equal(t, location, got.header.Get("Location"))
		assert.NotEmpty(t, got.header.Get("Strict-Transport-Security"))
	}
	assert.Equal(t, 200, a.do("", "GET", "/health", "").status)

	for proto, status := range map[string]int{"https": 204, "HTTPS": 204, "https, http": 204, "http": 308, "http, https": 308, "": 308} {
		r := httptest.NewRequestWithContext(t.Context(), "GET", "/pulse", nil)
		r.Header.Set("X-Forwarded-Proto", proto)
		r.SetBasicAuth(alice, "")
		w := httptest.NewRecorder()
		a.handler.ServeHTTP(w, r)
		assert.Equal(t, status, w.Code, proto)
		assert.NotEmpty(t, w.Header().Get("Strict-Transport-Security"))
	}
}

func TestRedisAwayIs503(t *testing.T) {
	redis := storetest.Real(t)
	a := newAPI(t, redis)
	storetest.Promptly(t, 2*time.Second, func() time.Duration {
		redis.Kill(t)
		for _, path := range []string{"/pulse", "/topics", "/subscriptions", "/health/ready"} {
			assert.Equal(t, 503, a.problem(alice, "GET", path, "").Status, path)
			assert.Equal(t, "1", a.do(alice, "GET", path, "").header.Get("Retry-After"))
		}
		assert.Equal(t, 503, a.problem(alice, "POST", "/topics/a", `{"type":"noop","url":"https://x.example/"}`).Status)
		assert.Equal(t, 503, a.problem("wrong", "GET", "/topics", "").Status, "never a free pass")
		assert.Equal(t, 503, a.problem(rootKey, "GET", "/pulse", "").Status)
		assert.Equal(t, 200, a.do("", "GET", "/health", "").status)
		redis.Restart(t)
		require.NoError(t, redis.Raw.HSet(t.Context(), "api_tokens:by_token", alice, "alice").Err())
		return storetest.Took(func() {
			require.Eventually(t, func() bool { return a.do(alice, "GET", "/pulse", "").status == 204 }, 10*time.Second, time.Millisecond)
		})
	})
}

func TestRunAnswersWhatItHasAccepted(t *testing.T) {
	a := newAPI(t, storetest.Embedded(t))
	for _, name := range []bus.JobName{"x", "y"} { // so that /pulse/scaling takes a second
		_, err := a.Enqueue(t.Context(), bus.QueueMain, bus.Job{Name: name})
		require.NoError(t, err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	ran := make(chan error)
	started := countAccepted{Listener: listener}
	go func() { ran <- a.server.Run(ctx, &started) }()

	conn, err := net.Dial("tcp", listener.Addr().String())
	require.NoError(t, err)
	defer conn.Close()
	_, err = io.WriteString(conn, "GET /pulse/scaling HTTP/1.1\r\nHost: x\r\nAuthorization: Basic YWxpY2UtLTE6\r\nConnection: close\r\n\r\n")
	require.NoError(t, err)
	require.Eventually(t, func() bool { return started.Load() > 0 }, 10*time.Second, time.Millisecond)
	stop()
	text, err := io.ReadAll(conn)
	require.NoError(t, err)
	assert.Contains(t, string(text), "HTTP/1.1 204")
	require.NoError(t, <-ran)
	_, err = net.Dial("tcp", listener.Addr().String())
	assert.Error(t, err)
}

// countAccepted counts the requests whose first bytes have been read.
type countAccepted struct {
	net.Listener
	atomic.Int32
}

func (l *countAccepted) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &countReads{conn, l}, nil
}

type countReads struct {
	net.Conn
	count *countAccepted
}

func (c *countReads) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 {
		c.count.Add(1)
	}
	return n, err
}

func TestAHangingRedisHoldsUpRequestsTogetherNotInTurn(t *testing.T) {
	t.Parallel()
	redis := storetest.Real(t)
	a := newAPI(t, redis)
	redis.Freeze(t)
	began := time.Now()
	var requests sync.WaitGroup
	for range 8 {
		requests.Go(func() { assert.Equal(t, 503, a.do(alice, "GET", "/topics", "").status) })
	}
	requests.Wait()
	assert.Less(t, time.Since(began), 12*time.Second, "one wait for the tokens, not eight")
	redis.Thaw(t)
}

func TestANameDoesNotMakeRoot(t *testing.T) {
	a := newAPI(t, storetest.Embedded(t))
	require.NoError(t, a.PutToken(t.Context(), "evil", "root"))
	assert.Equal(t, 403, a.problem("evil", "GET", "/api_tokens", "").Status)
}

func TestANameDoesNotTellItsToken(t *testing.T) {
	a := newAPI(t, storetest.Embedded(t))
	assert.Equal(t, "/token", a.problem(rootKey, "POST", "/api_tokens", `{"name":"s3cret","token":"s3cret"}`).Pointer)
	require.NoError(t, a.PutToken(t.Context(), "s3cret", "s3cret"))
	a.requireDone("s3cret", "POST", "/topics/a", `{"type":"noop","url":"https://x.example/"}`)
	assert.NotContains(t, a.do(alice, "GET", "/topics", "").body, "s3cret")
}

func TestBasicCredentialsWithColons(t *testing.T) {
	a := newAPI(t, storetest.Embedded(t), func(c *web.Config) { c.RootKey = "alice--1:root" })
	ctx := t.Context()
	require.NoError(t, a.PutToken(ctx, "svc", "short"))
	require.NoError(t, a.PutToken(ctx, "svc:one", "long"))
	owner := func(user, password, topic string) bus.Token {
		r := httptest.NewRequestWithContext(ctx, "POST", "/topics/"+topic, strings.NewReader(`{"type":"noop","url":"https://x.example/"}`))
		r.SetBasicAuth(user, password)
		w := httptest.NewRecorder()
		a.handler.ServeHTTP(w, r)
		require.Equal(t, 200, w.Code)
		topics, _, err := a.Topics(ctx)
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
	assert.Equal(t, 200, a.do("alice--1:root", "GET", "/api_tokens", "").status, "the root key, although it begins like a token")
	r := httptest.NewRequestWithContext(ctx, "GET", "/pulse", nil)
	r.SetBasicAuth(strings.Repeat(":", 10_000), "")
	w := httptest.NewRecorder()
	a.handler.ServeHTTP(w, r)
	assert.Equal(t, 401, w.Code)
}

func TestWithoutARootKeyNobodyIsRoot(t *testing.T) {
	a := newAPI(t, storetest.Embedded(t), func(c *web.Config) { c.RootKey = "" })
	r := httptest.NewRequestWithContext(t.Context(), "GET", "/api_tokens", nil)
	r.SetBasicAuth("", "")
	w := httptest.NewRecorder()
	a.handler.ServeHTTP(w, r)
	assert.Equal(t, 401, w.Code)
}

func TestAClientThatLeavesIsNoError(t *testing.T) {
	redis := storetest.Real(t)
	a := newAPI(t, redis)
	ctx, leave := context.WithCancel(t.Context())
	leave()
	r := httptest.NewRequestWithContext(ctx, "GET", "/topics", nil)
	r.SetBasicAuth(alice, "")
	a.handler.ServeHTTP(httptest.NewRecorder(), r)
	assert.NotContains(t, a.log.String(), "ERROR")
}

func TestPathsAreDecoded(t *testing.T) {
	a := newAPI(t, storetest.Embedded(t))
	require.NoError(t, a.PutToken(t.Context(), "svc:one", "svc"))
	a.requireDone("svc:one", "POST", "/topics/a%5Fb", `{"type":"noop","url":"https://x.example/"}`)
	a.requireDone(rootKey, "DELETE", "/api_tokens/svc%3Aone", "")
	name, err := a.ClientName(t.Context(), "svc:one")
	require.NoError(t, err)
	assert.Empty(t, name)
}

func TestATokenRemovedAMomentAgoLeavesNothingBehind(t *testing.T) {
	a := newAPI(t, storetest.Embedded(t))
	require.Equal(t, 204, a.do(alice, "GET", "/pulse", "").status)
	require.NoError(t, a.DeleteToken(t.Context(), alice)) // this process does not know it yet
	assert.Equal(t, 401, a.problem(alice, "POST", "/subscription", `{"topics":["a"],"callback":"https://x.example/"}`).Status)
	assert.Equal(t, 401, a.problem(alice, "POST", "/topics/a", `{"type":"noop","url":"https://x.example/"}`).Status)
	assert.JSONEq(t, `[]`, a.do(rootKey, "GET", "/subscriptions", "").body)
	assert.JSONEq(t, `[]`, a.do(rootKey, "GET", "/topics", "").body)
}
