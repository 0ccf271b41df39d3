package client_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"runtime/pprof"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/client"
)

// TestMain requires that no test leaves a goroutine behind. A library that does this would be a
// requirement of every program that uses the client.
func TestMain(m *testing.M) {
	before := runtime.NumGoroutine()
	code := m.Run()
	for began := time.Now(); code == 0 && runtime.NumGoroutine() > before; time.Sleep(time.Millisecond) {
		if time.Since(began) > waitTimeout {
			_ = pprof.Lookup("goroutine").WriteTo(os.Stderr, 1)
			code = 1
		}
	}
	os.Exit(code)
}

const token = "shop--secret"

// waitTimeout bounds how long a test waits for an expected event. Only a failing test waits that
// long.
const waitTimeout = 2 * time.Minute

// connect returns a client with short pauses between retries.
func connect(t testing.TB, url string, options ...client.Option) *client.Client {
	t.Helper()
	c, err := client.New(url, token, append([]client.Option{client.WithBackoff(time.Millisecond, 4*time.Millisecond)}, options...)...)
	require.NoError(t, err)
	t.Cleanup(c.CloseIdleConnections)
	return c
}

var anEvent = client.Event{Topic: "widgets", Type: client.Update, URL: "https://x.example/1?a=1&b=<2>"}

func TestTemporaryFailuresAreRetriedWithTheSameKey(t *testing.T) {
	for _, status := range []int{0, 429, 502, 503, 504} {
		bus := newFakeBus(t, func(n int, w http.ResponseWriter, _ string) {
			switch {
			case n%4 == 3:
				w.WriteHeader(http.StatusOK)
			case status == 0:
				breakConnection()
			default:
				w.WriteHeader(status)
			}
		})
		c := connect(t, bus.URL, client.WithUserAgent("a-test/1"))
		event := anEvent
		event.Timestamp, event.Data = time.UnixMilli(-7), json.RawMessage(`{"z": 1.0, "a": 9007199254740993}`)
		require.NoError(t, c.Publish(t.Context(), event), status)
		require.NoError(t, c.Publish(t.Context(), event))
		all := bus.all()
		require.Len(t, all, 8)
		for _, r := range all {
			assert.Equal(t, `{"type":"update","url":"https://x.example/1?a=1&b=<2>","timestamp":-7,"data":{"z":1.0,"a":9007199254740993}}`, r.body)
			assert.Equal(t, []string{"POST", "/topics/widgets", token, "a-test/1"}, []string{r.method, r.path, r.user, r.agent})
		}
		assert.NotEmpty(t, all[0].key)
		assert.Equal(t, all[0].key, all[3].key, "one call has one key")
		assert.Equal(t, "600", all[3].keyTTL, "for as long as it is retried")
		assert.Equal(t, all[4].key, all[7].key)
		assert.NotEqual(t, all[0].key, all[4].key, "another call another")
	}
}

func TestPermanentFailuresAreNotRetried(t *testing.T) {
	for _, status := range []int{301, 400, 401, 403, 404, 405, 409, 413, 500, 501} {
		bus := newFakeBus(t, func(_ int, w http.ResponseWriter, _ string) { w.WriteHeader(status) })
		err := connect(t, bus.URL).Publish(t.Context(), anEvent)
		var refused *client.Error
		require.ErrorAs(t, err, &refused)
		assert.Equal(t, status, refused.Status)
		assert.False(t, client.IsTemporary(err))
		assert.Len(t, bus.all(), 1)
	}
}

func TestRetriesEnd(t *testing.T) {
	bus := newFakeBus(t, func(_ int, w http.ResponseWriter, _ string) { problem(w, 503, "", "away") })
	for _, retries := range []int{0, 2} {
		before := len(bus.all())
		err := connect(t, bus.URL, client.WithRetries(retries)).Pulse(t.Context())
		assert.EqualError(t, err, "pulse: 503 Service Unavailable: away")
		assert.True(t, client.IsTemporary(err))
		assert.Len(t, bus.all(), before+1+retries)
	}
	bus.Close()
	err := connect(t, bus.URL).Pulse(t.Context())
	assert.True(t, client.IsTemporary(err))
	assert.ErrorContains(t, err, "connection refused")
}

