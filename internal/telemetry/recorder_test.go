package telemetry_test

import (
	"bytes"
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
	"routemaster/internal/inspect"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store/storetest"
	"routemaster/internal/telemetry"
)

func TestMain(m *testing.M) { rdbtest.Main(m) }

// page reads the metrics.
func page(t testing.TB, r *telemetry.Registry) string {
	t.Helper()
	w := httptest.NewRecorder()
	r.Handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "/metrics", nil))
	require.Equal(t, 200, w.Code, w.Body.String())
	return w.Body.String()
}

func TestANilRecorderTakesNoNote(t *testing.T) {
	var r *telemetry.Recorder
	r.Count(telemetry.RemovedEvents, 1, "alice")
	r.CountFor(telemetry.EnqueuedEvents, 1, "alice--1")
	r.Took(telemetry.PublishDuration, 1)
	r.Flush(t.Context())
}

// TestAMetricIsCountedForTheProcessAndTheBus counts by all labels for the bus, and by the shown
// ones for the process.
func TestAMetricIsCountedForTheProcessAndTheBus(t *testing.T) {
	registry, st := telemetry.NewRegistry(), storetest.Open(t, rdbtest.Embedded(t))
	r := telemetry.NewRecorder(registry, st, slog.New(slog.DiscardHandler))
	r.Count(telemetry.RedeliveredEvents, 2, "shop")
	r.Count(telemetry.ReplayedEvents, 4, "shop")
	r.Count(telemetry.LostEvents, 0, "shop", "removed")
	r.Count(telemetry.PublishedEvents, 2, "widgets", "shop")
	r.Count(telemetry.PublishedEvents, 3, "widgets", "mail")
	r.Count(telemetry.PublishedBytes, 60, "widgets", "mail")
	r.Count(telemetry.EndedJobs, 1, "refund", "expired", telemetry.Worker)
	r.Count(telemetry.EndedJobs, 1, "refund", "expired", telemetry.Web)
	r.Count(telemetry.WorkerThreads, 8, "main")
	r.Count(telemetry.BusyThreads, 3, "main")
	r.Count(telemetry.BusyThreads, -1, "main")
	r.Took(telemetry.JobDuration, time.Second, "invoice")
	r.Took(telemetry.JobDuration, 2*time.Second, "invoice")
	text := page(t, registry)
	for _, series := range []string{
		`redelivered_events_total{subscriber="shop"} 2`, `replayed_events_total{subscriber="shop"} 4`,
		`gap_events_total{reason="removed",subscriber="shop"} 0`,
		`published_events_total{topic="widgets"} 5`, `published_bytes_total 60`,
		`jobs_ended_total{job_type="refund",status="expired"} 2`,
		`worker_threads{queue="main"} 8`, `worker_threads_busy{queue="main"} 2`, `worker_threads{queue="jobs"} 0`,
		`job_attempt_duration_seconds_sum{job_type="invoice"} 3`, `job_attempt_duration_seconds_count{job_type="invoice"} 2`,
		`slices_total 0`, `delivery_connections_total{reused="false"} 0`, `idempotency_keys_dropped_total{reason="memory"} 0`,
	} {
		assert.Contains(t, text, "\nroutemaster_"+series+"\n")
	}
	assert.NotContains(t, text, "routemaster_deliveries_total", "its series begin with what is counted")
	r.Flush(t.Context())
	counters, err := inspect.Of(st).Counters(t.Context())
	require.NoError(t, err)
	assert.Equal(t, map[bus.Counter]int64{
		bus.NewCounter("events.added", bus.Tag{Name: "queue", Value: "shop"}): 6,
		telemetry.PublishedEvents.BusTotal():                                  5,
		publishedBy("shop"):                                                   2,
		publishedBy("mail"):                                                   3,
		telemetry.PublishedBytes.Bus("widgets", "mail"):                       60,
		telemetry.EndedJobs.Bus("refund", "expired", "web"):                   1,
		telemetry.EndedJobs.Bus("refund", "expired", "worker"):                1,
	}, counters)
}

