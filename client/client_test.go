package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/client"
	"routemaster/internal/rdb/rdbtest"
)

func TestMain(m *testing.M) { rdbtest.Main(m) }

const token = "shop--secret"

// soon bounds what must happen; nothing waits that long unless it fails.
const soon = 30 * time.Second

// fakeBus answers as it is told to, and keeps what it was asked.
type fakeBus struct {
	*httptest.Server
	// answer answers request number n, from 0.
	answer func(n int, w http.ResponseWriter, body string)

	mu       sync.Mutex
	requests []asked
}

type asked struct {
	method, path, key, keyTTL, body, user, agent string
	at                                           time.Time
}

func newFakeBus(t testing.TB, answer func(n int, w http.ResponseWriter, body string)) *fakeBus {
	b := &fakeBus{answer: answer}
	b.Server = httptest.NewServer(b)
	t.Cleanup(b.Close)
	return b
}

func (b *fakeBus) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	user, _, _ := r.BasicAuth()
	b.mu.Lock()
	n := len(b.requests)
	b.requests = append(b.requests, asked{r.Method, r.URL.EscapedPath(), r.Header.Get("Idempotency-Key"), r.Header.Get("Idempotency-Expires-In"), string(body), user, r.UserAgent(), time.Now()})
	b.mu.Unlock()
	b.answer(n, w, string(body))
}

func (b *fakeBus) all() []asked {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]asked{}, b.requests...)
}

// connect returns a client of a bus that does not wait long before it tries again.
func connect(t testing.TB, url string, options ...client.Option) *client.Client {
	t.Helper()
	c, err := client.New(url, token, append([]client.Option{client.WithBackoff(time.Millisecond, 4*time.Millisecond)}, options...)...)
	require.NoError(t, err)
	t.Cleanup(c.CloseIdleConnections)
	return c
}

// problem answers as a bus does that refuses something.
func problem(w http.ResponseWriter, status int, pointer, detail string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"status": status, "title": http.StatusText(status), "detail": detail, "pointer": pointer})
}

// breakConnection ends a connection without an answer.
func breakConnection() { panic(http.ErrAbortHandler) }

var anEvent = client.Event{Topic: "widgets", Type: client.Update, URL: "https://x.example/1?a=1&b=<2>"}

func TestWhatMayPassIsTriedAgainWithTheSameKey(t *testing.T) {
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
		assert.Equal(t, "600", all[3].keyTTL, "which is of use as long as it is tried")
		assert.Equal(t, all[4].key, all[7].key)
		assert.NotEqual(t, all[0].key, all[4].key, "another call another")
	}
}

func TestWhatCannotPassIsNotTriedAgain(t *testing.T) {
	for _, status := range []int{301, 400, 401, 403, 404, 405, 409, 413, 500, 501} {
		bus := newFakeBus(t, func(_ int, w http.ResponseWriter, _ string) { w.WriteHeader(status) })
		err := connect(t, bus.URL).Publish(t.Context(), anEvent)
		var answered *client.Error
		require.ErrorAs(t, err, &answered)
		assert.Equal(t, status, answered.Status)
		assert.False(t, client.IsTemporary(err))
		assert.Len(t, bus.all(), 1)
	}
}

