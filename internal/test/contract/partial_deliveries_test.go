package contract

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/client"
	"routemaster/client/receipt"
	"routemaster/internal/app"
	"routemaster/internal/bus"
	"routemaster/internal/inspect"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/test/bustest"
	"routemaster/internal/wire"
)

// publishArray publishes events 1 to n in one request.
func publishArray(b *bustest.Bus, token, topic string, n int) {
	var events []string
	for i := range n {
		events = append(events, bustest.EventBody(i+1))
	}
	b.Call(token, "POST", "/topics/"+topic, "["+strings.Join(events, ",")+"]", http.StatusOK)
}

// TestReceiptsOfTheGoHandler has a handler retry one event, reject one and acknowledge the others.
func TestReceiptsOfTheGoHandler(t *testing.T) {
	b := bustest.Start(t, rdbtest.Embedded(t))
	publisher, shop := b.AddClient("publisher"), b.AddClient("shop")
	var mu sync.Mutex
	var deliveries [][]string
	endpoint := httptest.NewTLSServer(client.NewHandler("a", func(_ context.Context, events []client.Event) error {
		mu.Lock()
		defer mu.Unlock()
		var urls []string
		for _, event := range events {
			urls = append(urls, event.URL)
		}
		deliveries = append(deliveries, urls)
		if len(deliveries) > 1 {
			return nil
		}
		return errors.Join(receipt.Retry(1), receipt.Reject(3, "no such widget"))
	}))
	defer endpoint.Close()
	b.Call(shop, "POST", "/subscription", fmt.Sprintf(
		`{"topics":["widgets"],"callback":%q,"uuid":"a","timeout":0,"max":5,"partial":true,"dead_letters":{}}`, endpoint.URL+"/"), 204)
	publishArray(b, publisher, "widgets", 5)
	require.Eventually(t, func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(deliveries) == 2
	}, bustest.WaitTimeout, time.Millisecond)
	assert.Len(t, deliveries[0], 5)
	assert.Equal(t, deliveries[0][1:2], deliveries[1])

	letters := b.Call(shop, "GET", "/subscriber/dead_letters", "", 200)
	assert.Contains(t, letters, `"reason":"rejected"`)
	assert.Contains(t, letters, `"note":"no such widget"`)
	attempts := b.Call(shop, "GET", "/subscriber/attempts", "", 200)
	assert.Contains(t, attempts, `"outcome":"partial"`)
	require.Eventually(t, func() bool {
		return strings.Contains(b.Call(shop, "GET", "/subscriptions", "", 200), `"sent":4,"queued":0`)
	}, bustest.WaitTimeout, time.Millisecond)
}

// TestReceiptsAddUp answers at random until nothing is left, and compares the numbers of
// acknowledged and rejected events with the bus's numbers in each place.
func TestReceiptsAddUp(t *testing.T) {
	t.Parallel()
	const events = 400
	b := bustest.Start(t, rdbtest.Embedded(t), func(c *app.Config) { c.AttemptsKept, c.MaxBackoff = 1000, time.Millisecond })
	publisher, shop := b.AddClient("publisher"), b.AddClient("shop")
	var mu sync.Mutex
	random := rand.New(rand.NewPCG(1, 2))
	acknowledged, rejected, again := map[string]int{}, map[string]int{}, 0
	endpoint := httptest.NewTLSServer(client.NewHandler("a", func(_ context.Context, events []client.Event) error {
		mu.Lock()
		defer mu.Unlock()
		var parts []error
		for i, event := range events {
			switch random.IntN(4) {
			case 0:
				rejected[event.URL]++
				parts = append(parts, receipt.Reject(i, ""))
			case 1:
				again++
				parts = append(parts, receipt.Retry(i))
			default:
				acknowledged[event.URL]++
			}
		}
		return errors.Join(parts...)
	}))
	defer endpoint.Close()
	b.Call(shop, "POST", "/subscription", fmt.Sprintf(`{"topics":["widgets"],"callback":%q,"uuid":"a","timeout":0,"max":7,
		"partial":true,"dead_letters":{},"log_attempts":"all"}`, endpoint.URL+"/"), 204)
	publishArray(b, publisher, "widgets", events)
	b.Drain()
	b.RequireNothingLeft()

	mu.Lock()
	defer mu.Unlock()
	assert.Len(t, acknowledged, events-len(rejected))
	for url, times := range acknowledged {
		assert.Equal(t, 1, times, url)
		assert.NotContains(t, rejected, url)
	}
	ctx, p := t.Context(), b.Stores.Of(bus.Token(shop)).Partition()
	assert.Equal(t, fmt.Sprint(len(acknowledged)), p.HGet(ctx, p.Namespace()+"delivery:"+shop, "events_sent").Val())
	assert.Equal(t, fmt.Sprint(len(rejected)), p.HGet(ctx, p.Namespace()+"deadletters:events", shop).Val())
	counters, err := inspect.Of(b.Stores.First()).Counters(ctx)
	require.NoError(t, err)
	delivered := bus.NewCounter("delivery.events", bus.Tag{Name: "queue", Value: "shop"}, bus.Tag{Name: "status", Value: "success"})
	assert.EqualValues(t, len(acknowledged), counters[delivered])
	recorded := map[string]int{}
	for _, packed := range p.LRange(ctx, p.Namespace()+"attempts:"+shop, 0, -1).Val() {
		record, err := wire.UnpackAttempt(packed)
		require.NoError(t, err)
		if record.Outcome == bus.OutcomeAcknowledged {
			record.Acknowledged = record.Events
		}
		recorded["acknowledged"] += record.Acknowledged
		recorded["retried"] += record.Retried
		recorded["rejected"] += record.Rejected
	}
	assert.Equal(t, map[string]int{"acknowledged": len(acknowledged), "retried": again, "rejected": len(rejected)}, recorded)
}

