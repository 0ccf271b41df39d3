package client_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/client"
)

// numbered is an event whose URL ends with a number.
func numbered(topic string, number int) client.Event {
	return client.Event{Topic: topic, Type: client.Update, URL: fmt.Sprintf("https://x.example/%d", number)}
}

// urls reads the URLs of a request's body.
func urls(t testing.TB, body string) (all []string) {
	var events []struct{ URL string }
	if err := json.Unmarshal([]byte(body), &events); err != nil {
		t.Error(err)
	}
	for _, event := range events {
		all = append(all, event.URL)
	}
	return all
}

// losses keeps the events that a publisher has lost.
type losses struct {
	mu     sync.Mutex
	events []client.Event
	errs   []error
}

func (l *losses) lost(events []client.Event, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events, l.errs = append(l.events, events...), append(l.errs, err)
}

func TestAPublisherKeepsOrderInFewRequests(t *testing.T) {
	const events, topics = 5000, 3
	stored := make(map[string][]string)
	var mu sync.Mutex
	bus := newFakeBus(t, nil)
	seen := map[string]bool{}
	bus.respond = func(n int, w http.ResponseWriter, body string) {
		mu.Lock()
		defer mu.Unlock()
		got := bus.all()[n] // others may arrive meanwhile
		if !seen[got.key] {
			seen[got.key] = true
			all := urls(t, got.body)
			assert.LessOrEqual(t, len(all), client.MaxBulk)
			stored[got.path] = append(stored[got.path], all...)
		}
		if n%5 == 2 { // stored, but the response is lost
			breakConnection()
		}
		w.WriteHeader(http.StatusOK)
	}
	p := client.NewPublisher(connect(t, bus.URL), client.WithQueue(2000))
	want := make(map[string][]string)
	for i := range events {
		topic := string(rune('a' + i%topics))
		event := numbered(topic, i)
		want["/topics/"+topic] = append(want["/topics/"+topic], event.URL)
		require.NoError(t, p.Publish(t.Context(), event))
	}
	require.NoError(t, p.Close(t.Context()))
	assert.Equal(t, want, stored)
	assert.Less(t, len(bus.all()), events/10)
	assert.ErrorIs(t, p.Publish(t.Context(), anEvent), client.ErrClosed)
	require.NoError(t, p.Close(t.Context()), "closing it twice does no harm")
}

func TestAPublishersRequestsStayBelowTheBusLimit(t *testing.T) {
	held := make(chan struct{})
	bus := newFakeBus(t, func(n int, w http.ResponseWriter, body string) {
		assert.LessOrEqual(t, len(body), client.MaxBulkBytes)
		if n == 0 {
			<-held
		}
		w.WriteHeader(http.StatusOK)
	})
	p := client.NewPublisher(connect(t, bus.URL))
	event := anEvent
	event.Data = json.RawMessage(`"` + strings.Repeat("x", 300_000) + `"`)
	for range 7 {
		require.NoError(t, p.Publish(t.Context(), event))
	}
	event.Data = json.RawMessage(`"` + strings.Repeat("x", client.MaxBulkBytes) + `"`)
	assert.ErrorContains(t, p.Publish(t.Context(), event), "it may have 1048574 at most")
	close(held)
	require.NoError(t, p.Close(t.Context()))
	assert.Len(t, bus.all(), 3, "1, 3 and 3 events")
}

func TestOneRefusedEventDoesNotLoseOthers(t *testing.T) {
	var stored []string
	var mu sync.Mutex
	bus := newFakeBus(t, func(_ int, w http.ResponseWriter, body string) {
		mu.Lock()
		defer mu.Unlock()
		all := urls(t, body)
		if i := slices.Index(all, "https://x.example/7"); i >= 0 {
			problem(w, 400, fmt.Sprintf("/%d/url", i), "not that one")
			return
		}
		if len(all) > 4 {
			w.WriteHeader(http.StatusRequestEntityTooLarge) // a proxy
			return
		}
		stored = append(stored, all...)
		w.WriteHeader(http.StatusOK)
	})
	var l losses
	p := client.NewPublisher(connect(t, bus.URL), client.WithLostHandler(l.lost))
	var want []string
	for i := range 20 {
		event := numbered("widgets", i)
		if i != 7 {
			want = append(want, event.URL)
		}
		require.NoError(t, p.Publish(t.Context(), event))
	}
	err := p.Close(t.Context())
	assert.ErrorContains(t, err, "1 events were not published; the first: publish to widgets: 400 Bad Request: /")
	assert.Equal(t, want, stored)
	require.Len(t, l.events, 1)
	assert.Equal(t, "https://x.example/7", l.events[0].URL)
}

