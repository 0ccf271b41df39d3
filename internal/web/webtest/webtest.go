// Package webtest helps to test the HTTP API: an API with a store and two clients, requests to it,
// and a check that every request and response is as openapi.json documents it.
package webtest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/ingest"
	typesOfJobs "routemaster/internal/jobs"
	"routemaster/internal/machines/engine"
	"routemaster/internal/outbound"
	"routemaster/internal/overview"
	"routemaster/internal/overview/samples"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store"
	"routemaster/internal/store/storetest"
	"routemaster/internal/telemetry"
	"routemaster/internal/web"
	"routemaster/internal/web/rest"
)

// Credentials: the root key of an [API], and the tokens of its two clients. A client's name is its
// token up to "--".
const (
	RootKey = "the-root-key"
	Alice   = "alice--1"
	Bob     = "bob--2"
)

// API is an API under test, with its stores, and a worker that carries events between partitions
// whenever some were published.
type API struct {
	*store.Bus
	*storetest.Worker
	T testing.TB
	// Handler refuses wrong credentials at once: tests send more than are answered in a second. The
	// handler of Server slows them down.
	Handler http.Handler
	Server  *web.API
	// Log is the API's log.
	Log *bytes.Buffer
	// Clock is the API's clock, which Ahead is added to.
	Clock func() time.Time
	Ahead time.Duration
	// Record writes a slot of the history, as a worker would.
	Record func(context.Context) error
	// Authorize adds the credentials of a client or of root to a request of [API.Do]: by Basic
	// unless it is replaced.
	Authorize func(r *http.Request, who string)
}

// New makes an API whose store is empty but for the tokens. Adjust changes its configuration.
func New(t testing.TB, redis *rdbtest.Server, adjust ...func(*web.Config)) *API {
	t.Helper()
	return On(t, storetest.OpenAll(t, redis), adjust...)
}

// On is [New] with the stores of a bus.
func On(t testing.TB, all *store.Bus, adjust ...func(*web.Config)) *API {
	t.Helper()
	st := all.First()
	config := web.Config{
		RootKey: RootKey, NonceTTL: time.Minute, MaxEventData: 64, Queues: web.QueuesConfig{ScalingThreshold: 2, ScalingDeadline: time.Second},
		Jobs: web.JobsConfig{Downstream: true}, Version: "1.2.3",
	}
	feeds := outbound.New(outbound.Config{ConnectTimeout: time.Minute, Timeout: time.Minute}, time.Now)
	t.Cleanup(feeds.Close)
	config.Machines = web.MachinesConfig{Labels: engine.NewBus(all.Partitions()), Client: feeds}
	collector := samples.NewCollector(samples.Config{
		Stores:      all,
		CountJobs:   func(context.Context) ([]typesOfJobs.CountedType, error) { return nil, nil },
		CountLabels: config.Machines.Labels.CountAll,
	}, time.Now)
	config.Live = samples.NewLive(collector)
	config.Jobs.Processes = func(ctx context.Context) ([]overview.Process, error) {
		return samples.Processes(ctx, st.Partition(), time.Now())
	}
	for _, f := range adjust {
		f(&config)
	}
	a := &API{
		Record: samples.NewRecorder(collector, func(context.Context) {}).Tick,

		Bus: all, T: t, Log: &bytes.Buffer{}, Clock: time.Now,
		Authorize: func(r *http.Request, who string) { r.SetBasicAuth(who, "") },
	}
	now := func() time.Time { return a.Clock().Add(a.Ahead) }
	a.Worker = storetest.NewWorker(all, now)
	log := slog.New(slog.NewTextHandler(a.Log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	a.Server = web.New(config, all, ingest.New(all, ingest.Options{}), telemetry.NewRegistry().Handler(), log, now)
	handler := a.Server.Handler()
	a.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handler.ServeHTTP(w, r.WithContext(rest.Uncounted(r.Context())))
	})
	require.NoError(t, all.PutToken(t.Context(), Alice, "alice"))
	require.NoError(t, all.PutToken(t.Context(), Bob, "bob"))
	return a
}

// Run serves on loopback until the test ends, and returns the URL.
func (a *API) Run() (url string) {
	a.T.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(a.T, err)
	ctx, stop := context.WithCancel(context.Background())
	ran := make(chan error)
	go func() { ran <- a.Server.Run(ctx, listener) }()
	var relaying sync.WaitGroup
	if len(a.All()) > 1 {
		relaying.Go(func() { a.relayUntil(ctx) })
	}
	a.T.Cleanup(func() {
		stop()
		relaying.Wait()
		assert.NoError(a.T, <-ran)
	})
	return "http://" + listener.Addr().String()
}

