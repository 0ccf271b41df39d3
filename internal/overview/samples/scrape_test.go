package samples_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/jobs"
	"routemaster/internal/machines"
	"routemaster/internal/overview/samples"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store"
	"routemaster/internal/store/storetest"
	"routemaster/internal/telemetry"
	"routemaster/internal/wire"
	"routemaster/internal/wire/wiretest"
)

// busOf is a bus without jobs and machines.
func busOf(all ...*store.Store) samples.Config {
	return samples.Config{
		Stores:      store.NewBus(all...),
		CountJobs:   func(context.Context) ([]jobs.CountedType, error) { return nil, nil },
		CountLabels: func(context.Context) ([]machines.Count, error) { return nil, nil },
	}
}

// scraped returns the metrics of a process that has opened a bus.
func scraped(config samples.Config, now func() time.Time) *telemetry.Registry {
	registry := telemetry.NewRegistry()
	samples.NewScraper(registry).Open(samples.NewCollector(config, now))
	return registry
}

// page reads the metrics.
func page(t testing.TB, r *telemetry.Registry) string {
	t.Helper()
	w := httptest.NewRecorder()
	r.Handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "/metrics", nil))
	require.Equal(t, 200, w.Code, w.Body.String())
	return w.Body.String()
}

// shown returns a scrape of a store, from a page of its own: a page is a second old at most. A
// scrape has half a second for Redis, which may be too short on a busy host, so shown retries until
// it has read from Redis.
func shown(t testing.TB, st *store.Store, now func() time.Time) string {
	t.Helper()
	return shownOf(t, busOf(st), now)
}

// shownOf is shown of a bus.
func shownOf(t testing.TB, config samples.Config, now func() time.Time) (text string) {
	t.Helper()
	require.Eventually(t, func() bool {
		text = page(t, scraped(config, now))
		return strings.Contains(text, "\nroutemaster_redis_up 1\n")
	}, time.Minute, time.Millisecond, "there is nothing of Redis")
	return text
}

// TestAScrapeIsFast reads the metrics of a bus with 1,000 subscribers, all of whom have something
// queued.
func TestAScrapeIsFast(t *testing.T) {
	subscribers := 1000
	if rdbtest.RaceDetector { // which makes it so slow that Redis is not waited for
		subscribers = 100
	}
	server := rdbtest.Real(t)
	st := storetest.Open(t, server)
	ctx := t.Context()
	timeout := time.Hour
	require.NoError(t, st.PutToken(ctx, "publisher--1", "publisher"))
	for i := range subscribers {
		name := fmt.Sprintf("subscriber-%d", i)
		require.NoError(t, st.PutToken(ctx, bus.Token(name+"--1"), bus.ClientName(name)))
		require.NoError(t, st.Subscribe(ctx, bus.Token(name+"--1"), bus.Subscription{
			Topics: []bus.TopicName{"widgets"}, Callback: "https://x.example/", Timeout: &timeout,
		}, time.Now()))
	}
	event := wiretest.Pack(t, "widgets", `{"type":"noop","url":"https://x.example/"}`)
	for range 150 {
		require.NoError(t, storetest.Publish(ctx, st, store.Publication{
			Topic: "widgets", Publisher: "publisher--1", Events: []wire.PackedEvent{event}, ReceivedAt: time.Now().UnixMilli(),
		}))
	}
	counted := map[bus.Counter]int64{}
	for i := range subscribers {
		queue := bus.Tag{Name: "queue", Value: fmt.Sprintf("subscriber-%d", i)}
		for _, name := range []string{"delivery.batches", "delivery.events", "delivery.time"} {
			counted[bus.NewCounter(name, queue, bus.Tag{Name: "status", Value: "success"})] = 123
			counted[bus.NewCounter(name, queue, bus.Tag{Name: "status", Value: "failure"})] = 45
		}
	}
	require.NoError(t, st.AddCounters(ctx, counted))
	text := shown(t, st, time.Now)
	assert.Equal(t, subscribers, strings.Count(text, "\nroutemaster_subscriber_queued_events{"))
	assert.Equal(t, subscribers, strings.Count(text, "\nroutemaster_subscriber_oldest_event_age_seconds{"))
	assert.Equal(t, 2*subscribers, strings.Count(text, "\nroutemaster_bus_deliveries_total{"))
	assert.NotContains(t, text, "--1", "tokens are secret")
	if rdbtest.RaceDetector {
		return
	}
	before, tries := server.Reads(t), 0
	rdbtest.Promptly(t, time.Second, func() time.Duration { // of the ten that Prometheus gives it
		tries++
		return rdbtest.Took(func() { shown(t, st, time.Now) })
	})
	assert.Less(t, (server.Reads(t)-before)/tries, subscribers/10, "they are not asked for one by one")
}

