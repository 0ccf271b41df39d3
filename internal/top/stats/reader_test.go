package stats

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"routemaster/client"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// answers is a bus that answers what a test says, by path. An answer that begins with a digit is
// a status.
type answers struct {
	mu     sync.Mutex
	by     map[string]string
	counts map[string]int
	hang   chan struct{}
}

func (a *answers) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	a.counts[r.URL.Path]++
	text := a.by[r.URL.Path]
	a.mu.Unlock()
	if text == "hang" {
		select {
		case <-r.Context().Done():
		case <-a.hang:
		}
		return
	}
	if status := 0; strings.HasPrefix(text, "4") || strings.HasPrefix(text, "5") {
		_, _ = fmt.Sscan(text, &status)
		w.WriteHeader(status)
	}
	_, _ = io.WriteString(w, text)
}

func (a *answers) set(path, text string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.by[path] = text
}

func (a *answers) asked(path string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.counts[path]
}

const (
	someTopics      = `[{"name":"widgets","publisher":"warehouse--1","events":9},{"name":"new","publisher":null,"events":0}]`
	someSubscribers = `[{"subscriber":"shop--1","uuid":"x","callback":"https://shop.example","max_events":100,"timeout":500,"topics":["widgets"],
		"health_points":90,"last_attempted_at":1700000000000,"events":{"sent":5,"queued":4,"oldest":1700000000000}}]`
	someMetrics = `# TYPE routemaster_redis_up gauge
routemaster_redis_up 1
# TYPE routemaster_subscriber_queued_batches gauge
routemaster_subscriber_queued_batches{subscriber="shop"} 2
# TYPE routemaster_subscriber_dead_letter_events gauge
routemaster_subscriber_dead_letter_events{subscriber="shop"} 6
# TYPE routemaster_subscriber_oldest_event_age_seconds gauge
routemaster_subscriber_oldest_event_age_seconds{subscriber="shop"} 1.5
# TYPE routemaster_subscriber_health_points gauge
routemaster_subscriber_health_points{subscriber="shop"} 90
# TYPE routemaster_subscriber_paused gauge
routemaster_subscriber_paused{subscriber="shop"} 0
routemaster_subscriber_paused{subscriber="idle"} 0
# TYPE routemaster_subscriber_pace_wait_seconds gauge
routemaster_subscriber_pace_wait_seconds{subscriber="shop"} 0.5
# TYPE routemaster_subscriber_throttle_wait_seconds gauge
routemaster_subscriber_throttle_wait_seconds{subscriber="shop"} 5
# TYPE routemaster_lane_blocked gauge
routemaster_lane_blocked{subscriber="shop"} 0
# TYPE routemaster_jobs gauge
routemaster_jobs{queue="aux",status="instant"} 1
routemaster_jobs{queue="main",status="instant"} 3
routemaster_jobs{queue="main",status="scheduled"} 4
# TYPE routemaster_jobs_due gauge
routemaster_jobs_due 5
# TYPE routemaster_job_type_queued gauge
routemaster_job_type_queued{job_type="ship"} 7
routemaster_job_type_queued{job_type="pay"} 0
# TYPE routemaster_job_type_waiting gauge
routemaster_job_type_waiting{job_type="ship"} 3
# TYPE routemaster_job_type_in_progress gauge
routemaster_job_type_in_progress{job_type="ship"} 2
# TYPE routemaster_job_type_concurrency gauge
routemaster_job_type_concurrency{job_type="ship"} 5
# TYPE routemaster_job_type_paused gauge
routemaster_job_type_paused{job_type="ship"} 1
# TYPE routemaster_job_type_oldest_age_seconds gauge
routemaster_job_type_oldest_age_seconds{job_type="ship"} 1.5
# TYPE routemaster_bus_jobs_ended_total counter
routemaster_bus_jobs_ended_total{job_type="ship",status="succeeded"} 8
routemaster_bus_jobs_ended_total{job_type="ship",status="failed"} 9
# TYPE routemaster_labels gauge
routemaster_labels{machine="trial",state="start"} 4
routemaster_labels{machine="trial",state="end"} 3
routemaster_labels{machine="drip",state="start"} 0
# TYPE routemaster_labels_errored gauge
routemaster_labels_errored{machine="trial"} 2
# TYPE routemaster_machine_moves_unpublished gauge
routemaster_machine_moves_unpublished{machine="trial"} 1
# TYPE routemaster_bus_label_steps_total counter
routemaster_bus_label_steps_total{machine="trial",outcome="moved"} 90
routemaster_bus_label_steps_total{machine="trial",outcome="failed"} 5
routemaster_bus_label_steps_total{machine="trial",outcome="attempted"} 7
routemaster_bus_label_steps_total{machine="trial",outcome="errored"} 2
# TYPE routemaster_redis_memory_used_bytes gauge
routemaster_redis_memory_used_bytes 6.1e+07
# TYPE routemaster_redis_memory_max_bytes gauge
routemaster_redis_memory_max_bytes 1e+08
# TYPE routemaster_redis_memory_high_mark_bytes gauge
routemaster_redis_memory_high_mark_bytes 9e+07
# TYPE routemaster_redis_memory_low_mark_bytes gauge
routemaster_redis_memory_low_mark_bytes 8e+07
# TYPE routemaster_deliveries_total counter
routemaster_deliveries_total{subscriber="shop",status="success"} 1
# TYPE routemaster_bus_deliveries_total counter
routemaster_bus_deliveries_total{subscriber="shop",status="success"} 7
routemaster_bus_deliveries_total{subscriber="shop",status="failure"} 8
# TYPE routemaster_bus_autodropped_events_total counter
routemaster_bus_autodropped_events_total{subscriber="shop"} 9
`
)