func TestRetryAfterIsHeeded(t *testing.T) {
	after := "1"
	bus := newFakeBus(t, func(n int, w http.ResponseWriter, _ string) {
		if n == 1 {
			w.WriteHeader(http.StatusOK)
			return
		}
		w.Header().Set("Retry-After", after)
		problem(w, 503, "", "away")
	})
	c := connect(t, bus.URL)
	require.NoError(t, c.Publish(t.Context(), anEvent))
	all := bus.all()
	assert.GreaterOrEqual(t, all[1].at.Sub(all[0].at), time.Second)

	// A pause that the context does not allow is not begun.
	after = "50"
	short, cancel := context.WithTimeout(t.Context(), 40*time.Second)
	defer cancel()
	err := c.Publish(short, anEvent)
	var refused *client.Error
	require.ErrorAs(t, err, &refused)
	assert.Equal(t, 50*time.Second, refused.RetryAfter)
	assert.NoError(t, short.Err(), "it did not wait for the context to end")
	assert.Len(t, bus.all(), 3)
	for _, after = range []string{"3600", time.Now().Add(time.Hour).UTC().Format(http.TimeFormat)} {
		require.ErrorAs(t, c.Publish(t.Context(), anEvent), &refused)
		assert.Greater(t, refused.RetryAfter, 59*time.Minute)
	}
	assert.Len(t, bus.all(), 5)
}

func TestAContextEndsAPause(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	bus := newFakeBus(t, func(_ int, w http.ResponseWriter, _ string) { w.WriteHeader(http.StatusServiceUnavailable) })
	// Cancel once the response has been read, or the error would be the context's.
	cancelling := transport(func(r *http.Request) (*http.Response, error) {
		resp, err := http.DefaultTransport.RoundTrip(r)
		if err == nil {
			resp.Body = closer{resp.Body, func() { time.AfterFunc(10*time.Millisecond, cancel) }}
		}
		return resp, err
	})
	c := connect(t, bus.URL, client.WithBackoff(time.Hour, time.Hour), client.WithHTTPClient(&http.Client{Transport: cancelling}))
	began := time.Now()
	require.ErrorContains(t, c.Publish(ctx, anEvent), "503")
	assert.Len(t, bus.all(), 1)
	assert.Less(t, time.Since(began), time.Minute)
}

type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// closer calls a function when it is closed.
type closer struct {
	io.ReadCloser
	closed func()
}

func (c closer) Close() error {
	defer c.closed()
	return c.ReadCloser.Close()
}

func TestARequestForANewTokenIsNotRetried(t *testing.T) {
	bus := newFakeBus(t, func(int, http.ResponseWriter, string) { breakConnection() })
	c := connect(t, bus.URL)
	_, err := c.AddToken(t.Context(), "shop", "")
	require.Error(t, err)
	assert.Len(t, bus.all(), 1)
	_, err = c.AddToken(t.Context(), "shop", "shop--1")
	require.Error(t, err)
	assert.Len(t, bus.all(), 1+6)
	assert.Equal(t, `{"name":"shop"}`, bus.all()[0].body)
}

func TestADeletionWhoseResponseWasLostSucceeds(t *testing.T) {
	bus := newFakeBus(t, func(n int, w http.ResponseWriter, _ string) {
		if n == 0 {
			breakConnection()
		}
		problem(w, 404, "", "not there")
	})
	c := connect(t, bus.URL)
	require.NoError(t, c.DeleteTopic(t.Context(), "widgets"))
	assert.EqualError(t, c.DeleteTopic(t.Context(), "widgets"), "delete topic widgets: 404 Not Found: not there")
}