// Relay is [storetest.Worker.Relay], now.
func (a *API) Relay(ctx context.Context) error {
	return a.Worker.Relay(ctx, a.Clock().Add(a.Ahead))
}

func isPublish(method, path string) bool {
	return method == http.MethodPost && strings.HasPrefix(path, "/topics/")
}

// relayUntil carries events that were not published by [API.Do] to other partitions, until the
// context is done.
func (a *API) relayUntil(ctx context.Context) {
	for ctx.Err() == nil {
		_ = a.Relay(ctx) // Redis may be away
		select {
		case <-ctx.Done():
		case <-time.After(store.RelayInterval):
		}
	}
}

// Response is the response to a request.
type Response struct {
	Status int
	Header http.Header
	Body   string
}

// Do sends a request. The first argument is a token or the root key; if it is empty, no credentials
// are sent.
func (a *API) Do(who, method, path, body string) Response {
	a.T.Helper()
	return a.DoOnce(who, method, path, body)
}

// DoOnce is [API.Do] with idempotency keys.
func (a *API) DoOnce(who, method, path, body string, keys ...string) Response {
	a.T.Helper()
	r := httptest.NewRequestWithContext(a.T.Context(), method, path, strings.NewReader(body))
	if who != "" {
		a.Authorize(r, who)
	}
	for _, key := range keys {
		r.Header.Add("Idempotency-Key", key)
	}
	w := httptest.NewRecorder()
	a.Handler.ServeHTTP(w, r)
	RequireDocumented(a.T, r, body, w)
	if isPublish(method, path) && w.Code == http.StatusOK {
		require.NoError(a.T, a.Relay(a.T.Context()))
	}
	return Response{w.Code, w.Header(), strings.TrimSpace(w.Body.String())}
}

// Problem is the body of a response that refuses a request.
type Problem struct {
	Status                 int
	Title, Detail, Pointer string
	ID, Instance           string
}

// Problem sends a request that must be refused, and returns the problem.
func (a *API) Problem(who, method, path, body string) Problem {
	a.T.Helper()
	got := a.Do(who, method, path, body)
	assert.Equal(a.T, "application/problem+json", got.Header.Get("Content-Type"), "%s %s %s", method, path, got.Body)
	var p Problem
	require.NoError(a.T, json.Unmarshal([]byte(got.Body), &p), "%s %s %s", method, path, got.Body)
	assert.Equal(a.T, got.Status, p.Status)
	assert.Equal(a.T, http.StatusText(got.Status), p.Title)
	assert.NotEmpty(a.T, p.Detail)
	assert.NotEmpty(a.T, p.ID)
	for _, secret := range []string{RootKey, Alice, Bob} {
		assert.NotContains(a.T, got.Body, secret)
	}
	return p
}

// RequireDone sends a request, and requires success without a body: 200 for a publish, otherwise
// 204.
func (a *API) RequireDone(who, method, path, body string) {
	a.T.Helper()
	status := http.StatusNoContent
	if isPublish(method, path) {
		status = http.StatusOK
	}
	got := a.Do(who, method, path, body)
	require.Equal(a.T, Response{Status: status, Header: got.Header}, got, "%s %s", method, path)
}

// EventText is the event with a number.
func EventText(i int) string {
	return fmt.Sprintf(`{"type":"noop","url":"https://x.example/%d"}`, i)
}

// EventsText is an array of the events first..last.
func EventsText(first, last int) string {
	var events []string
	for i := first; i <= last; i++ {
		events = append(events, EventText(i))
	}
	return "[" + strings.Join(events, ",") + "]"
}

// Signal is a body of a request that closes Ended when it has been read to its end: then the
// request is authenticated.
type Signal struct {
	io.Reader
	Ended chan struct{}
	once  sync.Once
}

// NewSignal makes a body.
func NewSignal(text string) *Signal {
	return &Signal{Reader: strings.NewReader(text), Ended: make(chan struct{})}
}

// Read implements [io.Reader].
func (s *Signal) Read(to []byte) (n int, err error) {
	n, err = s.Reader.Read(to)
	if err == io.EOF {
		s.once.Do(func() { close(s.Ended) })
	}
	return n, err
}
