package main

import (
	"bytes"
	"crypto/tls"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/client"
	"routemaster/internal/app"
	"routemaster/internal/bus"
	"routemaster/internal/rdb/rdbtest"
)

func TestTailReportsThatDeliveriesDoNotArrive(t *testing.T) {
	b := startTailBus(t, func(c *app.Config) { c.VerifyTLS = true })
	r := startTail(t, b.testBus, rootKey, "widgets")
	b.publish(t, 1)
	r.stderr.waitFor(t, "rtm: the bus tries to deliver to "+b.subscriptions(t)[0].Callback+", and does not succeed (tls): the TLS handshake failed: ")
	r.stderr.waitFor(t, "(--cert and --key, or ROUTEMASTER_SSL_VERIFY=NO on the bus's workers)\n")
	assert.Empty(t, r.stdout.String())
	r.end(t)
	b.requireNothingLeft(t)
}

func TestTailReportsThatTheBusDoesNotWait(t *testing.T) {
	b := startTailBus(t, func(c *app.Config) { c.Timeout = time.Second }) // in which a delivery arrives at least
	r := startTail(t, b.testBus, rootKey, "widgets", "--exec", "sleep 1.5")
	b.publish(t, 1)
	r.stderr.waitFor(t, "rtm: not all deliveries to "+b.subscriptions(t)[0].Callback+" succeed")
	assert.NotContains(t, r.stderr.String(), "--public-url")
	r.end(t)
	b.requireNothingLeft(t)
}

func TestTailWhereTheBusRefusesLoopback(t *testing.T) {
	deny, err := bus.ParseDenyList("loopback")
	require.NoError(t, err)
	b := startTailBus(t, func(c *app.Config) { c.CallbackDeny = deny })
	for _, token := range []string{rootKey, "warehouse--1"} {
		r := launchTail(t, b.testBus, token, nil, "widgets")
		assert.Equal(t, app.ExitFailed, r.wait(t))
		assert.Contains(t, r.stderr.String(), "--public-url says how the bus reaches this host\n")
		b.requireNothingLeft(t)
	}
}

func TestTailBehindAProxy(t *testing.T) {
	b := startTailBus(t)
	address := rdbtest.FreeAddress(t)
	proxy := httptest.NewTLSServer(httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: address}))
	defer proxy.Close()
	r := startTail(t, b.testBus, rootKey, "widgets", "--plain", "--listen", address, "--public-url", proxy.URL+"/events")
	assert.Equal(t, proxy.URL+"/events", b.subscriptions(t)[0].Callback)
	b.publish(t, 1)
	r.stdout.waitFor(t, "widgets/1\n")
	r.end(t)
	b.requireNothingLeft(t)
}

func TestTailWithACertificate(t *testing.T) {
	b := startTailBus(t)
	certificate, key := selfSigned(t)
	pair, err := tls.LoadX509KeyPair(certificate, key)
	require.NoError(t, err)
	r := startTail(t, b.testBus, rootKey, "widgets", "--cert", certificate, "--key", key)
	callback, err := url.Parse(b.subscriptions(t)[0].Callback)
	require.NoError(t, err)
	conn, err := tls.Dial("tcp", callback.Host, &tls.Config{InsecureSkipVerify: true})
	require.NoError(t, err)
	assert.Equal(t, pair.Certificate[0], conn.ConnectionState().PeerCertificates[0].Raw)
	require.NoError(t, conn.Close())
	r.end(t)

	r = launchTail(t, b.testBus, rootKey, nil, "widgets", "--cert", key, "--key", key)
	assert.Equal(t, app.ExitFailed, r.wait(t))
	b.requireNothingLeft(t)
}

