package web_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/ingest"
	"routemaster/internal/queue"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store"
	"routemaster/internal/store/storetest"
	"routemaster/internal/telemetry/metrics"
	"routemaster/internal/web"
)

func TestMain(m *testing.M) { rdbtest.Main(m) }

const (
	rootKey = "the-root-key"
	alice   = "alice--1"
	bob     = "bob--2"
)

// api is a server of the HTTP API with its store.
type api struct {
	*store.Store
	*queue.Queue
	t       testing.TB
	handler http.Handler
	server  *web.API
	log     *bytes.Buffer
	// ahead is how far the server's clock is ahead of the real clock.
	ahead time.Duration
	// scheme is how requests are authenticated: Basic if empty, otherwise Digest with this
	// algorithm.
	scheme string
}

func newAPI(t testing.TB, redis *rdbtest.Server, adjust ...func(*web.Config)) *api {
	t.Helper()
	config := web.Config{RootKey: rootKey, NonceTTL: time.Minute, MaxEventData: 64, ScalingThreshold: 2, ScalingDeadline: time.Second}
	for _, f := range adjust {
		f(&config)
	}
	st := storetest.Open(t, redis)
	a := &api{Store: st, Queue: storetest.NewQueue(st, 1), t: t, log: &bytes.Buffer{}}
	a.server = web.New(config, a.Store, a.Queue, ingest.New(a.Store, ingest.Options{}), metrics.NewRegistry().Handler(), a.logger(),
		func() time.Time { return time.Now().Add(a.ahead) })
	a.handler = a.server.Handler()
	require.NoError(t, a.PutToken(t.Context(), alice, "alice"))
	require.NoError(t, a.PutToken(t.Context(), bob, "bob"))
	return a
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

// response is the response to a request.
type response struct {
	status int
	header http.Header
	body   string
}

// do sends a request. Who is a token or the root key; if it is empty, no credentials are sent.
func (a *api) do(who, method, path, body string) response {
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
	got := response{w.Code, w.Header(), strings.TrimSpace(w.Body.String())}
	requireDocumented(a.t, r, body, got)
	return got
}

type problem struct {
	Status                 int
	Title, Detail, Pointer string
}

// problem sends a request that must be refused, and returns the problem.
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

// requireDone sends a request, and requires success without a body: 200 for a publish, otherwise
// 204.
func (a *api) requireDone(who, method, path, body string) {
	a.t.Helper()
	status := http.StatusNoContent
	if method == "POST" && strings.HasPrefix(path, "/topics/") {
		status = http.StatusOK
	}
	got := a.do(who, method, path, body)
	require.Equal(a.t, response{status: status, header: got.header}, got, "%s %s", method, path)
}

func eventText(i int) string {
	return fmt.Sprintf(`{"type":"noop","url":"https://x.example/%d"}`, i)
}

// eventsText is an array of the events first..last.
func eventsText(first, last int) string {
	var events []string
	for i := first; i <= last; i++ {
		events = append(events, eventText(i))
	}
	return "[" + strings.Join(events, ",") + "]"
}
