package main

import (
	"encoding/json"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/client"
	"routemaster/internal/app"
)

func TestTailShowsEventsAtOnce(t *testing.T) {
	b := startTailBus(t)
	r := startTail(t, b.testBus, rootKey, "widgets")
	const tries = 20
	took := time.Hour
	for number := 1; took >= time.Second && number <= tries; number++ { // the host does not stall every time
		published := time.Now()
		b.publish(t, number)
		r.stdout.waitFor(t, fmt.Sprintf("widgets/%d\n", number))
		took = time.Since(published)
	}
	assert.Less(t, took, time.Second)
	r.end(t)
	b.requireNothingLeft(t)
}

func TestTailShowsEvents(t *testing.T) {
	b := startTailBus(t)
	shop := b.addClient(t, "xshop")
	for _, token := range []string{rootKey, shop} {
		people := startTail(t, b.testBus, token, "widgets")
		at := time.UnixMilli(1_700_000_000_123)
		require.NoError(t, b.publisher.Publish(t.Context(), client.Event{
			Topic: "widgets", Type: client.Delete, URL: "https://warehouse.example/widgets/7", Timestamp: at, Data: json.RawMessage(`{"to":"<a&b>"}`),
		}))
		people.stdout.waitFor(t, "\n")
		assert.Equal(t, at.Format("2006-01-02 15:04:05.000")+` widgets delete https://warehouse.example/widgets/7 {"to":"<a&b>"}`+"\n", people.stdout.String())
		assert.NotContains(t, people.stdout.String(), "/0", "only what was published since")
		people.end(t)
		assert.Equal(t, "rtm: showing what is published to widgets from now on; Ctrl-C ends it\nrtm: unsubscribed; events: 1\n", people.stderr.String())
		b.requireNothingLeft(t, "xshop")

		scripted := startTail(t, b.testBus, token, "widgets", "--json", "--latency", "200", "--batch-size", "7")
		sub := b.subscriptions(t)[0]
		assert.Equal(t, 200*time.Millisecond, sub.Timeout)
		assert.Equal(t, 7, sub.Max)
		require.NoError(t, b.publisher.Publish(t.Context(), client.Event{
			Topic: "widgets", Type: client.Create, URL: "https://warehouse.example/widgets/8", Timestamp: at, Data: json.RawMessage("\"\u009b31m\U000e0001\""),
		}))
		scripted.stdout.waitFor(t, "\n")
		assert.Equal(t, `{"topic":"widgets","type":"create","url":"https://warehouse.example/widgets/8","t":1700000000123,"data":"\u009b31m\udb40\udc01"}`+"\n",
			scripted.stdout.String(), "what a terminal would act on is escaped")
		var event client.Event
		require.NoError(t, json.Unmarshal([]byte(scripted.stdout.String()), &event))
		scripted.end(t)
		b.requireNothingLeft(t, "xshop")
	}
}

func TestTwoTailsWithTheRootKeyAndOneWithAClients(t *testing.T) {
	b := startTailBus(t)
	shop := b.addClient(t, "xshop")
	first, second, clients := startTail(t, b.testBus, rootKey, "widgets"), startTail(t, b.testBus, rootKey, "widgets"), startTail(t, b.testBus, shop, "widgets")
	assert.Len(t, b.noteFiles(t), 3)
	for _, path := range b.noteFiles(t) {
		info, err := os.Stat(path)
		require.NoError(t, err)
		assert.Equal(t, os.FileMode(0o600), info.Mode())
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		assert.NotContains(t, string(text), rootKey)
		assert.NotContains(t, path+string(text), shop)
	}
	b.publish(t, 1)
	for _, r := range []*tailing{first, second, clients} {
		r.stdout.waitFor(t, "widgets/1\n")
	}
	first.end(t)
	b.publish(t, 2)
	second.stdout.waitFor(t, "widgets/2\n")
	clients.stdout.waitFor(t, "widgets/2\n")

	again := launchTail(t, b.testBus, shop, nil, "widgets")
	assert.Equal(t, app.ExitFailed, again.wait(t))
	assert.Contains(t, again.stderr.String(), "another tail with this token runs on this host")
	b.publish(t, 3)
	clients.stdout.waitFor(t, "widgets/3\n")
	second.end(t)
	clients.end(t)
	b.requireNothingLeft(t, "xshop")
}

func TestTailNeverReplacesASubscription(t *testing.T) {
	b := startTailBus(t)
	shop := b.addClient(t, "shop")
	production := client.Subscription{Topics: []string{"widgets"}, Callback: "https://shop.invalid/events", UUID: "production"}
	own := b.connect(t, shop)
	require.NoError(t, own.Subscribe(t.Context(), production))
	before := b.subscriptions(t)

	r := launchTail(t, b.testBus, shop, nil, "widgets")
	assert.Equal(t, app.ExitFailed, r.wait(t))
	assert.Contains(t, r.stderr.String(), "rtm: this client has a subscription already, to widgets, which tail would replace: use the root key")
	assert.NotContains(t, r.stderr.String(), shop)
	assert.Equal(t, before, b.subscriptions(t))
	assert.Empty(t, b.noteFiles(t))

	// Without a uuid it is one too.
	require.NoError(t, own.UnsubscribeAll(t.Context()))
	require.NoError(t, own.Subscribe(t.Context(), client.Subscription{Topics: []string{}, Callback: production.Callback}))
	r = launchTail(t, b.testBus, shop, nil, "widgets")
	assert.Equal(t, app.ExitFailed, r.wait(t))
	assert.Contains(t, r.stderr.String(), "to no topic, which tail would replace")
	require.NoError(t, own.UnsubscribeAll(t.Context()))

	// The service starts while a tail runs with its token: the tail notices, and does not touch it.
	r = startTail(t, b.testBus, shop, "widgets")
	require.NoError(t, own.Subscribe(t.Context(), production))
	assert.Equal(t, app.ExitFailed, r.wait(t))
	assert.Contains(t, r.stderr.String(), "the subscription has been removed, or replaced by another one of this token")
	require.Len(t, b.subscriptions(t), 1)
	assert.Equal(t, "production", b.subscriptions(t)[0].UUID)

	// Or just before Ctrl-C.
	require.NoError(t, own.UnsubscribeAll(t.Context()))
	r = startTail(t, b.testBus, shop, "widgets")
	require.NoError(t, own.Subscribe(t.Context(), production))
	r.interrupt()
	r.wait(t)
	require.Len(t, b.subscriptions(t), 1)
	assert.Equal(t, "production", b.subscriptions(t)[0].UUID)
	assert.Empty(t, b.noteFiles(t))
}