// newBus answers as to root, and returns a reader that has a token.
func newBus(t *testing.T, token string) (*answers, *Reader) {
	t.Helper()
	a := &answers{hang: make(chan struct{}), counts: map[string]int{}, by: map[string]string{
		"/topics": someTopics, "/subscriptions": someSubscribers, "/metrics": someMetrics,
		"/api_tokens": `[{"name":"shop","token":"shop--1"},{"name":"depot","token":"warehouse--1"}]`,
	}}
	server := httptest.NewServer(a)
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(a.hang) })
	transport := &http.Transport{}
	c, err := client.New(server.URL, token, client.WithRetries(0), client.WithHTTPClient(&http.Client{Transport: transport}))
	require.NoError(t, err)
	reader := NewReader(c, token)
	reader.timeout = time.Minute // however slow this machine is
	t.Cleanup(reader.Close)
	return a, reader
}

func TestASnapshotOfRoot(t *testing.T) {
	a, reader := newBus(t, "the-root-key")
	s, err := reader.Read(t.Context())
	require.NoError(t, err)
	due, oldest := int64(5), time.UnixMilli(1700000000000)
	assert.WithinDuration(t, time.Now(), s.At, 5*time.Second)
	assert.Equal(t, []TopicState{{"widgets", "depot", 9}, {"new", "", 0}}, s.Topics)
	assert.Equal(t, []SubscriberState{{Name: "shop", Topics: []string{"widgets"}, Timeout: 500 * time.Millisecond, Sent: 5, Queued: 4,
		Health: 90, OldestAt: oldest, AttemptedAt: oldest}}, s.Subscribers)
	assert.Equal(t, Metrics{
		Batches: map[string]int64{"shop": 2}, Dead: map[string]int64{"shop": 6}, OldestAge: map[string]time.Duration{"shop": 1500 * time.Millisecond},
		States: map[string]string{"shop": Throttled, "idle": Ready}, Counts: map[string]Counts{"shop": {7, 8, 9}},
		Types: []JobTypeState{{Name: "pay"}, {
			Name: "ship", Queued: 7, Waiting: 3, InProgress: 2, Concurrency: 5, OldestAge: 1500 * time.Millisecond, Paused: true,
			Ended: map[string]float64{"succeeded": 8, "failed": 9},
		}},
		Machines: []MachineState{
			{Name: "drip"}, {Name: "trial", Labels: 7, Errored: 2, Unpublished: 1, Steps: map[string]float64{Moved: 90, Failed: 14}},
		},
		Jobs: []Jobs{{"main", 3, 4}, {"aux", 1, 0}}, Due: &due, Memory: &Memory{61_000_000, 100_000_000, 90_000_000, 80_000_000},
	}, s.Bus)
	assert.Empty(t, s.Warnings)

	for range 3 {
		_, err = reader.Read(t.Context())
		require.NoError(t, err)
	}
	assert.Equal(t, []int{4, 4, 1}, []int{a.asked("/topics"), a.asked("/subscriptions"), a.asked("/api_tokens")})

	a.set("/subscriptions", strings.ReplaceAll(someSubscribers, "shop--1", "mailer--2"))
	for range 3 {
		s, err = reader.Read(t.Context())
		require.NoError(t, err)
		assert.Regexp(t, "^client-[0-9a-f]{8}$", s.Subscribers[0].Name, "never the token, nor a part of it")
	}
	assert.Equal(t, 2, a.asked("/api_tokens"), "it asks who somebody is once")
}

