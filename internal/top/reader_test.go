package top

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/client"
	"routemaster/internal/overview"
)

// newTestReader makes a reader of a bus that responds so.
func newTestReader(t *testing.T, respond http.HandlerFunc) *Reader {
	bus := httptest.NewServer(respond)
	t.Cleanup(bus.Close)
	c, err := client.New(bus.URL, "shop--1", client.WithRetries(0))
	require.NoError(t, err)
	r := NewReader(c)
	t.Cleanup(r.Close)
	return r
}

func TestFiguresAreThoseOfTheBus(t *testing.T) {
	want := withAll()
	want.Problems = problems
	r := newTestReader(t, func(w http.ResponseWriter, r *http.Request) {
		assert.Equal(t, "GET /overview", r.Method+" "+r.URL.RequestURI())
		assert.NoError(t, json.NewEncoder(w).Encode(want))
	})
	got, err := r.Read(t.Context())
	require.NoError(t, err)
	assert.Equal(t, time.Local, got.At.Location(), "the operator's own zone")
	written, err := json.Marshal(want)
	require.NoError(t, err)
	got.At = got.At.In(want.At.Location())
	again, err := json.Marshal(got)
	require.NoError(t, err)
	assert.JSONEq(t, string(written), string(again), "rtm top --once --json has what the bus says")
}

func TestABusThatDoesNotSay(t *testing.T) {
	for status, want := range map[int]string{
		http.StatusNotFound:           "404 Not Found; there is no bus at this address, or it is older than this rtm, and has no GET /overview",
		http.StatusUnauthorized:       "401 Unauthorized",
		http.StatusServiceUnavailable: "503 Service Unavailable",
	} {
		_, err := newTestReader(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }).Read(t.Context())
		require.ErrorContains(t, err, want)
	}
	r := newTestReader(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	r.timeout = 10 * time.Millisecond
	_, err := r.Read(t.Context())
	require.EqualError(t, err, "no answer within 10ms")
	_, err = newTestReader(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) }).Read(t.Context())
	require.Error(t, err)
}

func TestTheJSONKeepsItsFields(t *testing.T) {
	text, err := json.Marshal(withAll())
	require.NoError(t, err)
	var f map[string]any
	require.NoError(t, json.Unmarshal(text, &f))
	first := func(list string) any { return f[list].([]any)[0] }
	for _, test := range []struct {
		of     any
		fields []string
	}{
		{f, []string{"at", "interval_seconds", "published_per_second", "delivered_per_second", "queued_events", "dropped_events",
			"oldest_event_age_seconds", "jobs_due", "warnings"}},
		{first("jobs"), []string{"queue", "instant", "scheduled"}},
		{f["redis_memory"], []string{"used_bytes", "max_bytes", "high_mark_bytes", "low_mark_bytes"}},
		{first("subscribers"), []string{"subscriber", "topics", "queued_events", "queued_batches", "oldest_event_age_seconds", "state",
			"delivered_per_second", "sent_events", "failed_share", "dropped_events", "dead_letter_events", "health_points", "health_trend",
			"since_last_attempt_seconds"}},
		{first("topics"), []string{"topic", "publisher", "published_per_second", "events", "subscribers"}},
		{first("job_types"), []string{"job_type", "queued", "waiting", "in_progress", "concurrency", "oldest_age_seconds",
			"succeeded_per_second", "failed_per_second", "expired_per_second", "paused"}},
		{first("machines"), []string{"machine", "labels", "errored_labels", "moves_per_second", "failed_per_second", "unpublished_moves"}},
	} {
		for _, field := range test.fields {
			assert.Contains(t, test.of, field)
		}
	}
	assert.Equal(t, overview.Paced, first("subscribers").(map[string]any)["state"])
}