func TestInvalidEventsAreNotSent(t *testing.T) {
	bus := newFakeBus(t, func(_ int, w http.ResponseWriter, _ string) { w.WriteHeader(200) })
	c, ctx := connect(t, bus.URL), t.Context()
	large := anEvent
	large.URL += strings.Repeat("x", client.MaxBulkBytes/2)
	for want, err := range map[string]error{
		"got 0 events; publish 1 to 1000 at once":                     c.PublishAll(ctx, "widgets", nil),
		"got 1001 events; publish 1 to 1000 at once":                  c.PublishAll(ctx, "widgets", make([]client.Event, client.MaxBulk+1)),
		"publish at most 1048576 at once":                             c.PublishAll(ctx, "widgets", []client.Event{large, large}),
		"the event has no topic":                                      c.Publish(ctx, client.Event{}),
		"publish to widgets: event 1: the event's URL must be UTF-8":  c.PublishAll(ctx, "widgets", []client.Event{anEvent, {URL: "\xff"}}),
		"publish to widgets: the event's data: jsontext: invalid UTF": c.Publish(ctx, client.Event{Topic: "widgets", Data: json.RawMessage("\"\xff\"")}),
		"subscribe: the uuid must be UTF-8":                           c.Subscribe(ctx, client.Subscription{Callback: "https://shop.example/", UUID: "a\xff"}),
		"publish to widgets: json: error calling MarshalJSON for typ": c.Publish(ctx, client.Event{Topic: "widgets", Data: json.RawMessage("{")}),
	} {
		assert.ErrorContains(t, err, want)
		assert.False(t, client.IsTemporary(err))
	}
	for _, name := range []string{"topics", "callback", "uuid", "timeout", "max"} {
		err := c.Subscribe(ctx, client.Subscription{Options: map[string]any{name: nil}})
		assert.ErrorContains(t, err, "subscribe: "+name+" has a field of its own")
	}
	assert.Empty(t, bus.all())
	require.NoError(t, c.PublishAll(ctx, "widgets", []client.Event{anEvent, large}, client.WithIdempotencyKey("mine")))
	assert.Equal(t, "mine", bus.all()[0].key)
	assert.Empty(t, bus.all()[0].keyTTL, "the bus decides")
	require.NoError(t, c.PublishAll(ctx, "widgets", []client.Event{anEvent}, client.WithIdempotencyTTL(time.Hour), client.WithIdempotencyKey("mine")))
	assert.Equal(t, "3600", bus.all()[1].keyTTL)
}

func TestNamesAreEscapedInPaths(t *testing.T) {
	bus := newFakeBus(t, func(_ int, w http.ResponseWriter, _ string) { w.WriteHeader(204) })
	c := connect(t, bus.URL+"/prefix/")
	require.NoError(t, c.DeleteToken(t.Context(), "a/b?c#d e"))
	require.NoError(t, c.Unsubscribe(t.Context(), "x/y", "z"))
	var paths []string
	for _, r := range bus.all() {
		paths = append(paths, r.path)
	}
	assert.Equal(t, []string{"/prefix/api_tokens/a%2Fb%3Fc%23d%20e", "/prefix/subscriber/topics/x%2Fy", "/prefix/subscriber/topics/z"}, paths)
}

func TestAnUntrustedCertificateIsNotRetried(t *testing.T) {
	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.Config.ErrorLog = quiet
	secure.StartTLS()
	t.Cleanup(secure.Close)
	c := connect(t, secure.URL, client.WithBackoff(time.Minute, time.Minute))
	err := c.Pulse(t.Context())
	require.ErrorContains(t, err, "certificate")
	assert.False(t, client.IsTemporary(err))
}

func TestTLSToAPlainBusIsNotRetried(t *testing.T) {
	bus := newFakeBus(t, nil)
	c := connect(t, strings.Replace(bus.URL, "http:", "https:", 1))
	err := c.Pulse(t.Context())
	require.ErrorIs(t, err, http.ErrSchemeMismatch)
	assert.False(t, client.IsTemporary(err))
}