// TestEventsAreCountedForTokens records tokens only, and expects names when the counts are stored.
func TestEventsAreCountedForTokens(t *testing.T) {
	registry, st := telemetry.NewRegistry(), storetest.Open(t, rdbtest.Embedded(t))
	require.NoError(t, st.PutToken(t.Context(), "alice--1", "alice"))
	r := telemetry.NewRecorder(registry, st, slog.New(slog.DiscardHandler))
	r.CountFor(telemetry.EnqueuedEvents, 2, "alice--1")
	r.CountFor(telemetry.EnqueuedEvents, 3, "alice--1")
	r.CountFor(telemetry.EnqueuedEvents, 1, "bob--1 carol--1")
	r.CountFor(telemetry.EnqueuedEvents, 1, "")
	r.CountFor(telemetry.DroppedEvents, 6, "bob--1 carol--1")
	r.CountFor(telemetry.RemovedEvents, 4, "alice--1")
	assert.Contains(t, page(t, registry), "\nroutemaster_enqueued_events_total 7\n")
	r.Flush(t.Context())
	counters, err := inspect.Of(st).Counters(t.Context())
	require.NoError(t, err)
	assert.EqualValues(t, 5, counters[telemetry.EnqueuedEvents.Bus("alice")])
	assert.EqualValues(t, 4, counters[telemetry.RemovedEvents.Bus("alice")])
	assert.EqualValues(t, 12, counters[telemetry.DroppedEvents.BusTotal()])
	assert.Len(t, counters, 7)
	assert.NotContains(t, fmt.Sprint(counters), "--1", "tokens are secret")
}

// publishedBy is the counter of the events that a client has published to the topic of these tests.
func publishedBy(publisher string) bus.Counter {
	return bus.NewCounter("events.published", bus.Tag{Name: "topic", Value: "widgets"}, bus.Tag{Name: "publisher", Value: publisher})
}

// TestCountsOutliveAnOutage keeps counting during an outage of Redis, within bounds, and logs it
// once.
func TestCountsOutliveAnOutage(t *testing.T) {
	server := rdbtest.Real(t)
	st := storetest.Open(t, server)
	ctx := t.Context()
	var log bytes.Buffer
	r := telemetry.NewRecorder(telemetry.NewRegistry(), st, slog.New(slog.NewTextHandler(&log, nil)))
	server.Kill(t)
	for i := range 100_000 {
		r.Count(telemetry.PublishedEvents, 1, "widgets", "shop")
		r.CountFor(telemetry.EnqueuedEvents, 1, bus.Tokens(fmt.Sprintf("alice--1 bob--%d", i%10_000)))
		r.Count(telemetry.RemovedEvents, 1, fmt.Sprint("client-", i))
		if i%20_000 == 0 {
			r.Flush(ctx)
		}
	}
	assert.Equal(t, 1, strings.Count(log.String(), "counters cannot be stored"))
	server.Restart(t)
	require.Eventually(t, func() bool { return st.Partition().Client().Ping(ctx) == nil }, time.Minute, time.Millisecond)
	var counters map[bus.Counter]int64
	require.Eventually(t, func() (stored bool) { // on a busy host Redis may answer too late
		r.Flush(ctx)
		found, err := inspect.Of(st).Counters(ctx)
		counters = found
		return err == nil && len(counters) >= 20_000
	}, time.Minute, time.Millisecond)
	assert.Equal(t, int64(100_000), counters[publishedBy("shop")])
	assert.Len(t, counters, 20_000, "not more are kept")
	r.Flush(ctx)
	again, err := inspect.Of(st).Counters(ctx)
	require.NoError(t, err)
	assert.Equal(t, counters, again, "what is stored is not counted again")
}

// TestAFlushThatHasBegunGoesOn stops the loop between the two steps of a flush.
func TestAFlushThatHasBegunGoesOn(t *testing.T) {
	server := rdbtest.Embedded(t)
	st := storetest.Open(t, server)
	var log bytes.Buffer
	r := telemetry.NewRecorder(telemetry.NewRegistry(), st, slog.New(slog.NewTextHandler(&log, nil)))
	r.Count(telemetry.PublishedEvents, 1, "widgets", "shop")
	r.CountFor(telemetry.EnqueuedEvents, 1, "alice--1")
	ctx, stop := context.WithCancel(t.Context())
	server.OnCommand(func(name string, _ ...string) {
		if name == "HGETALL" { // of the names of the tokens
			stop()
		}
	})
	r.Run(ctx, time.Millisecond)
	assert.Empty(t, log.String())
	counters, err := inspect.Of(st).Counters(t.Context())
	require.NoError(t, err)
	assert.Equal(t, int64(1), counters[publishedBy("shop")])
}

func TestLabelsAreBounded(t *testing.T) {
	st := storetest.Open(t, rdbtest.Embedded(t))
	registry := telemetry.NewRegistry()
	r := telemetry.NewRecorder(registry, st, slog.New(slog.DiscardHandler))
	for i := range 5000 {
		r.Count(telemetry.PublishedEvents, 1, fmt.Sprint("topic", i), "shop")
	}
	text := page(t, registry)
	assert.Equal(t, 2001, strings.Count(text, "\nroutemaster_published_events_total{"))
	assert.Contains(t, text, `routemaster_published_events_total{topic="(other)"} 3000`)
	if rdbtest.RaceDetector {
		return // to read so much takes it ten seconds
	}
	problems, err := promlint.New(strings.NewReader(text)).Lint()
	require.NoError(t, err)
	assert.Empty(t, problems)
}
