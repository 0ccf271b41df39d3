package vendors_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/telemetry/vendors"
)

func TestMain(m *testing.M) {
	// New Relic's agent sleeps between its tries to connect, and hears only then that it is over.
	rdbtest.Main(m, goleak.IgnoreAnyFunction("github.com/newrelic/go-agent/v3/newrelic.(*app).connectRoutine"))
}

// service is a service that answers when told, and keeps the reports it got.
type service struct {
	url    string
	answer chan struct{}
	mu     sync.Mutex
	bodies []string
}

func newService(t *testing.T) *service {
	s := &service{answer: make(chan struct{})}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body bytes.Buffer
		_, _ = body.ReadFrom(r.Body)
		select {
		case <-s.answer:
		case <-r.Context().Done():
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.bodies = append(s.bodies, body.String())
		w.WriteHeader(http.StatusCreated)
	}))
	t.Cleanup(server.Close)
	s.url = strings.Replace(server.URL, "http://", "http://the-api-key@", 1)
	return s
}

func (s *service) got() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string{}, s.bodies...)
}

func newReporter(t *testing.T, name, url string) (*vendors.Reporter, *rdbtest.Buffer) {
	t.Helper()
	out := &rdbtest.Buffer{}
	r, err := vendors.NewReporter(vendors.Options{
		Service: vendors.ExceptionService{Name: name, URL: url}, Program: "routemaster", Version: "1", Secrets: []string{"the-root-key", "x"},
	}, slog.New(slog.NewTextHandler(out, nil)))
	require.NoError(t, err)
	return r, out
}

func TestNobodyWaitsForAnExceptionService(t *testing.T) {
	s := newService(t)
	r, out := newReporter(t, vendors.Honeybadger, s.url)
	log := slog.New(slog.DiscardHandler)
	rdbtest.Promptly(t, time.Second, func() time.Duration { // although the service hangs
		return rdbtest.Took(func() {
			for range 1000 {
				r.Error(log, "poison", errors.New("no"))
			}
		})
	})
	assert.Equal(t, 1, strings.Count(out.String(), "dropping exception reports: too many are queued"), out.String())
	close(s.answer)
	r.Close()
	assert.GreaterOrEqual(t, len(s.got()), 100, "those that waited were sent before the end")
	assert.LessOrEqual(t, len(s.got()), 102)
	r.Error(log, "too late", errors.New("no"))
	r.Close()
}

// closeTimeout bounds a close: 3 s for queued reports, and 2 s for the report that is
// being sent then.
const closeTimeout = 6 * time.Second

func TestAnEndIsNotHeldUpByAnExceptionService(t *testing.T) {
	for name, url := range map[string]string{
		"one that hangs":   newService(t).url,
		"one that is away": "http://key@" + rdbtest.FreeAddress(t),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rdbtest.Promptly(t, closeTimeout, func() time.Duration {
				r, out := newReporter(t, vendors.Honeybadger, url)
				for range 50 {
					r.Error(slog.New(slog.DiscardHandler), "poison", errors.New("no"))
				}
				took := rdbtest.Took(r.Close)
				assert.Equal(t, 1, strings.Count(out.String(), `msg="exception reports cannot be sent" service=honeybadger`), out.String())
				assert.NotContains(t, out.String(), "the-api-key")
				return took
			})
		})
	}
}

func TestNewRelicMayBeAway(t *testing.T) {
	url := "https://" + strings.Repeat("0123456789", 4) + "@" + rdbtest.FreeAddress(t)
	rdbtest.Promptly(t, closeTimeout, func() time.Duration {
		r, out := newReporter(t, vendors.NewRelic, url)
		r.Error(slog.New(slog.DiscardHandler), "poison", errors.New("no"))
		took := rdbtest.Took(r.Close)
		assert.Contains(t, out.String(), "exception reports cannot be sent")
		assert.NotContains(t, out.String(), "0123456789")
		return took
	})
}

// hanging takes requests, and answers none.
type hanging struct{}

func (hanging) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, context.Cause(r.Context())
}

