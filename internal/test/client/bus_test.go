package client_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/client"
	"routemaster/internal/app"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/test/bustest"
)

const rootKey = "a-long-enough-secret"

// TestOnABus calls everything, on a bus.
func TestOnABus(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, redis *rdbtest.Server) {
		bus := bustest.Start(t, redis, func(c *app.Config) { c.RootKey = rootKey })
		ctx, url := t.Context(), bus.API
		root := connect(t, url, rootKey)
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
		assert.Equal(t, []client.Token{{Name: "shop", Token: "shop--1"}, made}, tokens)

		// The shop refuses the first delivery, and then accepts it.
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
		shop := connect(t, url, "shop--1")
		timeout := 20 * time.Millisecond
		require.NoError(t, shop.Subscribe(ctx, client.Subscription{
			Topics: []string{"parcels", "widgets"}, Callback: callback.URL + "/", UUID: "a-uuid", Timeout: &timeout, Max: 500,
		}))
		status, err := shop.Subscriptions(ctx)
		require.NoError(t, err)
		assert.Equal(t, []client.SubscriptionStatus{{
			Subscriber: "shop--1", Name: "shop", UUID: "a-uuid", Callback: callback.URL + "/", Max: 500, Timeout: timeout, Topics: []string{"parcels", "widgets"}, Health: 100,
		}}, status)

		warehouse := connect(t, url, made.Token)
		first := client.Event{Topic: "widgets", Type: client.Create, URL: "https://x.example/0", Timestamp: time.UnixMilli(12345), Data: json.RawMessage(`{"z":1.0,"a":null}`)}
		for range 2 {
			require.NoError(t, warehouse.Publish(ctx, first, client.WithIdempotencyKey("first")))
		}
		select {
		case got := <-received:
			assert.Equal(t, first, got)
		case <-time.After(bustest.WaitTimeout):
			t.Fatal("it was not delivered again")
		}
		all := make([]client.Event, client.MaxBulk)
		for i := range all {
			all[i] = client.Event{Topic: "widgets", Type: client.Update, URL: fmt.Sprintf("https://x.example/%d", i)}
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
			case <-time.After(bustest.WaitTimeout):
				t.Fatal("events are missing")
			}
		}

		all[500].URL = "http://x.example/"
		var rejected *client.Error
		require.ErrorAs(t, warehouse.PublishAll(ctx, "widgets", all), &rejected)
		assert.Equal(t, "/500/url", rejected.Pointer)
		require.ErrorAs(t, shop.Publish(ctx, first), &rejected)
		assert.Equal(t, 403, rejected.Status)
		first.URL += "0"
		require.ErrorAs(t, warehouse.Publish(ctx, first, client.WithIdempotencyKey("first")), &rejected)
		assert.Equal(t, 409, rejected.Status)

		topics, err := warehouse.Topics(ctx)
		require.NoError(t, err)
		assert.Equal(t, []client.Topic{{Name: "parcels"}, {Name: "widgets", Publisher: made.Token, Events: 2*client.MaxBulk + 1}}, topics)
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
		require.ErrorAs(t, shop.Unsubscribe(ctx, "parcels"), &rejected)
		assert.Equal(t, 404, rejected.Status)
		require.NoError(t, warehouse.DeleteTopic(ctx, "widgets"))
		require.NoError(t, shop.UnsubscribeAll(ctx))
		require.NoError(t, root.DeleteToken(ctx, "shop--1"))
		require.ErrorAs(t, shop.Pulse(ctx), &rejected)
		assert.Equal(t, 401, rejected.Status)
		assert.NotContains(t, rejected.Error(), "shop--1")
	})
}