func TestASnapshotOfAClient(t *testing.T) {
	for _, test := range []struct{ token, subscribers, metrics, want string }{
		{"shop--1", strings.ReplaceAll(someSubscribers, `"uuid"`, `"name":"the_shop","uuid"`), "", "the_shop"}, // the list tells
		{"secret", strings.ReplaceAll(someSubscribers, "shop--1", "secret"), someMetrics, "shop"},              // the metrics do
		{"secret", strings.ReplaceAll(someSubscribers, "shop--1", "secret"), "", "(this client)"},              // nothing does
		{"reader--1", strings.ReplaceAll(someSubscribers, "shop--1", "another-client"), "", "another-client"},  // a name
	} {
		a, reader := newBus(t, test.token)
		a.set("/api_tokens", "403 Forbidden")
		a.set("/subscriptions", test.subscribers)
		a.set("/metrics", test.metrics)
		s, err := reader.Read(t.Context())
		require.NoError(t, err)
		assert.Equal(t, test.want, s.Subscribers[0].Name)
		_, err = reader.Read(t.Context())
		require.NoError(t, err)
		assert.Equal(t, 1, a.asked("/api_tokens"))
	}
}

func TestSubscribersOfOneNameAreOne(t *testing.T) {
	two := []client.SubscriptionStatus{
		{Subscriber: "shop", Topics: []string{"b", "c"}, Sent: 1, Queued: 2, Health: 50, Timeout: time.Second, LastAttempted: start},
		{Subscriber: "shop", Topics: []string{"a", "b"}, Sent: 3, Queued: 4, Health: 40, Oldest: start, LastAttempted: start.Add(time.Second)},
	}
	same := func(name string) string { return name }
	want := []SubscriberState{{Name: "shop", Topics: []string{"a", "b", "c"}, Sent: 4, Queued: 6, Health: 40, Timeout: time.Second, OldestAt: start, AttemptedAt: start.Add(time.Second)}}
	assert.Equal(t, want, subscriberStates(two, same))
	two[0], two[1] = two[1], two[0]
	assert.Equal(t, want, subscriberStates(two, same))
}

func TestWhatCannotBeRead(t *testing.T) {
	for path, wants := range map[string]map[string]string{
		"/topics":        {"401": "401 Unauthorized", "503": "503 Service Unavailable", "[": "not from a bus"},
		"/subscriptions": {"503": "503 Service Unavailable"},
		"/api_tokens":    {"503": "503 Service Unavailable"},
	} {
		for text, want := range wants {
			a, reader := newBus(t, "a-secret")
			a.set(path, text)
			_, err := reader.Read(t.Context())
			require.ErrorContains(t, err, want)
			assert.NotContains(t, err.Error(), "a-secret")
			assert.LessOrEqual(t, a.asked(path), 1, "it does not try again by itself")
		}
	}
	for text, want := range map[string]string{
		"404": "404 Not Found", "500": "500 Internal Server Error", "{": "not in Prometheus' text format",
		"routemaster_redis_up 0\n": "its Redis did not answer in time",
	} {
		a, reader := newBus(t, "the-root-key")
		a.set("/metrics", text)
		s, err := reader.Read(t.Context())
		require.NoError(t, err, "the rest is there")
		require.Len(t, s.Warnings, 1)
		assert.Contains(t, s.Warnings[0], want)
		assert.Nil(t, s.Bus.Memory)
		assert.Len(t, s.Subscribers, 1)
	}
}

func TestABusThatHangsIsGivenUp(t *testing.T) {
	a, reader := newBus(t, "the-root-key")
	reader.timeout = 50 * time.Millisecond
	a.set("/subscriptions", "hang")
	_, err := reader.Read(t.Context())
	require.EqualError(t, err, "no answer within 50ms")
	reader.timeout = time.Hour
	stopped, stop := context.WithCancel(t.Context())
	stop()
	_, err = reader.Read(stopped)
	require.ErrorIs(t, err, context.Canceled)
	a.set("/subscriptions", someSubscribers)
	reader.timeout = time.Minute
	_, err = reader.Read(t.Context())
	require.NoError(t, err, "and comes back")
}

func TestMetricsThatHangHoldUpNothing(t *testing.T) {
	a, reader := newBus(t, "the-root-key")
	a.set("/metrics", "hang")
	var s Snapshot
	err := errors.New("not read")
	// A machine that is slow, or stalls, may need more time for all the rest.
	for reader.timeout = 200 * time.Millisecond; err != nil && reader.timeout < time.Minute; reader.timeout *= 4 {
		s, err = reader.Read(t.Context())
	}
	require.NoError(t, err)
	assert.Equal(t, "shop", s.Subscribers[0].Name)
	assert.Equal(t, []string{fmt.Sprintf("The bus's metrics are missing: no answer within %v.", reader.timeout/4/2)}, s.Warnings)
}