func TestTailRefusesTopicsThatDoNotExist(t *testing.T) {
	b := startTailBus(t)
	own := b.connect(t, b.addClient(t, "xshop"))
	for _, topic := range []string{"orders", "orders_cancelled"} {
		require.NoError(t, own.Publish(t.Context(), client.Event{Topic: topic, Type: client.Noop, URL: "https://shop.example/1"}))
	}
	r := launchTail(t, b.testBus, rootKey, nil, "widgetz", "widgets", "order", "sprockets")
	assert.Equal(t, app.ExitFailed, r.wait(t))
	assert.Equal(t, "rtm: there is no topic order (did you mean orders, orders_cancelled?), nor sprockets, nor widgetz (did you mean widgets?); "+
		"--create creates it\n", r.stderr.String())
	b.requireNothingLeft(t, "xshop")

	r = startTail(t, b.testBus, rootKey, "sprockets", "--create")
	require.NoError(t, own.Publish(t.Context(), client.Event{Topic: "sprockets", Type: client.Noop, URL: "https://shop.example/1"}))
	r.stdout.waitFor(t, " sprockets noop ")
	require.NoError(t, b.root.DeleteTopic(t.Context(), "sprockets"))
	r.stderr.waitFor(t, "rtm: topic sprockets was deleted: ")
	r.end(t)
	b.requireNothingLeft(t, "xshop")
}

func TestTailEndsWhenItsClientIsRemoved(t *testing.T) {
	b := startTailBus(t)
	r := startTail(t, b.testBus, rootKey, "widgets")
	require.NoError(t, b.root.DeleteToken(t.Context(), b.subscriptions(t)[0].Subscriber))
	assert.Equal(t, app.ExitFailed, r.wait(t))
	assert.Contains(t, r.stderr.String(), "the token has been removed from the bus")
	b.requireNothingLeft(t)

	r = launchTail(t, b.testBus, "nobody", nil, "widgets")
	assert.Equal(t, app.ExitFailed, r.wait(t))
	assert.Contains(t, r.stderr.String(), "401 Unauthorized")
	assert.NotContains(t, r.stderr.String(), "nobody")
}

func TestTailUsage(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	const here = "http://127.0.0.1:1"
	for _, args := range [][]string{
		{}, {"-b", here}, {"widgets"}, {"widgets", "-b", here}, {"widgets", "-b", "@nowhere"},
		{"Widgets", "-b", here, "-t", "x"},
		{"widgets", "-b", here, "-t", "x", "--exec", "true", "--json"},
		{"widgets", "-b", here, "-t", "x", "--exec", "true", "--batch-size", "2"},
		{"widgets", "-b", here, "-t", "x", "--exec", "true", "--exec-timeout", "0s"},
		{"widgets", "-b", here, "-t", "x", "--exec-retry"},
		{"widgets", "-b", here, "-t", "x", "--latency", "-1"},
		{"widgets", "-b", here, "-t", "x", "--latency", "3600001"},
		{"widgets", "-b", here, "-t", "x", "--batch-size", "10001"},
		{"widgets", "-b", here, "-t", "x", "--cert", "x"},
		{"widgets", "-b", here, "-t", "x", "--plain"},
		{"widgets", "-b", here, "-t", "x", "--plain", "--cert", "x", "--key", "x", "--public-url", "https://x.example"},
		{"widgets", "-b", here, "-t", "x", "--public-url", "http://x.example"},
		{"widgets", "-b", here, "-t", "x", "--public-url", "https://a-secret@x.example"},
		{"widgets", "-b", here, "-t", "x", "--public-url", "https://a-secret:x"},
		{"widgets", "-b", here, "-t", "x", "--listen", "8080"},
		{"widgets", "-b", "bus.example", "-t", "x"},
		{"widgets", "-b", "bus.example", "-t", "x", "--listen", ":8443"},
		{"widgets", "-b", "bus.example", "-t", "x", "--listen", "0.0.0.0:8443"},
	} {
		var stdout, stderr bytes.Buffer
		assert.Equal(t, app.ExitUsage, run(t.Context(), append([]string{"tail"}, args...), &stdout, &stderr), "%q: %s", args, &stderr)
		assert.Contains(t, stderr.String(), `Run "rtm tail --help" for usage.`)
		assert.NotContains(t, stderr.String(), "a-secret")
		assert.Empty(t, stdout.String())
	}
	var stdout, stderr bytes.Buffer
	assert.Equal(t, app.ExitFailed, run(t.Context(), []string{"tail", "widgets", "-b", here, "-t", "a-secret"}, &stdout, &stderr))
	assert.Contains(t, stderr.String(), "rtm: cannot connect to bus: ")
	assert.NotContains(t, stderr.String(), "a-secret")
}