// TestClientsOfOneNameAreOne scrapes a bus where a client has two tokens.
func TestClientsOfOneNameAreOne(t *testing.T) {
	server := rdbtest.Embedded(t)
	st := storetest.Open(t, server)
	ctx, now := t.Context(), time.Now().Truncate(time.Millisecond) // as Redis has it
	for _, token := range []bus.Token{"shop--1", "shop--2"} {
		require.NoError(t, st.PutToken(ctx, token, "shop"))
		require.NoError(t, st.Subscribe(ctx, token, bus.Subscription{Topics: []bus.TopicName{"widgets"}, Callback: "https://x.example/"}, now))
	}
	server.Raw.HSet(ctx, "subscriber:shop--2", "health_points", 7)
	require.NoError(t, storetest.Publish(ctx, st, store.Publication{
		Topic: "widgets", Publisher: "shop--1", Events: []wire.PackedEvent{"\xc0"}, ReceivedAt: now.Add(-time.Minute).UnixMilli(),
	}))
	server.Raw.HSet(ctx, "deadletters:events", "shop--1", 3, "shop--2", 4)
	server.Raw.HSet(ctx, "options:shop--2", "lanes", "8", "strict_order", "true")
	require.NoError(t, st.Pause(ctx, "shop--1", now.Add(time.Hour)))
	server.Raw.HSet(ctx, "delivery:shop--2", "throttled_until", now.Add(-time.Second).UnixMilli(), "paced_until", now.Add(3*time.Second).UnixMilli())
	text := shown(t, st, func() time.Time { return now })
	assert.Contains(t, text, `routemaster_subscriber_paused{subscriber="shop"} 1`)
	assert.Contains(t, text, `routemaster_subscriber_pace_wait_seconds{subscriber="shop"} 3`)
	assert.Contains(t, text, `routemaster_subscriber_throttle_wait_seconds{subscriber="shop"} 0`)
	assert.Contains(t, text, `routemaster_subscriber_queued_events{subscriber="shop"} 2`)
	assert.Contains(t, text, `routemaster_subscriber_dead_letter_events{subscriber="shop"} 7`)
	assert.Contains(t, text, `routemaster_subscriber_health_points{subscriber="shop"} 7`)
	assert.Contains(t, text, `routemaster_subscriber_lanes{subscriber="shop"} 9`)
	assert.Contains(t, text, `routemaster_lane_blocked{subscriber="shop"} 0`)
	assert.Contains(t, text, `routemaster_subscriber_oldest_event_age_seconds{subscriber="shop"} 60`+"\n")
}

