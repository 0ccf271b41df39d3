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
	"routemaster/internal/machines"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store"
	"routemaster/internal/store/stats"
	"routemaster/internal/store/storetest"
	"routemaster/internal/telemetry"
	"routemaster/internal/telemetry/metrics"
)

func TestMain(m *testing.M) { rdbtest.Main(m) }

// page reads the metrics.
func page(t testing.TB, r *metrics.Registry) string {
	t.Helper()
	w := httptest.NewRecorder()
	r.Handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "/metrics", nil))
	require.Equal(t, 200, w.Code, w.Body.String())
	return w.Body.String()
}

func TestANilRecorderTakesNoNote(t *testing.T) {
	var r *telemetry.Recorder
	batch := &store.Delivery{Attempts: 1}
	r.Published("widgets", "publisher--1", 1, 1, "alice--1")
	r.Relayed(map[bus.Token]int{"alice--1": 1})
	r.PublishTook(1)
	r.Committed(1)
	r.Taken(batch, time.Now())
	r.Unreadable(batch, 1)
	r.Delivered(batch, 1, time.Now(), 1, nil)
	r.Connected(true)
	r.Removed("alice", 1)
	r.Gone(store.DroppedBatch{})
	r.Dropped("alice", 1)
	r.DroppedBatches(1)
	r.DeadLettered("alice", bus.DiedOfAge, 1)
	r.Redelivered("alice", 1)
	r.DroppedDeadLetters("alice", 1)
	r.Replayed("alice", 1)
	r.Scrubbed(1, 1)
	r.Threads(bus.QueueMain, 1)
	r.Busy(bus.QueueMain, 1)
	r.JobType("invoice")
	r.JobTried("invoice", "accepted", 1)
	r.JobAttemptLost("invoice")
	r.JobEnded(telemetry.Worker, "invoice", "failed")
	r.JobReported("invoice", "queued")
	r.JobsEnqueued("invoice", 1)
	r.JobRequest("get", "queued")
	r.Started("web")
	r.Stopped("web")
	r.Flush(t.Context())
}

func TestDeadLettersAndReplaysAreCounted(t *testing.T) {
	registry, st := metrics.NewRegistry(), storetest.Open(t, rdbtest.Embedded(t))
	r := telemetry.NewRecorder(registry, st, slog.New(slog.DiscardHandler))
	r.DeadLettered("shop", bus.DiedOfAge, 3)
	r.DeadLettered("shop", bus.DiedRejected, 1)
	r.Redelivered("shop", 2)
	r.Replayed("shop", 4)
	r.DroppedDeadLetters("shop", 1)
	r.Expired("shop", 5)
	r.Lost("shop", bus.LostRemoved, 0)
	text := page(t, registry)
	for _, series := range []string{
		`dead_letter_events_total{reason="age",subscriber="shop"} 3`,
		`dead_letter_events_total{reason="rejected",subscriber="shop"} 1`,
		`dead_letter_events_total{reason="attempts",subscriber="shop"} 0`,
		`redelivered_events_total{subscriber="shop"} 2`,
		`dead_letters_dropped_events_total{subscriber="shop"} 1`,
		`replayed_events_total{subscriber="shop"} 4`,
		`gap_events_total{reason="dead_letters",subscriber="shop"} 1`,
		`gap_events_total{reason="retention",subscriber="shop"} 5`,
	} {
		assert.Contains(t, text, "\nroutemaster_"+series+"\n")
	}
	assert.Contains(t, text, `gap_events_total{reason="removed",subscriber="shop"} 0`, "it was there before the first")
	r.Flush(t.Context())
	counters, err := stats.Of(st).Counters(t.Context())
	require.NoError(t, err)
	assert.Equal(t, int64(6), counters[bus.NewCounter("events.added", telemetry.QueueTag("shop"))], "they are in its queue again")
}

// TestRelayedEventsAreAdded to the queues of those who get them in another partition.
func TestRelayedEventsAreAdded(t *testing.T) {
	registry, st := metrics.NewRegistry(), storetest.Open(t, rdbtest.Embedded(t))
	require.NoError(t, st.PutToken(t.Context(), "alice--1", "alice"))
	r := telemetry.NewRecorder(registry, st, slog.New(slog.DiscardHandler))
	r.Published("widgets", "publisher--1", 2, 1, "alice--1")
	r.Relayed(map[bus.Token]int{"alice--1": 3, "bob--1": 1})
	assert.Contains(t, page(t, registry), "\nroutemaster_enqueued_events_total 6\n")
	r.Flush(t.Context())
	counters, err := stats.Of(st).Counters(t.Context())
	require.NoError(t, err)
	assert.EqualValues(t, 5, counters[bus.NewCounter("events.added", telemetry.QueueTag("alice"))])
}

