package delivery_test

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/delivery"
	"routemaster/internal/outbound"
	"routemaster/internal/queue"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store"
	"routemaster/internal/telemetry"
	"routemaster/internal/wire"
	"routemaster/internal/wire/wiretest"
)

func TestMain(m *testing.M) { rdbtest.Main(m) }

var now = time.UnixMilli(1_700_000_000_000)

// deliverer delivers, and keeps its log.
func deliverer(t *testing.T, adjust ...func(*delivery.Config)) (d *delivery.Deliverer, log *bytes.Buffer) {
	t.Helper()
	clock := func() time.Time { return now }
	client := outbound.New(outbound.Config{
		ConnectTimeout: time.Minute, Timeout: time.Minute, MaxIdle: 4, UserAgent: "routemaster/test",
	}, clock)
	t.Cleanup(client.Close)
	config := delivery.Config{
		Client: client,
		Policy: delivery.Policy{HealRate: 1, DamageRate: -2, MaxBackoff: time.Minute},
	}
	for _, f := range adjust {
		f(&config)
	}
	log = &bytes.Buffer{}
	d = delivery.New(config, slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})), clock)
	return d, log
}

// receiver starts an HTTPS subscriber.
func receiver(t *testing.T, handler http.HandlerFunc) (url string) {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.EnableHTTP2 = true
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	server.StartTLS()
	t.Cleanup(server.Close)
	return server.URL + "/events"
}

func batch(t *testing.T, url string, events ...wire.PackedEvent) *queue.Task {
	t.Helper()
	if events == nil {
		for _, data := range []string{`{"b":1,"a":[1.0]}`, `null`} {
			const event = `{"type":"create","url":"https://x.example/<1>&","timestamp":5,"data":%s}`
			events = append(events, wiretest.Pack(t, "widgets", fmt.Sprintf(event, data)))
		}
	}
	return &queue.Task{
		Job: bus.Job{Name: bus.JobBatch, Args: []string{"bid"}},
		Payload: &store.Delivery{
			Batch: "bid", Subscriber: "secret-token", Client: "alice", Callback: url, UUID: "secret-uuid", Attempts: 3, Health: 100, Events: events,
		},
	}
}

// deliveryOf is the delivery of a task.
func deliveryOf(task *queue.Task) *store.Delivery { return task.Payload.(*store.Delivery) }

// delivered is the result of a delivery, without the number that may be taken ahead, which depends
// on its time.
func delivered(d *delivery.Deliverer, t *testing.T, task *queue.Task) queue.Result {
	result := d.Deliver(t.Context(), task)
	detail := detailOf(result)
	detail.Ahead = nil
	result.Detail = detail
	return result
}

// detailOf is the detail of a result.
func detailOf(r queue.Result) store.DeliveryResult { return r.Detail.(store.DeliveryResult) }

func TestDeliver(t *testing.T) {
	var got *http.Request
	var body string
	url := receiver(t, func(_ http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		got, body = r, string(text)
	})
	d, log := deliverer(t)
	assert.Equal(t, queue.Result{Detail: store.DeliveryResult{Health: 1, Delivered: 2}}, delivered(d, t, batch(t, url)))
	assert.Equal(t, `[{"topic":"widgets","type":"create","url":"https://x.example/<1>&","t":5,"data":{"b":1,"a":[1.0]}},`+
		`{"topic":"widgets","type":"create","url":"https://x.example/<1>&","t":5}]`, body)
	assert.Equal(t, http.MethodPost, got.Method)
	assert.Equal(t, "/events", got.URL.Path)
	assert.Equal(t, "application/json", got.Header.Get("Content-Type"))
	assert.Equal(t, "routemaster/test", got.Header.Get("User-Agent"))
	assert.Equal(t, int64(len(body)), got.ContentLength)
	assert.Equal(t, 2, got.ProtoMajor)
	assert.ElementsMatch(t, []string{"Authorization", "Content-Length", "Content-Type", "User-Agent"},
		slices.Collect(maps.Keys(got.Header)), "nothing that it has not asked for")
	user, password, _ := got.BasicAuth()
	assert.Equal(t, []string{"secret-uuid", "x"}, []string{user, password})
	assert.Contains(t, log.String(), "msg=delivered subscriber=alice batch=bid attempt=3 events=2")
	assert.NotContains(t, log.String(), "secret")
}