// TestABadEventFailsNotItsNeighbours has an endpoint refuse whatever an event is in, until that is
// alone.
func TestABadEventFailsNotItsNeighbours(t *testing.T) {
	t.Parallel()
	const bad, events = 5, 8
	b := bustest.Start(t, rdbtest.Embedded(t))
	publisher, shop := b.AddClient("publisher"), b.AddClient("shop")
	s := bustest.NewSubscriber(t, shop)
	s.Respond(func(numbers []int) int {
		if slices.Contains(numbers, bad) {
			return http.StatusUnprocessableEntity
		}
		return http.StatusOK
	})
	s.Subscribe(b, 0, events, "widgets")
	b.Call(shop, "PATCH", "/subscriber", `{"dead_letters":{"attempts":3}}`, 204)
	publishArray(b, publisher, "widgets", events)
	s.WaitFor(t, events-1)
	assert.Equal(t, []int{1, 2, 3, 4, 6, 7, 8}, s.Numbers())
	require.Eventually(t, func() bool {
		return strings.Contains(b.Call(shop, "GET", "/subscriber/dead_letters", "", 200), `"events":1`)
	}, bustest.WaitTimeout, time.Millisecond)
	assert.Contains(t, b.Call(shop, "GET", "/subscriber/dead_letters", "", 200), `"reason":"refused","status":422`)

	// An event that may succeed the next time is tried as often as the option says, and then dies.
	s.Respond(func(numbers []int) int {
		if slices.Contains(numbers, events+1) {
			return http.StatusBadRequest
		}
		return http.StatusOK
	})
	before := s.Deliveries()
	b.Publish(publisher, "widgets", events+1)
	require.Eventually(t, func() bool {
		return strings.Contains(b.Call(shop, "GET", "/subscriber/dead_letters", "", 200), `"reason":"attempts","status":400`)
	}, bustest.WaitTimeout, time.Millisecond)
	assert.Equal(t, before+3, s.Deliveries())
	b.Publish(publisher, "widgets", events+2)
	s.WaitFor(t, events)
	b.Drain()
	b.RequireNothingLeft()
}

// TestDeliveriesOfLimitedSize has a batch come in as few parts as its limit allows, in order.
func TestDeliveriesOfLimitedSize(t *testing.T) {
	const limit = 1024
	b := bustest.Start(t, rdbtest.Embedded(t))
	publisher, shop := b.AddClient("publisher"), b.AddClient("shop")
	s := bustest.NewSubscriber(t, shop)
	var mu sync.Mutex
	var sizes []int64
	endpoint := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		sizes = append(sizes, r.ContentLength)
		mu.Unlock()
		s.ServeHTTP(w, r)
	}))
	defer endpoint.Close()
	s.URL = endpoint.URL + "/"
	s.Subscribe(b, 0, 100, "widgets")
	b.Call(shop, "PATCH", "/subscriber", fmt.Sprintf(`{"max_bytes":%d}`, limit), 204)
	publishArray(b, publisher, "widgets", 100)
	s.WaitFor(t, 100)
	for i, number := range s.Numbers() {
		assert.Equal(t, i+1, number)
	}
	for i, size := range sizes {
		assert.LessOrEqual(t, size, int64(limit))
		if i < len(sizes)-1 {
			assert.Greater(t, size, int64(limit-100), "one more event would fit")
		}
	}
	assert.Greater(t, len(sizes), 3)
}