// TestSentryMayHang has its own clock, so it knows exactly for how long anybody was held up.
func TestSentryMayHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &rdbtest.Buffer{}
		r, err := vendors.NewReporter(vendors.Options{
			Service: vendors.ExceptionService{Name: vendors.Sentry, URL: "https://the-api-key@sentry.example/42"}, Transport: hanging{},
		}, slog.New(slog.NewTextHandler(out, nil)))
		require.NoError(t, err)
		start := time.Now()
		for range 1000 {
			r.Error(slog.New(slog.DiscardHandler), "poison", errors.New("no"))
		}
		assert.Zero(t, time.Since(start), "nobody waits")
		assert.Equal(t, 1, strings.Count(out.String(), "dropping exception reports: too many are queued"), out.String())

		time.Sleep(2*time.Second + time.Nanosecond) // the first report is given up, and the second under way
		synctest.Wait()
		assert.Equal(t, 1, strings.Count(out.String(), `msg="exception reports cannot be sent" service=sentry`), out.String())

		start = time.Now()
		r.Close()
		assert.LessOrEqual(t, time.Since(start), 5*time.Second, "3 s for what waits, and 2 s for what is under way then")
		assert.NotContains(t, out.String(), "the-api-key")
	})
}

// busy answers that it has had enough reports.
type busy struct{ asked atomic.Int32 }

func (b *busy) RoundTrip(*http.Request) (*http.Response, error) {
	b.asked.Add(1)
	return &http.Response{
		Status: "429 Too Many Requests", StatusCode: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {"60"}}, Body: http.NoBody,
	}, nil
}

// TestWhatSentryDoesNotWantHasNotArrived has Sentry ask for a pause, in which its client drops
// what it is given.
func TestWhatSentryDoesNotWantHasNotArrived(t *testing.T) {
	out, service := &rdbtest.Buffer{}, &busy{}
	r, err := vendors.NewReporter(vendors.Options{
		Service: vendors.ExceptionService{Name: vendors.Sentry, URL: "https://the-api-key@sentry.example/42"}, Transport: service,
	}, slog.New(slog.NewTextHandler(out, nil)))
	require.NoError(t, err)
	for range 2 {
		r.Error(slog.New(slog.DiscardHandler), "poison", errors.New("no"))
	}
	r.Close()
	assert.Equal(t, int32(1), service.asked.Load(), "it is left in peace")
	assert.Equal(t, 1, strings.Count(out.String(), "exception reports cannot be sent"), out.String())
	assert.NotContains(t, out.String(), "sent again")
}

func TestAReportHasNoSecret(t *testing.T) {
	s := newService(t)
	close(s.answer)
	r, _ := newReporter(t, vendors.Honeybadger, s.url)
	var log bytes.Buffer
	func() {
		defer func() {
			r.Panic(slog.New(slog.NewTextHandler(&log, nil)), "a request panicked", recover(), slog.String("field", "the-root-key"))
		}()
		panic("redis://user:pass@host and the-root-key, Authorization: Basic c2VjcmV0Og== x")
	}()
	r.Close()
	require.Len(t, s.got(), 1)
	report := s.got()[0]
	assert.Contains(t, report, `redis://(not shown)@host and (not shown), Authorization: Basic (not shown) x"`)
	assert.Contains(t, report, `"context":{"field":"(not shown)"}`)
	assert.Contains(t, report, `"class":"panic"`)
	assert.Contains(t, report, "TestAReportHasNoSecret.func1", "the stack begins where it panicked")
	assert.NotContains(t, report, "gopanic")
	assert.Contains(t, log.String(), `level=ERROR msg="a request panicked" field=the-root-key panic=`)
}

func TestAReporterWithoutServiceOnlyLogs(t *testing.T) {
	printing, _ := newReporter(t, vendors.Print, "")
	defer printing.Close()
	for _, r := range []*vendors.Reporter{nil, printing} {
		var log bytes.Buffer
		r.Error(slog.New(slog.NewTextHandler(&log, nil)), "a request failed", errors.New("no"), slog.Int("n", 1))
		assert.Contains(t, log.String(), `level=ERROR msg="a request failed" n=1 error=no`)
	}
}