// TestCountersOfTheBusAreScraped reads the counters in one process after others have counted: for
// subscribers, and for clients with queued events.
func TestCountersOfTheBusAreScraped(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		st := storetest.Open(t, server)
		ctx := t.Context()
		for token, name := range map[bus.Token]bus.ClientName{"shop--1": "shop", "gone--1": "gone", "secret": "secret"} { // the last by mistake
			require.NoError(t, st.PutToken(ctx, token, name))
			require.NoError(t, st.Subscribe(ctx, token, bus.Subscription{Topics: []bus.TopicName{"widgets"}, Callback: "https://x.example/"}, time.Now()))
		}
		require.NoError(t, storetest.Publish(ctx, st, store.Publication{
			Topic: "widgets", Publisher: "shop--1", Events: []wire.PackedEvent{"\xc0"}, ReceivedAt: time.Now().UnixMilli(),
		}))
		require.NoError(t, st.DeleteSubscriber(ctx, "gone--1"))
		nameless := bus.PublicName("secret", "secret")
		scrape := func() string {
			text := shown(t, st, time.Now)
			assert.NotContains(t, text, "--1", "tokens are secret")
			assert.NotContains(t, text, "secret")
			problems, err := promlint.New(strings.NewReader(text)).Lint()
			require.NoError(t, err)
			assert.Empty(t, problems)
			return text
		}
		text := scrape()
		for _, name := range []bus.ClientName{"shop", nameless, "gone"} {
			for _, status := range []string{"success", "failure"} {
				assert.Contains(t, text, fmt.Sprintf("routemaster_bus_deliveries_total{status=%q,subscriber=%q} 0\n", status, name))
				assert.Contains(t, text, fmt.Sprintf("routemaster_bus_delivered_events_total{status=%q,subscriber=%q} 0\n", status, name))
			}
			assert.Contains(t, text, fmt.Sprintf("routemaster_bus_autodropped_events_total{subscriber=%q} 0\n", name))
		}

		for range 2 { // two processes
			r := telemetry.NewRecorder(telemetry.NewRegistry(), st, slog.New(slog.DiscardHandler))
			r.Count(telemetry.Deliveries, 1, "shop", telemetry.Success)
			r.Count(telemetry.DeliveredEvents, 3, "shop", telemetry.Success)
			r.Count(telemetry.Deliveries, 1, string(nameless), telemetry.Failure)
			r.Count(telemetry.DeliveredEvents, 5, string(nameless), telemetry.Failure)
			r.Count(telemetry.Deliveries, 1, "unknown", telemetry.Success)
			r.Count(telemetry.DroppedEvents, 7, "gone")
			r.Flush(ctx)
		}
		text = scrape()
		for series, want := range map[string]int{
			`deliveries_total{status="success",subscriber="shop"}`:                          2,
			`deliveries_total{status="failure",subscriber="shop"}`:                          0,
			`delivered_events_total{status="success",subscriber="shop"}`:                    6,
			fmt.Sprintf(`deliveries_total{status="failure",subscriber=%q}`, nameless):       2,
			fmt.Sprintf(`delivered_events_total{status="failure",subscriber=%q}`, nameless): 10,
			`autodropped_events_total{subscriber="gone"}`:                                   14,
			`autodropped_events_total{subscriber="shop"}`:                                   0,
		} {
			assert.Contains(t, text, fmt.Sprintf("routemaster_bus_%s %d\n", series, want))
		}
		assert.NotContains(t, text, "unknown")

		require.NoError(t, server.Raw.HSet(ctx, "counters", wire.PackCounter(telemetry.DroppedEvents.Bus("shop")), "x").Err())
		text = scrape()
		assert.NotContains(t, text, `routemaster_bus_autodropped_events_total{subscriber="shop"}`, "it is not known")
		assert.Contains(t, text, `routemaster_bus_deliveries_total{status="success",subscriber="shop"} 2`+"\n")

		require.NoError(t, server.Raw.Del(ctx, "counters").Err())
		require.NoError(t, server.Raw.Set(ctx, "counters", "x", 0).Err())
		text = scrape()
		assert.NotContains(t, text, "routemaster_bus_", "0 would mean that they have begun anew")
		assert.Contains(t, text, "routemaster_redis_up 1\n", "the rest is there")
	})
}

// TestHistoriesAreShown has more of them than have a name of their own in metrics.
func TestHistoriesAreShown(t *testing.T) {
	server := rdbtest.Embedded(t)
	st := storetest.Open(t, server)
	ctx := t.Context()
	require.NoError(t, server.Raw.RPush(ctx, "history:widgets", "a", "b").Err())
	require.NoError(t, server.Raw.HSet(ctx, "history:limits:widgets", "size", 7).Err())
	require.NoError(t, server.Raw.HSet(ctx, "plans", "/widgets", 1, "token--1", "AAAABBBB").Err())
	text := shown(t, st, time.Now)
	assert.Contains(t, text, `routemaster_history_events{topic="widgets"} 2`+"\n")
	assert.Contains(t, text, `routemaster_history_bytes{topic="widgets"} 7`+"\n")
	assert.Equal(t, 1, strings.Count(text, "\nroutemaster_history_events{"))

	all := map[string]any{}
	for i := range 2003 {
		all[fmt.Sprint("/topic-", i)] = 1
	}
	require.NoError(t, server.Raw.HSet(ctx, "plans", all).Err())
	for topic := range all {
		require.NoError(t, server.Raw.HSet(ctx, "history:limits:"+topic[1:], "size", 2).Err())
	}
	text = shown(t, st, time.Now)
	assert.Equal(t, 2001, strings.Count(text, "\nroutemaster_history_events{"))
	assert.Contains(t, text, `routemaster_history_bytes{topic="(other)"}`)
}

