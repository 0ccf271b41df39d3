package test

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/app"
	"routemaster/internal/bus"
	"routemaster/internal/ingest"
	"routemaster/internal/queue"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store"
	"routemaster/internal/store/storetest"
	"routemaster/internal/telemetry/vendors"
	"routemaster/internal/test/bustest"
	"routemaster/internal/web"
	"routemaster/internal/worker"
)

// license is a license key as New Relic's agent wants it.
var license = strings.Repeat("0123456789", 4)

// exceptionService speaks the protocols of Sentry, of Honeybadger, and of New Relic's collector.
type exceptionService struct {
	*httptest.Server
	mu      sync.Mutex
	reports []string
	secrets []string // the keys that reports came with
}

func newExceptionService(t *testing.T) *exceptionService {
	s := &exceptionService{}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /api/42/envelope/", func(w http.ResponseWriter, r *http.Request) {
		s.keep(t, r.Header.Get("X-Sentry-Auth"), r.Body)
		_, _ = io.WriteString(w, `{}`)
	})
	mux.HandleFunc("POST /v1/notices", func(w http.ResponseWriter, r *http.Request) {
		s.keep(t, r.Header.Get("X-Api-Key"), r.Body)
		w.WriteHeader(http.StatusCreated)
	})
	mux.HandleFunc("POST /agent_listener/invoke_raw_method", s.collect(t))
	s.Server = httptest.NewTLSServer(mux)
	t.Cleanup(s.Close)
	return s
}

// collect is New Relic's collector: the agent asks where to connect, connects, and then sends its
// data.
func (s *exceptionService) collect(t *testing.T) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		answer := any(nil)
		switch query.Get("method") {
		case "preconnect":
			answer = map[string]any{"redirect_host": r.Host}
		case "connect":
			answer = map[string]any{"agent_run_id": "run", "collect_errors": true, "collect_error_events": true, "max_payload_size_in_bytes": 1_000_000}
		case "error_data":
			body, err := gzip.NewReader(r.Body)
			assert.NoError(t, err)
			assert.Equal(t, "run", query.Get("run_id"))
			s.keep(t, query.Get("license_key"), body)
		}
		assert.NoError(t, json.NewEncoder(w).Encode(map[string]any{"return_value": answer}))
	}
}

func (s *exceptionService) keep(t *testing.T, secret string, body io.Reader) {
	text, err := io.ReadAll(body)
	assert.NoError(t, err)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reports, s.secrets = append(s.reports, string(text)), append(s.secrets, secret)
}

// TestPanicsAreReported has a handler of web and a job of worker panic, and each service see it.
func TestPanicsAreReported(t *testing.T) {
	for name, c := range map[string]struct{ key, path string }{
		vendors.Sentry:      {"publickey", "/42"},
		vendors.Honeybadger: {"apikey", ""},
		vendors.NewRelic:    {license, ""},
	} {
		for where, poison := range map[string]func(*testing.T, *vendors.Reporter){"web": poisonWeb, "worker": poisonWorker} {
			t.Run(name+" "+where, func(t *testing.T) {
				service := newExceptionService(t)
				url := strings.Replace(service.URL, "https://", "https://"+c.key+"@", 1) + c.path
				if name == vendors.Honeybadger { // its client has no option for a test's certificate
					plain := httptest.NewServer(service.Config.Handler)
					t.Cleanup(plain.Close)
					url = strings.Replace(plain.URL, "http://", "http://"+c.key+"@", 1)
				}
				transport := service.Client().Transport.(*http.Transport)
				defer transport.CloseIdleConnections()
				logged := &rdbtest.Buffer{}
				reporter, err := vendors.NewReporter(vendors.Options{
					Service: vendors.ExceptionService{Name: name, URL: url}, Program: "routemaster", Version: "1",
					Secrets: []string{bustest.RootKey}, Transport: transport,
				}, slog.New(slog.NewTextHandler(logged, nil)))
				require.NoError(t, err)
				poison(t, reporter)
				reporter.Close()
				require.Len(t, service.reports, 1, "%s", logged)
				assert.Contains(t, service.secrets[0], c.key)
				report := service.reports[0]
				for _, want := range []string{"panicked", "poison in the " + where, "poisonW", map[string]string{"web": "request-7", "worker": "autodrop"}[where]} {
					assert.Contains(t, report, want)
				}
				for _, secret := range []string{bustest.RootKey, license, "Authorization", "HTTP_", "-test.", "GOPATH"} {
					assert.NotContains(t, report, secret)
				}
				assert.Empty(t, logged)
			})
		}
	}
}

