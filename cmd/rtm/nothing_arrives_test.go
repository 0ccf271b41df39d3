package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/client"
	"routemaster/client/subscriber"
	"routemaster/internal/app"
	"routemaster/internal/bus"
	"routemaster/internal/rdb/rdbtest"
)

// rtm runs rtm with a token.
func (b *testBus) rtm(t *testing.T, token string, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	var out, errors bytes.Buffer
	status = run(t.Context(), append(args, "-b", b.url, "-t", token), &out, &errors)
	return status, out.String(), errors.String()
}

// subscribe subscribes a client to widgets.
func (b *testBus) subscribe(t *testing.T, token, callback string) {
	t.Helper()
	wait := time.Duration(0)
	require.NoError(t, b.connect(t, token).Subscribe(t.Context(), client.Subscription{
		Topics: []string{"widgets"}, Callback: callback, UUID: "a-uuid", Timeout: &wait,
	}))
}

// hang answers nothing until its client has gone.
func hang(_ http.ResponseWriter, r *http.Request) {
	<-r.Context().Done()
	panic(http.ErrAbortHandler) // to return would answer 200, which may be read all the same
}

// statusEndpoint answers with the status that is the path, and silence to any other path.
func statusEndpoint(t *testing.T) string {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if status, err := strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/")); err == nil {
			w.Header().Set("Retry-After", "30")
			w.WriteHeader(status)
			return
		}
		hang(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// TestOneCommandSaysWhyNothingArrives tries each cause as a new user would, and as the operator.
func TestOneCommandSaysWhyNothingArrives(t *testing.T) {
	t.Parallel()
	deny, err := bus.ParseDenyList("127.0.0.2/32")
	require.NoError(t, err)
	lenient, hasty := startBus(t), startBus(t, func(c *app.Config) { c.Timeout = time.Second })
	strict := startBus(t, func(c *app.Config) { c.VerifyTLS, c.CallbackDeny = true, deny })
	permissive := strict.config
	permissive.CallbackDeny = bus.DenyList{} // web would refuse the callback
	strict.url = "http://" + serveWeb(t, permissive)
	lenient.addClient(t, "shop")
	hasty.addClient(t, "shop")
	strict.addClient(t, "shop")

	endpoint, private := statusEndpoint(t), "failed, unreachable"
	for _, c := range []struct {
		bus                      *testBus
		callback, client, remedy string
		root                     string // if it sees more
	}{
		{lenient, endpoint + "/404", "failed, 404 Not Found", "correct the path of the callback", ""},
		{lenient, endpoint + "/401", "failed, 401 Unauthorized", "the uuid", ""},
		{lenient, endpoint + "/401", "failed, 401 Unauthorized", "its signing secret, and set its clock", ""},
		{lenient, endpoint + "/500", "failed, 500 Internal Server Error", "see its log", ""},
		{lenient, endpoint + "/302", "failed, 302 Found", "follows no redirect", ""},
		{lenient, "https://" + rdbtest.FreeAddress(t) + "/", private, "see that the receiver runs", "failed, refused"},
		{hasty, endpoint + "/silence", private, "see that the receiver runs", "failed, timeout"},
		{lenient, "https://" + strings.Repeat("x", 64) + ".example/", "failed, dns", "correct the name", ""},
		{strict, endpoint + "/200", "failed, tls", "a valid certificate", ""},
		{strict, strings.Replace(endpoint, "127.0.0.1", "127.0.0.2", 1) + "/200", "failed, denied", "ROUTEMASTER_CALLBACK_DENY", ""},
	} {
		c.bus.subscribe(t, "shop--1", c.callback)
		status, _, said := c.bus.rtm(t, "shop--1", "sub", "test", "--wait")
		assert.Equal(t, app.ExitFailed, status)
		assert.Contains(t, said, "the test event was not delivered: "+c.client)
		assert.Contains(t, said, c.remedy)
		_, out, said := c.bus.rtm(t, "shop--1", "sub", "show")
		assert.Regexp(t, "\nlast failure\t2.* test event "+regexp.QuoteMeta(c.client)+".*"+regexp.QuoteMeta(c.remedy), out, said)
		if c.root == "" {
			c.root = c.client
		}
		_, _, said = c.bus.rtm(t, rootKey, "sub", "test", "--wait", "--subscriber", "shop--1")
		assert.Contains(t, said, "the test event was not delivered: "+c.root)
	}

	lenient.subscribe(t, "shop--1", endpoint+"/503")
	warehouse := lenient.connect(t, lenient.addClient(t, "warehouse"))
	require.NoError(t, warehouse.Publish(t.Context(), client.Event{Topic: "widgets", Type: client.Update, URL: "https://x.example/1"}))
	require.Eventually(t, func() bool {
		_, out, _ := lenient.rtm(t, "shop--1", "sub", "show")
		return strings.Contains(out, "state\tthrottled until 2")
	}, soon, 10*time.Millisecond, "throttled")
	_, out, said := lenient.rtm(t, "shop--1", "queue", "list")
	assert.Contains(t, out, "\t1\t1\tretrying\t", said)
	batch, _, _ := strings.Cut(out, "\t")
	for _, args := range [][]string{{"sub", "set", "--dead-letters", "attempts=3"}, {"queue", "remove", batch}} {
		status, _, said := lenient.rtm(t, "shop--1", args...)
		require.Equal(t, app.ExitOK, status, said)
	}
	_, out, said = lenient.rtm(t, "shop--1", "sub", "show")
	assert.Contains(t, out, "dead\t1 events in 1 letters\n", said)

	lenient.subscribe(t, "shop--1", endpoint+"/200")
	status, _, said := lenient.rtm(t, "shop--1", "sub", "pause", "--for", "1h")
	require.Equal(t, app.ExitOK, status, said)
	_, out, said = lenient.rtm(t, "shop--1", "sub", "test", "--wait")
	assert.Contains(t, out, "the test event was delivered: acknowledged, 200 OK", said)
	assert.Regexp(t, `^rtm: other events wait: the subscriber is paused until 2\d{3}-\d\d-\d\d \d\d:\d\d:\d\d [+-]\d\d:\d\d\n$`, said)
	_, out, said = lenient.rtm(t, "shop--1", "sub", "show")
	assert.Contains(t, out, "state\tpaused until 2", said)
}

func TestATestEventSaysThatNoWorkerRuns(t *testing.T) {
	t.Parallel()
	config, err := app.LoadConfig(func(name string) string {
		return map[string]string{"ROUTEMASTER_ROOT_KEY": rootKey, "ROUTEMASTER_REDIS_URL": rdbtest.Real(t).URL, "FORCE_SSL": "no"}[name]
	})
	require.NoError(t, err)
	b := &testBus{}
	b.url = "http://" + serveWeb(t, config)
	b.addClient(t, "shop")
	b.subscribe(t, "shop--1", "https://shop.invalid/")
	status, _, said := b.rtm(t, "shop--1", "sub", "test", "--wait")
	assert.Equal(t, app.ExitFailed, status)
	assert.Contains(t, said, "rtm: the test event waits: no worker of the bus runs")
}

// TestFailedAttemptsAreOnRecord has an endpoint fail four times, and then acknowledge.
func TestFailedAttemptsAreOnRecord(t *testing.T) {
	b := startBus(t, func(c *app.Config) { c.MaxBackoff = 100 * time.Millisecond })
	var requests atomic.Int64
	endpoint := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if requests.Add(1) <= 4 {
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = io.WriteString(w, strings.Repeat("no such table\n", 100))
		}
	}))
	defer endpoint.Close()
	shop, warehouse := b.addClient(t, "shop"), b.addClient(t, "warehouse")
	b.subscribe(t, shop, endpoint.URL)
	publish := func() {
		require.NoError(t, b.connect(t, warehouse).Publish(t.Context(), client.Event{Topic: "widgets", Type: client.Update, URL: "https://x.example/1"}))
	}
	attempts := func(token string, args ...string) (all []subscriber.Attempt) {
		_, out, said := b.rtm(t, token, append([]string{"attempts", "--json"}, args...)...)
		require.NoError(t, json.Unmarshal([]byte(out), &all), said)
		return all
	}
	publish()
	require.Eventually(t, func() bool { return requests.Load() == 5 }, soon, time.Millisecond)

	records := attempts(rootKey, "--subscriber", shop)
	require.Len(t, records, 4, "none of the success")
	for i, record := range records {
		assert.Equal(t, 4-i, record.Attempt)
		assert.Equal(t, 500, record.Status)
		assert.Equal(t, records[0].Batch, record.Batch)
		assert.Equal(t, strings.Repeat("no such table\n", 100)[:256], strings.ReplaceAll(record.Excerpt, `\n`, "\n"))
		assert.True(t, record.RetryAt.After(record.At.Time))
	}
	for _, record := range attempts(shop) {
		assert.Equal(t, 500, record.Status)
		assert.Empty(t, record.Excerpt, "the endpoint's address is private")
		assert.Empty(t, record.Detail)
	}
	assert.Empty(t, attempts(shop, "--outcome", "acknowledged"))

	status, _, said := b.rtm(t, shop, "sub", "set", "--log-attempts", "all")
	require.Equal(t, app.ExitOK, status, said)
	publish()
	require.Eventually(t, func() bool { return len(attempts(shop, "--outcome", "acknowledged")) == 1 }, soon, time.Millisecond)
	status, _, said = b.rtm(t, shop, "sub", "set", "--log-attempts", "none")
	require.Equal(t, app.ExitOK, status, said)
	requests.Store(3)
	publish()
	require.Eventually(t, func() bool { return requests.Load() == 5 }, soon, time.Millisecond)
	assert.Len(t, attempts(shop), 5)
}