func TestUnreadableEventsAreCountedForTheBus(t *testing.T) {
	st := storetest.Open(t, rdbtest.Embedded(t))
	r := telemetry.NewRecorder(metrics.NewRegistry(), st, slog.New(slog.DiscardHandler))
	r.Unreadable(&store.Delivery{Attempts: 1}, 3)
	r.Unreadable(&store.Delivery{Attempts: 2}, 3)
	r.Flush(t.Context())
	counters, err := stats.Of(st).Counters(t.Context())
	require.NoError(t, err)
	assert.Equal(t, map[bus.Counter]int64{bus.NewCounter(telemetry.UnreadableEventsCounter): 3}, counters)
}

func TestJobsAreCountedByType(t *testing.T) {
	registry, st := metrics.NewRegistry(), storetest.Open(t, rdbtest.Embedded(t))
	r := telemetry.NewRecorder(registry, st, slog.New(slog.DiscardHandler))
	r.JobType("invoice")
	known := page(t, registry)
	assert.Contains(t, known, "\nroutemaster_job_attempts_lost_total{job_type=\"invoice\"} 0\n")
	assert.Contains(t, known, "\nroutemaster_job_attempts_total{job_type=\"invoice\",outcome=\"held\"} 0\n")
	r.JobTried("invoice", "accepted", time.Second)
	r.JobTried("invoice", "held", 2*time.Second)
	r.JobAttemptLost("invoice")
	r.JobEnded(telemetry.Worker, "refund", "expired")
	r.JobEnded(telemetry.Web, "refund", "expired")
	r.JobReported("label", "succeeded")
	r.JobReported("label", "queued")
	r.JobsEnqueued("refund", 3)
	r.JobRequest("get", "queued")
	text := page(t, registry)
	for _, series := range []string{
		`job_attempts_total{job_type="invoice",outcome="accepted"} 1`,
		`job_attempts_total{job_type="invoice",outcome="held"} 1`,
		`job_attempt_duration_seconds_sum{job_type="invoice"} 3`,
		`job_attempt_duration_seconds_count{job_type="invoice"} 2`,
		`job_attempts_lost_total{job_type="invoice"} 1`,
		`jobs_ended_total{job_type="refund",status="expired"} 2`,
		`jobs_ended_total{job_type="label",status="succeeded"} 1`,
		`job_reports_total{job_type="label",status="succeeded"} 1`,
		`job_reports_total{job_type="label",status="queued"} 1`,
	} {
		assert.Contains(t, text, "\nroutemaster_"+series+"\n")
	}
	r.Flush(t.Context())
	counters, err := stats.Of(st).Counters(t.Context())
	require.NoError(t, err)
	job := func(name string) bus.Tag { return bus.Tag{Name: "job_type", Value: name} }
	outcome := func(name, outcome string) bus.Counter {
		return bus.NewCounter("jobs.attempts", job(name), bus.Tag{Name: "outcome", Value: outcome})
	}
	ended := telemetry.EndedJobs("refund", "expired")
	assert.Equal(t, map[bus.Counter]int64{
		outcome("invoice", "accepted"): 1, outcome("invoice", "held"): 1, outcome("invoice", "lost"): 1, outcome("label", "retried"): 1,
		ended[0]: 1, ended[1]: 1, telemetry.EndedJobs("label", "succeeded")[0]: 1,
		bus.NewCounter("jobs.enqueued", job("refund")):                                                                    3,
		bus.NewCounter("jobs.requests", bus.Tag{Name: "request", Value: "get"}, bus.Tag{Name: "result", Value: "queued"}): 1,
	}, counters)
}

