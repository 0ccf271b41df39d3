package client_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/client"
	"routemaster/internal/app"
	"routemaster/internal/rdb/rdbtest"
)

// startBus starts a bus in this process, and returns its URL.
func startBus(t *testing.T, redis *rdbtest.Server) (url string) {
	config, err := app.LoadConfig(func(name string) string {
		return map[string]string{
			"ROUTEMASTER_ROOT_KEY": token, "ROUTEMASTER_REDIS_URL": redis.PatientURL(), "FORCE_SSL": "no",
			"ROUTEMASTER_SSL_VERIFY": "no", "ROUTEMASTER_CALLBACK_DENY": "none", "ROUTEMASTER_ACQUIRE_TIMEOUT": "1",
		}[name]
	})
	require.NoError(t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	log := slog.New(slog.DiscardHandler)
	var running sync.WaitGroup
	running.Go(func() { assert.NoError(t, app.ServeWeb(ctx, config, log, listener)) })
	running.Go(func() { assert.NoError(t, app.RunWorker(ctx, config, log)) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	return "http://" + listener.Addr().String()
}

// TestOnABus goes through all calls, on a bus.
func TestOnABus(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, redis *rdbtest.Server) {
		ctx, url := t.Context(), startBus(t, redis)
		root := connect(t, url)
		require.NoError(t, root.Pulse(ctx))
		none, err := root.Tokens(ctx)
		require.NoError(t, err)
		assert.Empty(t, none)
		made, err := root.AddToken(ctx, "warehouse", "")
		require.NoError(t, err)
		assert.Regexp(t, `^warehouse--[0-9a-f]{32}$`, made.Token)
		_, err = root.AddToken(ctx, "shop", "shop--1")
		require.NoError(t, err)
		var taken *client.Error
		_, err = root.AddToken(ctx, "warehouse", "shop--1")
		require.ErrorAs(t, err, &taken)
		assert.Equal(t, 409, taken.Status)
		tokens, err := root.Tokens(ctx)
		require.NoError(t, err)
		assert.Equal(t, []client.Token{{"shop", "shop--1"}, made}, tokens)

		// The shop refuses what comes first, and then takes it.
		received := make(chan client.Event, 3000)
		refused := false
		callback := httptest.NewTLSServer(client.NewHandler("a-uuid", func(_ context.Context, events []client.Event) error {
			if !refused {
				refused = true
				return io.ErrUnexpectedEOF
			}
			for _, event := range events {
				received <- event
			}
			return nil
		}))
		t.Cleanup(callback.Close)
		shop, err := client.New(url, "shop--1")
		require.NoError(t, err)
		t.Cleanup(shop.CloseIdleConnections)
		timeout := 20 * time.Millisecond
		require.NoError(t, shop.Subscribe(ctx, client.Subscription{
			Topics: []string{"parcels", "widgets"}, Callback: callback.URL + "/", UUID: "a-uuid", Timeout: &timeout, Max: 500,
		}))
		status, err := shop.Subscriptions(ctx)
		require.NoError(t, err)
		assert.Equal(t, []client.SubscriptionStatus{{
			Subscriber: "shop--1", Name: "shop", UUID: "a-uuid", Callback: callback.URL + "/", Max: 500, Timeout: timeout, Topics: []string{"parcels", "widgets"}, Health: 100,
		}}, status)

		warehouse, err := client.New(url, made.Token)
		require.NoError(t, err)
		t.Cleanup(warehouse.CloseIdleConnections)
		first := client.Event{Topic: "widgets", Type: client.Create, URL: "https://x.example/0", Timestamp: time.UnixMilli(12345), Data: json.RawMessage(`{"z":1.0,"a":null}`)}
		for range 2 {
			require.NoError(t, warehouse.Publish(ctx, first, client.WithIdempotencyKey("first")))
		}
		select {
		case got := <-received:
			assert.Equal(t, first, got)
		case <-time.After(soon):
			t.Fatal("it was not delivered again")
		}
		all := make([]client.Event, client.MaxBulk)
		for i := range all {
			all[i] = numbered("widgets", i)
		}
		require.NoError(t, warehouse.PublishAll(ctx, "widgets", all))
		publisher := client.NewPublisher(warehouse)
		for _, event := range all {
			require.NoError(t, publisher.Publish(ctx, event))
		}
		require.NoError(t, publisher.Close(ctx))
		for i := range 2 * client.MaxBulk {
			select {
			case got := <-received:
				require.Equal(t, all[i%client.MaxBulk].URL, got.URL, "in order")
			case <-time.After(soon):
				t.Fatal("events are missing")
			}
		}

		all[500].URL = "http://x.example/"
		var answered *client.Error
		require.ErrorAs(t, warehouse.PublishAll(ctx, "widgets", all), &answered)
		assert.Equal(t, "/500/url", answered.Pointer)
		require.ErrorAs(t, shop.Publish(ctx, first), &answered)
		assert.Equal(t, 403, answered.Status)
		first.URL += "0"
		require.ErrorAs(t, warehouse.Publish(ctx, first, client.WithIdempotencyKey("first")), &answered)
		assert.Equal(t, 409, answered.Status)

		topics, err := warehouse.Topics(ctx)
		require.NoError(t, err)
		assert.Equal(t, []client.Topic{{Name: "parcels"}, {"widgets", made.Token, 2*client.MaxBulk + 1}}, topics)
		page, err := warehouse.TopicsPage(ctx, client.Page{Limit: 1})
		require.NoError(t, err)
		assert.Equal(t, topics[:1], page)
		page, err = warehouse.TopicsPage(ctx, client.Page{After: "parcels", Limit: 2})
		require.NoError(t, err)
		assert.Equal(t, topics[1:], page)
		subscribers, err := warehouse.SubscriptionsPage(ctx, client.Page{After: "shop", Limit: 10})
		require.NoError(t, err)
		assert.Empty(t, subscribers)
		metrics, err := warehouse.Metrics(ctx)
		require.NoError(t, err)
		text, err := io.ReadAll(metrics)
		require.NoError(t, err)
		require.NoError(t, metrics.Close())
		assert.Contains(t, string(text), `routemaster_published_events_total{topic="widgets"} 2001`)

		require.NoError(t, shop.Unsubscribe(ctx, "parcels"))
		require.ErrorAs(t, shop.Unsubscribe(ctx, "parcels"), &answered)
		assert.Equal(t, 404, answered.Status)
		require.NoError(t, warehouse.DeleteTopic(ctx, "widgets"))
		require.NoError(t, shop.UnsubscribeAll(ctx))
		require.NoError(t, root.DeleteToken(ctx, "shop--1"))
		require.ErrorAs(t, shop.Pulse(ctx), &answered)
		assert.Equal(t, 401, answered.Status)
		assert.NotContains(t, answered.Error(), "shop--1")
	})
}