// poisonWeb has a handler panic.
func poisonWeb(t *testing.T, reporter *vendors.Reporter) {
	st := storetest.Open(t, rdbtest.Embedded(t))
	poison := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("poison in the web, with " + bustest.RootKey) })
	server := web.New(web.Config{RootKey: bustest.RootKey, NonceTTL: time.Minute, MaxEventData: 64, Reporter: reporter}, store.NewBus(st), ingest.New(store.NewBus(st), ingest.Options{}), poison,
		slog.New(slog.DiscardHandler), time.Now)
	r := httptest.NewRequestWithContext(t.Context(), "GET", "/metrics", nil)
	r.SetBasicAuth(bustest.RootKey, "")
	r.Header.Set("X-Request-Id", "request-7")
	w := httptest.NewRecorder()
	server.Handler().ServeHTTP(w, r)
	assert.Equal(t, http.StatusInternalServerError, w.Code)
}

// poisonWorker has a job panic.
func poisonWorker(t *testing.T, reporter *vendors.Reporter) {
	st := storetest.Open(t, rdbtest.Embedded(t))
	_, err := storetest.NewQueue(st, 1).Enqueue(t.Context(), bus.QueueAux, bus.Job{Name: bus.JobAutodrop})
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	q := storetest.NewQueue(st, 1)
	w := worker.New([]*queue.Queue{q}, worker.Config{
		Pools:          []worker.Pool{{Queues: []*queue.Queue{q}, Name: bus.QueueAux, Threads: 1, ScheduleInterval: time.Second}},
		AcquireTimeout: time.Second, RetryAfter: time.Hour, Reporter: reporter,
		Handlers: map[bus.JobName]worker.Handler{
			bus.JobAutodrop: func(context.Context, *queue.Task) queue.Result { stop(); panic("poison in the worker") },
		},
	}, slog.New(slog.DiscardHandler), time.Now)
	w.Run(ctx)
}

// TestTheBusSurvivesAnOutageOfItsExceptionService lets the service hang, and then kills it, while
// every request to list the topics fails with an unexpected error.
func TestTheBusSurvivesAnOutageOfItsExceptionService(t *testing.T) {
	for name, path := range map[string]string{vendors.Honeybadger: "", vendors.Sentry: "/42"} {
		t.Run(name, func(t *testing.T) {
			hanging := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body) // only then does a server notice that its client has gone
				<-r.Context().Done()
			}))
			defer hanging.Close()
			b := bustest.Start(t, rdbtest.Real(t), func(c *app.Config) {
				c.Exceptions = vendors.ExceptionService{
					Name: name, URL: strings.Replace(hanging.URL, "http://", "http://apikey@", 1) + path,
				}
			})
			publisher := b.AddClient("publisher")
			sub := bustest.NewSubscriber(t, b.AddClient("subscriber"))
			sub.Subscribe(b, 0, 100, "widgets")
			b.Publish(publisher, "widgets", 300)
			require.NoError(t, b.Redis.Raw.Rename(t.Context(), "topics", "topics-aside").Err())
			require.NoError(t, b.Redis.Raw.Set(t.Context(), "topics", "not a set", 0).Err())
			start := time.Now()
			for i := range 300 {
				b.Call(publisher, "GET", "/topics", "", http.StatusInternalServerError)
				b.Publish(publisher, "widgets", i)
				if i == 150 {
					hanging.CloseClientConnections()
					hanging.Listener.Close()
				}
			}
			sub.WaitFor(t, 301)
			t.Logf("300 failing requests, 300 publishes and their deliveries took %v", time.Since(start))
			require.NoError(t, b.Redis.Raw.Rename(t.Context(), "topics-aside", "topics").Err())
			b.RequireNothingLeft()
			require.Eventually(t, func() bool { return strings.Contains(b.Logged.String(), "exception reports cannot be sent") }, bustest.WaitTimeout, time.Millisecond)
			assert.NotContains(t, b.Logged.String(), "apikey")
		})
	}
}