// TestAScrapeOfPartitions has three, each on a Redis of its own, and one of these hangs.
func TestAScrapeOfPartitions(t *testing.T) {
	all, servers := storetest.Apart(t, 3)
	b := store.NewBus(all...)
	ctx, now := t.Context(), time.Now().Truncate(time.Millisecond)
	names := map[int]string{} // of a client in each partition
	for i := 0; len(names) < 3; i++ {
		token := bus.Token(fmt.Sprintf("client-%d--1", i))
		number := int(b.Of(token).Partition().Number())
		if names[number] != "" {
			continue
		}
		names[number] = fmt.Sprintf("client-%d", i)
		require.NoError(t, b.PutToken(ctx, token, bus.ClientName(names[number])))
		require.NoError(t, b.Subscribe(ctx, token, bus.Subscription{Topics: []bus.TopicName{"widgets"}, Callback: "https://x.example/"}, now))
	}
	home := b.Home("widgets").Partition()
	publish := func() {
		require.NoError(t, storetest.Publish(ctx, b.Home("widgets"), store.Publication{
			Topic: "widgets", Publisher: bus.Token(names[0] + "--1"), Events: []wire.PackedEvent{"\xc0"}, ReceivedAt: now.UnixMilli(),
		}))
	}
	publish()
	shown := func(until string) (text string) {
		t.Helper()
		require.Eventually(t, func() bool {
			config := busOf()
			config.Stores = b
			text = page(t, scraped(config, func() time.Time { return now.Add(3 * time.Second) }))
			return strings.Contains(text, until)
		}, time.Minute, time.Millisecond, until)
		return text
	}
	for number := range all {
		shown(fmt.Sprintf("\nroutemaster_partition_up{partition=\"%02d\"} 1\n", number))
	}
	text := shown("\nroutemaster_redis_up{node=\"here\"} 1\n")
	problems, err := promlint.New(strings.NewReader(text)).Lint()
	require.NoError(t, err)
	assert.Empty(t, problems)
	for number := range 3 {
		queued, relayed := 0, 1
		if number == int(home.Number()) {
			queued, relayed = 1, 0
		}
		assert.Contains(t, text, fmt.Sprintf("\nroutemaster_subscriber_queued_events{subscriber=%q} %d\n", names[number], queued))
		assert.Contains(t, text, fmt.Sprintf("\nroutemaster_relay_events{partition=\"%02d\"} %d\n", number, relayed))
		assert.Contains(t, text, fmt.Sprintf("\nroutemaster_relay_oldest_seconds{partition=\"%02d\"} 0\n", number))
	}
	assert.Contains(t, text, "\nroutemaster_redis_memory_used_bytes{node=\"here\"} ")
	require.NoError(t, home.HSet(ctx, home.Namespace()+"relay:taken", "02", fmt.Sprintf("uid 1 %d", now.UnixMilli())).Err())
	shown("\nroutemaster_relay_oldest_seconds{partition=\"02\"} 3\n")

	held := b.All()[(int(home.Number())+2)%3].Partition()
	_, err = held.Hold(ctx, 0)
	require.NoError(t, err)
	text = shown(fmt.Sprintf("\nroutemaster_partition_up{partition=\"%v\"} 0\n", held.Number()))
	assert.Contains(t, text, fmt.Sprintf("\nroutemaster_subscriber_queued_events{subscriber=%q} 0\n", names[int(held.Number())]))
	assert.Contains(t, text, "\nroutemaster_redis_up{node=\"here\"} 1\n")

	away := (int(home.Number()) + 1) % 3
	servers[away].Freeze(t)
	text = shown(fmt.Sprintf("\nroutemaster_partition_up{partition=\"%02d\"} 0\n", away))
	assert.Contains(t, text, fmt.Sprintf("\nroutemaster_subscriber_queued_events{subscriber=%q} 1\n", names[int(home.Number())]))
	assert.NotContains(t, text, fmt.Sprintf("\nroutemaster_subscriber_queued_events{subscriber=%q}", names[away]))
	assert.Contains(t, text, "\nroutemaster_redis_up{node=\"here\"} 0\n")
}