func TestWhatAcknowledges(t *testing.T) {
	status := 0
	url := receiver(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(status)
		if status != http.StatusNoContent {
			_, _ = io.WriteString(w, "what is secret")
		}
	})
	registry := telemetry.NewRegistry()
	d, log := deliverer(t, func(c *delivery.Config) {
		c.AttemptsKept, c.Excerpt = 1, 256
		c.Recorder = telemetry.NewRecorder(registry, nil, slog.New(slog.DiscardHandler))
	})
	for status = range map[int]bool{200: true, 201: true, 202: true, 204: true, 206: true, 299: true} {
		assert.Equal(t, queue.Result{Detail: store.DeliveryResult{Health: 1, Delivered: 2}}, delivered(d, t, batch(t, url)), "%d", status)
	}
	for _, status = range []int{301, 302, 307, 308, 400, 401, 404, 410, 429, 500, 503} {
		log.Reset()
		result := d.Deliver(t.Context(), batch(t, url))
		if status == http.StatusGone {
			assert.Equal(t, -100, detailOf(result).Health)
			assert.Contains(t, log.String(), "subscriber returned 410 Gone")
			continue
		}
		assert.Equal(t, -2, detailOf(result).Health)
		assert.Equal(t, bus.FailureOf(status), detailOf(result).Failure)
		assert.Zero(t, detailOf(result).ThrottledUntil)
		// The third attempt failed: 800 ms, less up to half of it.
		assert.WithinRange(t, result.RetryAt, now.Add(400*time.Millisecond), now.Add(800*time.Millisecond))
		assert.Contains(t, log.String(), `msg="failed to deliver"`)
		assert.Contains(t, log.String(), fmt.Sprintf(" status=%d next_try_in=", status))
		assert.NotContains(t, log.String(), " error=")
		assert.NotContains(t, log.String(), "secret")
		assert.Contains(t, string(detailOf(result).Attempt), "what is secret")
	}
	page := httptest.NewRecorder()
	registry.Handler().ServeHTTP(page, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	assert.Contains(t, page.Body.String(), `routemaster_deliveries_total{status="failure",subscriber="alice"} 11`)
	assert.NotContains(t, page.Body.String(), "secret")
}

func TestRetryAfterIsHeeded(t *testing.T) {
	retryAfter := ""
	url := receiver(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", retryAfter)
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	d, _ := deliverer(t)
	for _, retryAfter = range []string{"9", now.Add(9 * time.Second).UTC().Format(http.TimeFormat)} {
		result := d.Deliver(t.Context(), batch(t, url))
		assert.Equal(t, now.Add(9*time.Second), result.RetryAt)
		assert.Equal(t, now.Add(9*time.Second), detailOf(result).ThrottledUntil)
	}
}

func TestAnEndpointThatDoesNotAnswer(t *testing.T) {
	nobody, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, nobody.Close())
	d, log := deliverer(t)
	result := d.Deliver(t.Context(), batch(t, "https://"+nobody.Addr().String()))
	assert.Equal(t, -2, detailOf(result).Health)
	assert.Equal(t, bus.EndpointFailure, detailOf(result).Failure)
	assert.False(t, result.RetryAt.IsZero())
	assert.Equal(t, 1, strings.Count(log.String(), "\n"), "one line says why: %s", log)
	assert.Contains(t, log.String(), "connection refused")
	assert.NotContains(t, log.String(), " status=")
}

func TestEventsThatCannotBeReadAreLeftOut(t *testing.T) {
	var bodies []string
	url := receiver(t, func(_ http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		bodies = append(bodies, string(text))
	})
	d, log := deliverer(t)
	good := deliveryOf(batch(t, url)).Events[1]
	bad := wire.PackedEvent("\xc1")
	one := `{"topic":"widgets","type":"create","url":"https://x.example/<1>&","t":5}`
	for _, events := range [][]wire.PackedEvent{{bad, good}, {good, bad, good}, {good, bad}} {
		readable := len(events) - 1
		assert.Equal(t, queue.Result{Detail: store.DeliveryResult{Health: 1, Delivered: readable}}, delivered(d, t, batch(t, url, events...)))
	}
	assert.Equal(t, []string{"[" + one + "]", "[" + one + "," + one + "]", "[" + one + "]"}, bodies)
	assert.True(t, d.Deliver(t.Context(), batch(t, url, bad)).RetryAt.IsZero(), "nothing is left to deliver")
	assert.Len(t, bodies, 3)
	assert.Equal(t, 4, strings.Count(log.String(), "lost events that cannot be read"))
}

func TestEventsThatCannotBeReadAreCountedOnce(t *testing.T) {
	registry := telemetry.NewRegistry()
	d, _ := deliverer(t, func(c *delivery.Config) {
		c.Recorder = telemetry.NewRecorder(registry, nil, slog.New(slog.DiscardHandler))
	})
	url := receiver(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	good := deliveryOf(batch(t, url)).Events[1]
	bad := wire.PackedEvent("\xc1")
	for _, events := range [][]wire.PackedEvent{{bad, good, bad}, {bad}} {
		for attempt := range 3 {
			task := batch(t, url, slices.Clone(events)...)
			deliveryOf(task).Attempts = attempt + 1
			d.Deliver(t.Context(), task)
		}
	}
	page := httptest.NewRecorder()
	registry.Handler().ServeHTTP(page, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	assert.Contains(t, page.Body.String(), "\nroutemaster_events_unreadable_total 3\n")
}