func TestInvalidDataIsRefusedBeforeItIsQueued(t *testing.T) {
	var stored atomic.Int64
	bus := newFakeBus(t, func(_ int, w http.ResponseWriter, body string) {
		if strings.Contains(body, `"a":2`) || strings.Contains(body, `\ud800`) { // like the bus, without naming the event
			problem(w, 400, "", "the body is not valid JSON")
			return
		}
		stored.Add(int64(len(urls(t, body))))
		w.WriteHeader(http.StatusOK)
	})
	p := client.NewPublisher(connect(t, bus.URL))
	for i := range 20 {
		require.NoError(t, p.Publish(t.Context(), numbered("widgets", i)))
		for _, data := range []string{`{"a":1,"a":2}`, `"\ud800"`} {
			event := numbered("widgets", i)
			event.Data = json.RawMessage(data)
			assert.ErrorContains(t, p.Publish(t.Context(), event), "publish to widgets: the event's data", data)
		}
	}
	require.NoError(t, p.Close(t.Context()))
	assert.EqualValues(t, 20, stored.Load())
}

func TestAPublisherHeedsRetryAfter(t *testing.T) {
	bus := newFakeBus(t, func(n int, w http.ResponseWriter, _ string) {
		if n == 0 {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		w.WriteHeader(http.StatusOK)
	})
	p := client.NewPublisher(connect(t, bus.URL, client.WithRetries(0)))
	require.NoError(t, p.Publish(t.Context(), anEvent))
	require.NoError(t, p.Close(t.Context()))
	all := bus.all()
	require.Len(t, all, 2)
	assert.GreaterOrEqual(t, all[1].at.Sub(all[0].at), time.Second)
}

func TestAPublisherWaitsForTheBus(t *testing.T) {
	bus := newFakeBus(t, func(n int, w http.ResponseWriter, _ string) {
		if n < 20 { // more often than the client retries
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		w.WriteHeader(http.StatusOK)
	})
	var l losses
	p := client.NewPublisher(connect(t, bus.URL, client.WithRetries(2)), client.WithLostHandler(l.lost))
	require.NoError(t, p.Publish(t.Context(), anEvent))
	require.NoError(t, p.Close(t.Context()))
	assert.Empty(t, l.events)
	all := bus.all()
	assert.Len(t, all, 21)
	for _, r := range all {
		assert.Equal(t, all[0].key, r.key)
	}
}

func TestAFullQueueBlocksAndAnEarlyCloseReportsLosses(t *testing.T) {
	bus := newFakeBus(t, func(_ int, w http.ResponseWriter, _ string) { w.WriteHeader(http.StatusServiceUnavailable) })
	var l losses
	p := client.NewPublisher(connect(t, bus.URL), client.WithQueue(3), client.WithLostHandler(l.lost))
	for i := range 3 {
		require.NoError(t, p.Publish(t.Context(), numbered("widgets", i)))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	assert.ErrorIs(t, p.Publish(ctx, anEvent), context.DeadlineExceeded)

	blocked := make(chan error)
	go func() { blocked <- p.Publish(context.Background(), anEvent) }()
	closing, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	err := p.Close(closing)
	assert.ErrorContains(t, err, "3 events were not published; the first: closed too early (context deadline exceeded): publish to widgets: ")
	assert.ErrorIs(t, err, context.DeadlineExceeded)
	assert.ErrorIs(t, <-blocked, client.ErrClosed)
	require.Len(t, l.events, 3)
	assert.Equal(t, "https://x.example/0", l.events[0].URL)
	assert.ErrorContains(t, p.Publish(t.Context(), client.Event{URL: "https://x.example/"}), "the event has no topic")
}

func TestAPublisherIsSafeForConcurrentUse(t *testing.T) {
	const publishers, each = 8, 500
	stored := 0
	var mu sync.Mutex
	bus := newFakeBus(t, func(_ int, w http.ResponseWriter, body string) {
		mu.Lock()
		defer mu.Unlock()
		stored += len(urls(t, body))
		w.WriteHeader(http.StatusOK)
	})
	p := client.NewPublisher(connect(t, bus.URL), client.WithQueue(100))
	var publishing sync.WaitGroup
	for i := range publishers {
		publishing.Go(func() {
			for j := range each {
				assert.NoError(t, p.Publish(t.Context(), numbered([]string{"a", "b"}[i%2], j)))
			}
		})
	}
	publishing.Wait()
	require.NoError(t, p.Close(t.Context()))
	assert.Equal(t, publishers*each, stored)
}
