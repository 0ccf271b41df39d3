package subscriber_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/client"
	"routemaster/client/subscriber"
)

// connect starts a bus of a handler, and returns a client of it.
func connect(t *testing.T, bus http.HandlerFunc) *client.Client {
	t.Helper()
	server := httptest.NewServer(bus)
	t.Cleanup(server.Close)
	c, err := client.New(server.URL, "token")
	require.NoError(t, err)
	t.Cleanup(c.CloseIdleConnections)
	return c
}

func TestASubscriberIsShown(t *testing.T) {
	const answer = `{"topics":["widgets"],"callback":"https://shop.example/events","uuid":"a","timeout":500,"max":100,
		"max_bytes":null,"max_requests_per_minute":600,"max_events_per_minute":null,"lanes":8,"order_key":"/data/account","strict_order":true,"partial":false,
		"keep_age":60000,"keep_events":null,"gap_notices":true,"dead_letters":{"attempts":20,"age":259200000,"keep_events":10000,"keep_bytes":10000000,"keep_age":604800000},
		"log_attempts":"all","status":{"queued":7,"dead_letters":{"letters":1,"events":2,"bytes":3,"oldest_at":4},
		"health_points":98,"last_attempted_at":null,"paused_until":253402300799999,"throttled_until":8,"paced_until":null,"next_delivery_at":1700000000000,
		"gap":{"events":5,"batches":2,"since":6,"until":7,"reason":"retention"},"blocked":2,"replays":3,"signed":true,"new":1}}`
	s, err := subscriber.New(connect(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, answer) })).Info(t.Context())
	require.NoError(t, err)
	assert.Equal(t, 500*time.Millisecond, s.Timeout.Duration())
	assert.Equal(t, 600, s.MaxRequestsPerMinute)
	assert.True(t, s.StrictOrder)
	assert.Equal(t, 72*time.Hour, s.DeadLetters.Age.Duration())
	assert.Equal(t, time.UnixMilli(4), s.Status.DeadLetters.OldestAt.Time)
	assert.Equal(t, time.Minute, s.KeepAge.Duration())
	assert.Equal(t, 8, s.Lanes)
	assert.Equal(t, "/data/account", s.OrderKey)
	assert.Equal(t, 2, s.Status.Blocked)
	assert.EqualValues(t, 3, s.Status.Replays)
	assert.True(t, s.Status.Signed)
	assert.Equal(t, "retention", s.Status.Gap.Reason)
	assert.True(t, s.Status.LastAttemptedAt.IsZero())
	assert.True(t, s.Status.IsPausedForGood())
	assert.True(t, s.Status.IsPaused(time.Now()))
	assert.Equal(t, time.UnixMilli(1_700_000_000_000), s.Status.NextDeliveryAt.Time)

	again, err := json.Marshal(s)
	require.NoError(t, err)
	var read subscriber.Info
	require.NoError(t, json.Unmarshal(again, &read))
	assert.Equal(t, s, read)
	assert.JSONEq(t, strings.Replace(answer, `,"new":1`, "", 1), string(again))
}

// TestCallsAboutASubscriber checks the requests sent for the client itself and for another one.
func TestCallsAboutASubscriber(t *testing.T) {
	var sent []string
	c := connect(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		sent = append(sent, r.Method+" "+r.URL.Path+" "+string(body))
		_, _ = io.WriteString(w, `{"batch":"AAAABBBBCCCCDDDDEEEE","events":[{"topic":"widgets","type":"noop","url":"https://x.example/","t":1}]}`)
	})
	for prefix, s := range map[string]*subscriber.Subscriber{
		"/subscriber": subscriber.New(c), "/subscribers/shop:1": subscriber.Of(c, "shop:1"),
	} {
		sent = nil
		ctx := t.Context()
		require.NoError(t, s.Patch(ctx, map[string]any{"max_bytes": 1000, "dead_letters": nil}))
		require.NoError(t, s.Pause(ctx, time.Time{}))
		require.NoError(t, s.Pause(ctx, time.UnixMilli(5)))
		require.NoError(t, s.Resume(ctx))
		require.NoError(t, s.Retry(ctx))
		batch, err := s.Test(ctx)
		require.NoError(t, err)
		assert.Equal(t, "AAAABBBBCCCCDDDDEEEE", batch)
		shown, err := s.Batch(ctx, batch, 0)
		require.NoError(t, err)
		assert.Equal(t, "https://x.example/", shown.Events[0].URL)
		require.NoError(t, s.RemoveBatch(ctx, batch))
		assert.Equal(t, []string{
			"PATCH " + prefix + ` {"dead_letters":null,"max_bytes":1000}`,
			"POST " + prefix + "/pause {}", "POST " + prefix + `/pause {"until":5}`, "POST " + prefix + "/resume ", "POST " + prefix + "/retry ",
			"POST " + prefix + "/test ", "GET " + prefix + "/batches/" + batch + " ", "DELETE " + prefix + "/batches/" + batch + " ",
		}, sent)
	}
}

// TestListsAreReadPageByPage reads from a bus whose pages have two elements.
func TestListsAreReadPageByPage(t *testing.T) {
	var queries []string
	s := subscriber.New(connect(t, func(w http.ResponseWriter, r *http.Request) {
		queries = append(queries, r.URL.RawQuery)
		var page int
		_, _ = fmt.Sscan(r.URL.Query().Get("after"), &page)
		if page < 2 {
			w.Header().Set("Link", fmt.Sprintf(`<%s?after=%d>; rel="next"`, r.URL.Path, page+1))
		}
		fmt.Fprintf(w, `[{"attempt":%d,"status":null},{"attempt":%d}]`, 2*page, 2*page+1)
	}))
	var got []int
	for attempt, err := range s.Attempts(t.Context(), subscriber.AttemptFilter{Batch: "b", Outcome: "failed"}) {
		require.NoError(t, err)
		got = append(got, attempt.Attempt)
	}
	assert.Equal(t, []int{0, 1, 2, 3, 4, 5}, got)
	assert.Equal(t, []string{
		"batch=b&limit=100&outcome=failed", "after=1&batch=b&limit=100&outcome=failed", "after=2&batch=b&limit=100&outcome=failed",
	}, queries)

	queries = nil
	for range s.Batches(t.Context()) {
		break
	}
	assert.Len(t, queries, 1, "no more is read than wanted")
	queries = nil
	last, err := s.LastAttempts(t.Context(), subscriber.AttemptFilter{Outcome: "failed"}, 2)
	require.NoError(t, err)
	assert.Len(t, last, 2)
	oldest, err := s.OldestBatches(t.Context(), 2)
	require.NoError(t, err)
	assert.Len(t, oldest, 2)
	assert.Equal(t, []string{"limit=2&outcome=failed", "limit=2"}, queries)
	refusing := connect(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) })
	for _, err := range subscriber.New(refusing).Batches(t.Context()) {
		var refused *client.Error
		assert.ErrorAs(t, err, &refused)
	}
}