func TestItGivesUpInTheEnd(t *testing.T) {
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

func TestTheBusMayAskForPatience(t *testing.T) {
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

	// Nobody waits for what comes too late.
	after = "50"
	short, cancel := context.WithTimeout(t.Context(), 40*time.Second)
	defer cancel()
	err := c.Publish(short, anEvent)
	var answered *client.Error
	require.ErrorAs(t, err, &answered)
	assert.Equal(t, 50*time.Second, answered.RetryAfter)
	assert.NoError(t, short.Err(), "it did not wait for the context to end")
	assert.Len(t, bus.all(), 3)
	for _, after = range []string{"3600", time.Now().Add(time.Hour).UTC().Format(http.TimeFormat)} {
		require.ErrorAs(t, c.Publish(t.Context(), anEvent), &answered)
		assert.Greater(t, answered.RetryAfter, 59*time.Minute)
	}
	assert.Len(t, bus.all(), 5)
}

func TestAContextEndsAPause(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	bus := newFakeBus(t, func(_ int, w http.ResponseWriter, _ string) { w.WriteHeader(http.StatusServiceUnavailable) })
	answered := transport(func(r *http.Request) (*http.Response, error) { // once it is read: before, there would be no answer to tell of
		answer, err := http.DefaultTransport.RoundTrip(r)
		if err == nil {
			answer.Body = closer{answer.Body, func() { time.AfterFunc(10*time.Millisecond, cancel) }}
		}
		return answer, err
	})
	c := connect(t, bus.URL, client.WithBackoff(time.Hour, time.Hour), client.WithHTTPClient(&http.Client{Transport: answered}))
	began := time.Now()
	require.ErrorContains(t, c.Publish(ctx, anEvent), "503")
	assert.Len(t, bus.all(), 1)
	assert.Less(t, time.Since(began), 10*time.Second)
}

type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// closer tells when it is closed.
type closer struct {
	io.ReadCloser
	closed func()
}

func (c closer) Close() error {
	defer c.closed()
	return c.ReadCloser.Close()
}

func TestATokenThatTheBusMakesIsAskedForOnce(t *testing.T) {
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

func TestADeletionWhoseAnswerWasLostIsDone(t *testing.T) {
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

func TestErrorsSayWhatToChange(t *testing.T) {
	bus := newFakeBus(t, func(n int, w http.ResponseWriter, _ string) {
		switch n {
		case 0:
			problem(w, 400, "/3/url", "must be an https URL")
		case 1:
			http.Error(w, "Authorization: "+token, http.StatusBadGateway)
		default:
			_, _ = io.WriteString(w, "<html>")
		}
	})
	c := connect(t, bus.URL, client.WithRetries(0))
	err := c.PublishAll(t.Context(), "widgets", []client.Event{anEvent})
	var answered *client.Error
	require.ErrorAs(t, err, &answered)
	assert.Equal(t, client.Error{Status: 400, Title: "Bad Request", Detail: "must be an https URL", Pointer: "/3/url"}, *answered)
	assert.EqualError(t, err, "publish to widgets: 400 Bad Request: /3/url: must be an https URL")
	_, err = c.Topics(t.Context())
	assert.EqualError(t, err, "list topics: 502 Bad Gateway", "a proxy may repeat the request")
	_, err = c.Topics(t.Context())
	assert.ErrorContains(t, err, "list topics: the response is not from a bus")
}

func TestErrorsTellNoSecret(t *testing.T) {
	var errs []error
	keep := func(_ any, err error) { errs = append(errs, err) }
	for _, url := range []string{"https://" + token + "@bus.example", "https://bus.example/?" + token, token + "://x", "https://\x7f" + token, "https://:17890", token, ""} {
		keep(client.New(url, token))
	}
	keep(client.New("https://bus.example", ""))
	gone := newFakeBus(t, nil)
	gone.Close()
	elsewhere := newFakeBus(t, func(_ int, w http.ResponseWriter, _ string) {
		w.Header().Set("Location", "https://other.example/"+token)
		w.WriteHeader(http.StatusTemporaryRedirect)
	})
	for _, url := range []string{gone.URL, elsewhere.URL} {
		c := connect(t, url, client.WithRetries(1))
		keep(nil, c.DeleteToken(t.Context(), token))
		keep(c.AddToken(t.Context(), "shop", token))
		keep(c.Tokens(t.Context()))
		keep(nil, c.Subscribe(t.Context(), client.Subscription{Callback: "https://shop.example/", UUID: token}))
		keep(nil, c.Publish(t.Context(), anEvent))
		keep(c.Metrics(t.Context()))
		cancelled, cancel := context.WithCancel(t.Context())
		cancel()
		keep(nil, c.DeleteToken(cancelled, token))
	}
	for _, err := range errs {
		require.Error(t, err)
		assert.NotContains(t, err.Error(), token)
	}
}

func TestCredentialsStayWithTheBus(t *testing.T) {
	for _, status := range []int{301, 302, 303, 307, 308} {
		other := newFakeBus(t, func(_ int, w http.ResponseWriter, _ string) { w.WriteHeader(200) })
		bus := newFakeBus(t, func(_ int, w http.ResponseWriter, _ string) {
			w.Header().Set("Location", other.URL+"/topics/widgets")
			w.WriteHeader(status)
		})
		for _, given := range []*http.Client{nil, {Transport: http.DefaultTransport.(*http.Transport).Clone()}} {
			var options []client.Option
			if given != nil {
				options = append(options, client.WithHTTPClient(given))
			}
			err := connect(t, bus.URL, options...).Publish(t.Context(), anEvent)
			var answered *client.Error
			require.ErrorAs(t, err, &answered)
			assert.Equal(t, status, answered.Status)
			assert.Contains(t, err.Error(), "give the bus's own https URL")
			assert.Empty(t, other.all(), "not even without credentials")
		}
	}
}

func TestRedirectsOnTheSameHostAreFollowed(t *testing.T) {
	secure := &fakeBus{answer: func(_ int, w http.ResponseWriter, _ string) { w.WriteHeader(204) }}
	secure.Server = httptest.NewTLSServer(secure)
	t.Cleanup(secure.Close)
	bus := newFakeBus(t, nil)
	bus.answer = func(n int, w http.ResponseWriter, _ string) {
		switch n {
		case 0: // elsewhere on the bus
			w.Header().Set("Location", "/bus/topics/widgets")
			w.WriteHeader(http.StatusTemporaryRedirect)
		case 1: // to https
			w.Header().Set("Location", secure.URL+"/topics/widgets")
			w.WriteHeader(http.StatusPermanentRedirect)
		case 2: // another method
			w.Header().Set("Location", "/")
			w.WriteHeader(http.StatusFound)
		default: // without end
			w.Header().Set("Location", "/")
			w.WriteHeader(http.StatusTemporaryRedirect)
		}
	}
	c := connect(t, bus.URL, client.WithHTTPClient(secure.Client()))
	require.NoError(t, c.Publish(t.Context(), anEvent))
	require.Len(t, secure.all(), 1)
	got, sent := secure.all()[0], bus.all()[0]
	assert.Equal(t, []string{"POST", token, sent.body, sent.key}, []string{got.method, got.user, got.body, got.key})

	assert.ErrorContains(t, c.Publish(t.Context(), anEvent), "302 Found")
	assert.ErrorContains(t, c.Publish(t.Context(), anEvent), "307 Temporary Redirect")
	assert.Less(t, len(bus.all()), 20)
}

func TestWhatCannotBePublishedIsNotSent(t *testing.T) {
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
	assert.Empty(t, bus.all())
	require.NoError(t, c.PublishAll(ctx, "widgets", []client.Event{anEvent, large}, client.WithIdempotencyKey("mine")))
	assert.Equal(t, "mine", bus.all()[0].key)
	assert.Empty(t, bus.all()[0].keyTTL, "the bus decides")
	require.NoError(t, c.PublishAll(ctx, "widgets", []client.Event{anEvent}, client.WithIdempotencyTTL(time.Hour), client.WithIdempotencyKey("mine")))
	assert.Equal(t, "3600", bus.all()[1].keyTTL)
}

func TestNamesStayInsideTheirPath(t *testing.T) {
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

func TestAnUntrustedCertificateIsNotTriedAgain(t *testing.T) {
	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.Config.ErrorLog = quiet
	secure.StartTLS()
	t.Cleanup(secure.Close)
	c := connect(t, secure.URL, client.WithBackoff(time.Minute, time.Minute))
	err := c.Pulse(t.Context())
	require.ErrorContains(t, err, "certificate")
	assert.False(t, client.IsTemporary(err))
}

func TestAPlainBusIsNotTriedAgainWithTLS(t *testing.T) {
	bus := newFakeBus(t, nil)
	c := connect(t, strings.Replace(bus.URL, "http:", "https:", 1))
	err := c.Pulse(t.Context())
	require.ErrorIs(t, err, http.ErrSchemeMismatch)
	assert.False(t, client.IsTemporary(err))
}

func TestDeliveredEventsAreReadAndWritten(t *testing.T) {
	for text, at := range map[string]time.Time{
		`1700000000123`:    time.UnixMilli(1700000000123),
		`-1`:               time.UnixMilli(-1),
		`1700000000123.5`:  time.UnixMilli(1700000000123).Add(500 * time.Microsecond),
		`-1.5`:             time.UnixMilli(-1).Add(-500 * time.Microsecond),
		`1.7e12`:           time.UnixMilli(1700000000000),
		`null`:             {},
		`0`:                time.UnixMilli(0),
		`9007199254740993`: time.UnixMilli(9007199254740993),
	} {
		var event client.Event
		require.NoError(t, json.Unmarshal(fmt.Appendf(nil, `{"topic":"widgets","type":"noop","url":"https://x/?a&b","t":%s,"data":[1.0],"more":{}}`, text), &event), text)
		assert.True(t, at.Equal(event.Timestamp), "%s: %v", text, event.Timestamp)
		assert.Equal(t, "widgets noop https://x/?a&b [1.0]", fmt.Sprintf("%s %s %s %s", event.Topic, event.Type, event.URL, event.Data))
	}
	for _, text := range []string{`"now"`, `1e300`, `{}`, `true`} {
		assert.Error(t, json.Unmarshal([]byte(`{"t":`+text+`}`), new(client.Event)), text)
	}
	text, err := json.Marshal(client.Event{Topic: "widgets", Type: client.Noop, URL: "https://x/", Timestamp: time.UnixMilli(5)})
	require.NoError(t, err)
	assert.Equal(t, `{"topic":"widgets","type":"noop","url":"https://x/","t":5}`, string(text))
}

func TestErrorsCanBeFound(t *testing.T) {
	assert.False(t, client.IsTemporary(nil))
	assert.False(t, client.IsTemporary(errors.New("x")))
	assert.True(t, client.IsTemporary(fmt.Errorf("x: %w", &client.Error{Status: 503})))
}