// TestStepsOfLabelsAreCounted by state for the process, and by machine for the bus: but for what
// neither moves a label nor fails.
func TestStepsOfLabelsAreCounted(t *testing.T) {
	registry, st := metrics.NewRegistry(), storetest.Open(t, rdbtest.Embedded(t))
	r := telemetry.NewRecorder(registry, st, slog.New(slog.DiscardHandler))
	for _, step := range [][2]string{{"start", "moved"}, {"mail", "moved"}, {"mail", "attempted"}, {"start", "closed"}, {"start", "idle"}} {
		r.LabelStep("trial", machines.StateName(step[0]), step[1])
	}
	assert.Contains(t, page(t, registry), `routemaster_label_steps_total{machine="trial",outcome="closed",state="start"} 1`)
	r.Flush(t.Context())
	counters, err := stats.Of(st).Counters(t.Context())
	require.NoError(t, err)
	assert.Equal(t, map[bus.Counter]int64{telemetry.LabelSteps("trial", "moved"): 2, telemetry.LabelSteps("trial", "attempted"): 1}, counters)
}

// publishedBy is the counter of the events that a client has published to the topic of these tests.
func publishedBy(publisher string) bus.Counter {
	return bus.NewCounter("events.published", bus.Tag{Name: "topic", Value: "widgets"}, bus.Tag{Name: "publisher", Value: publisher})
}

func TestThePublisherOfACounterIsNoSecret(t *testing.T) {
	st := storetest.Open(t, rdbtest.Embedded(t))
	r := telemetry.NewRecorder(metrics.NewRegistry(), st, slog.New(slog.DiscardHandler))
	for token, want := range map[bus.Token]string{"shop--1": "shop", "secret": "malformed", "--secret": "malformed", "": "null"} {
		r.Published("widgets", token, 2, 10, "")
		r.Flush(t.Context())
		counters, err := stats.Of(st).Counters(t.Context())
		require.NoError(t, err)
		assert.Contains(t, counters, publishedBy(want))
		assert.NotContains(t, fmt.Sprint(counters), "secret")
	}
}

// TestCountsOutliveAnOutage keeps counting during an outage of Redis, within bounds, and logs it
// once.
func TestCountsOutliveAnOutage(t *testing.T) {
	server := rdbtest.Real(t)
	st := storetest.Open(t, server)
	ctx := t.Context()
	var log bytes.Buffer
	r := telemetry.NewRecorder(metrics.NewRegistry(), st, slog.New(slog.NewTextHandler(&log, nil)))
	server.Kill(t)
	for i := range 100_000 {
		r.Published("widgets", "shop--1", 1, 10, bus.Tokens(fmt.Sprintf("alice--1 bob--%d", i%10_000)))
		r.Removed(bus.ClientName(fmt.Sprint("client-", i)), 1)
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
		found, err := stats.Of(st).Counters(ctx)
		counters = found
		return err == nil && len(counters) >= 20_000
	}, time.Minute, time.Millisecond)
	assert.Equal(t, int64(100_000), counters[publishedBy("shop")])
	assert.Len(t, counters, 20_000, "not more are kept")
	r.Flush(ctx)
	again, err := stats.Of(st).Counters(ctx)
	require.NoError(t, err)
	assert.Equal(t, counters, again, "what is stored is not counted again")
}

// TestAFlushThatHasBegunGoesOn stops the loop between the two steps of a flush.
func TestAFlushThatHasBegunGoesOn(t *testing.T) {
	server := rdbtest.Embedded(t)
	st := storetest.Open(t, server)
	var log bytes.Buffer
	r := telemetry.NewRecorder(metrics.NewRegistry(), st, slog.New(slog.NewTextHandler(&log, nil)))
	r.Published("widgets", "shop--1", 1, 10, "alice--1")
	ctx, stop := context.WithCancel(t.Context())
	server.OnCommand(func(name string, _ ...string) {
		if name == "HGETALL" { // of the names of the tokens
			stop()
		}
	})
	r.Run(ctx, time.Millisecond)
	assert.Empty(t, log.String())
	counters, err := stats.Of(st).Counters(t.Context())
	require.NoError(t, err)
	assert.Equal(t, int64(1), counters[publishedBy("shop")])
}

func TestLabelsAreBounded(t *testing.T) {
	st := storetest.Open(t, rdbtest.Embedded(t))
	registry := metrics.NewRegistry()
	r := telemetry.NewRecorder(registry, st, slog.New(slog.DiscardHandler))
	for i := range 5000 {
		r.Published(bus.TopicName(fmt.Sprint("topic", i)), "shop--1", 1, 10, "")
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
