package main

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/client"
	"routemaster/internal/app"
	"routemaster/internal/rdb/rdbtest"
)

func TestTailShowsEvents(t *testing.T) {
	b := startTailBus(t)
	for _, token := range []string{rootKey, b.addClient(t, "xshop")} {
		people := startTail(t, b.testBus, token, "widgets")
		at := time.UnixMilli(1_700_000_000_123)
		require.NoError(t, b.publisher.Publish(t.Context(), client.Event{
			Topic: "widgets", Type: client.Delete, URL: "https://warehouse.example/widgets/7", Timestamp: at, Data: json.RawMessage(`{"to":"<a&b>"}`),
		}))
		people.stdout.waitFor(t, "\n")
		assert.Equal(t, at.Format("2006-01-02 15:04:05.000")+` widgets delete https://warehouse.example/widgets/7 {"to":"<a&b>"}`+"\n", people.stdout.String())
		people.end(t)
		assert.Equal(t, "rtm: showing what is published to widgets from now on; Ctrl-C ends it\nrtm: ended; events: 1\n", people.stderr.String())

		scripted := startTail(t, b.testBus, token, "widgets", "--json")
		require.NoError(t, b.publisher.Publish(t.Context(), client.Event{
			Topic: "widgets", Type: client.Create, URL: "https://warehouse.example/widgets/8", Timestamp: at, Data: json.RawMessage("\"\u009b31m\U000e0001\""),
		}))
		scripted.stdout.waitFor(t, "\n")
		assert.Equal(t, `{"topic":"widgets","type":"create","url":"https://warehouse.example/widgets/8","t":1700000000123,"data":"\u009b31m\udb40\udc01"}`+"\n",
			scripted.stdout.String(), "what a terminal would act on is escaped")
		var event client.Event
		require.NoError(t, json.Unmarshal([]byte(scripted.stdout.String()), &event))
		scripted.end(t)
	}
}

// TestTailShowsSeveralTopics does so without a subscription, and beside the one of the client.
func TestTailShowsSeveralTopics(t *testing.T) {
	b := startTailBus(t)
	shop := b.addClient(t, "xshop")
	own := b.connect(t, shop)
	require.NoError(t, own.Publish(t.Context(), client.Event{Topic: "orders", Type: client.Noop, URL: "https://shop.example/0"}))
	b.subscribe(t, shop, "https://shop.invalid/events")
	before := b.subscriptions(t)
	r, other := startTail(t, b.testBus, shop, "widgets", "orders", "widgets"), startTail(t, b.testBus, shop, "orders")
	assert.Equal(t, before, b.subscriptions(t))
	b.publish(t, 1)
	require.NoError(t, own.Publish(t.Context(), client.Event{Topic: "orders", Type: client.Noop, URL: "https://shop.example/1"}))
	r.stdout.waitFor(t, " widgets update https://warehouse.example/widgets/1\n")
	r.stdout.waitFor(t, " orders noop   https://shop.example/1\n")
	other.stdout.waitFor(t, " orders noop   https://shop.example/1\n")
	r.end(t)
	other.end(t)
	assert.Equal(t, "rtm: showing what is published to orders widgets from now on; Ctrl-C ends it\nrtm: ended; events: 2\n", r.stderr.String())
	tokens, err := b.root.Tokens(t.Context())
	require.NoError(t, err)
	assert.Len(t, tokens, 2)
}

func TestTailReportsWhatItDoesNotShow(t *testing.T) {
	b := startTailBus(t)
	r := startTail(t, b.testBus, rootKey, "widgets")
	var many []client.Event
	for number := range 25 {
		many = append(many, b.event(number))
	}
	require.NoError(t, b.publisher.PublishAll(t.Context(), "widgets", many))
	r.stderr.waitFor(t, "rtm: widgets: 5 events are not shown: a live tail shows 100 a second, and 20 of one request\n")
	r.end(t)
	assert.Contains(t, r.stderr.String(), "rtm: ended; events: 20\n")
}

func TestTailConnectsAgain(t *testing.T) {
	b := startTailBus(t)
	listener, err := net.Listen("tcp", rdbtest.FreeAddress(t))
	require.NoError(t, err)
	web := func(listener net.Listener) (stop func()) {
		return runDaemon(t, func(ctx context.Context, log *slog.Logger) error { return app.ServeWeb(ctx, b.config, log, listener) })
	}
	stop := web(listener)
	b.url = "http://" + listener.Addr().String()
	r, ended := startTail(t, b.testBus, rootKey, "widgets"), startTail(t, b.testBus, rootKey, "widgets")
	stop()
	for _, tail := range []*tailing{r, ended} {
		tail.stderr.waitFor(t, "rtm: tail widgets: ")
		tail.stderr.waitFor(t, "; trying again\n")
	}
	ended.end(t)
	listener, err = net.Listen("tcp", listener.Addr().String())
	require.NoError(t, err)
	web(listener)
	r.stderr.waitFor(t, "rtm: widgets: connected again; what was published in between, for ")
	b.publish(t, 1)
	r.stdout.waitFor(t, "widgets/1\n")
	r.end(t)
	assert.NotContains(t, r.stderr.String(), rootKey)
}

func TestTailRefusesTopicsThatDoNotExist(t *testing.T) {
	b := startTailBus(t)
	own := b.connect(t, b.addClient(t, "xshop"))
	for _, topic := range []string{"orders", "orders_cancelled"} {
		require.NoError(t, own.Publish(t.Context(), client.Event{Topic: topic, Type: client.Noop, URL: "https://shop.example/1"}))
	}
	r := launchTail(t, b.testBus, rootKey, nil, "widgetz", "order", "sprockets")
	assert.Equal(t, app.ExitFailed, r.wait(t))
	assert.Equal(t, "rtm: there is no topic order (did you mean orders, orders_cancelled?), nor sprockets, nor widgetz (did you mean widgets?); "+
		"a topic begins with the first publish or subscription to it\n", r.stderr.String())

	r = startTail(t, b.testBus, rootKey, "widgets", "orders")
	require.NoError(t, b.root.DeleteTopic(t.Context(), "orders"))
	assert.Equal(t, app.ExitFailed, r.wait(t))
	assert.Contains(t, r.stderr.String(), "rtm: there is no topic orders (did you mean orders_cancelled?); ")
}

func TestTailEndsWhenItsTokenIsRemoved(t *testing.T) {
	b := startTailBus(t)
	shop := b.addClient(t, "xshop")
	r := startTail(t, b.testBus, shop, "widgets")
	require.NoError(t, b.root.DeleteToken(t.Context(), shop))
	assert.Equal(t, app.ExitFailed, r.wait(t))
	assert.Contains(t, r.stderr.String(), "rtm: tail widgets: 401 Unauthorized")
	assert.NotContains(t, r.stderr.String(), shop)

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
		{"widgets", "-b", here, "-t", "x", "--exec", "true", "--exec-timeout", "0s"},
		{"widgets", "-b", here, "-t", "x", "--listen", "10.0.0.7:8443"},
	} {
		var stdout, stderr bytes.Buffer
		assert.Equal(t, app.ExitUsage, run(t.Context(), append([]string{"tail"}, args...), &stdout, &stderr), "%q: %s", args, &stderr)
		assert.Contains(t, stderr.String(), `Run "rtm tail --help" for usage.`)
		assert.Empty(t, stdout.String())
	}
	var stdout, stderr bytes.Buffer
	assert.Equal(t, app.ExitFailed, run(t.Context(), []string{"tail", "widgets", "-b", here, "-t", "a-secret"}, &stdout, &stderr))
	assert.Contains(t, stderr.String(), "rtm: cannot connect to bus: tail widgets: ")
	assert.NotContains(t, stderr.String(), "a-secret")
}
