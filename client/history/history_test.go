package history_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/client"
	"routemaster/client/history"
	"routemaster/client/subscriber"
)

// connect starts a bus of a handler, and returns the history of a topic of it.
func connect(t *testing.T, bus http.HandlerFunc) *history.History {
	t.Helper()
	server := httptest.NewServer(bus)
	t.Cleanup(server.Close)
	c, err := client.New(server.URL, "token")
	require.NoError(t, err)
	t.Cleanup(c.CloseIdleConnections)
	return history.Of(c, "widgets")
}

func TestAHistoryIsKept(t *testing.T) {
	var sent []string
	h := connect(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		sent = append(sent, r.Method+" "+r.URL.Path+" "+string(body))
		_, _ = io.WriteString(w, `{"events":null,"age":60000,"bytes":5000,"first":3,"last":9,"oldest_at":7,"stored_events":7,"stored_bytes":99,"new":1}`)
	})
	ctx := t.Context()
	require.NoError(t, h.Put(ctx, history.Limits{Events: 5, Age: subscriber.Milliseconds(time.Hour.Milliseconds())}))
	require.NoError(t, h.Put(ctx, history.Limits{Bytes: 1000}))
	require.NoError(t, h.Delete(ctx))
	info, err := h.Get(ctx)
	require.NoError(t, err)
	assert.Equal(t, history.Info{
		Limits: history.Limits{Age: 60000, Bytes: 5000}, First: 3, Last: 9,
		OldestAt: subscriber.Time{Time: time.UnixMilli(7)}, StoredEvents: 7, StoredBytes: 99,
	}, info)
	text, err := json.Marshal(info)
	require.NoError(t, err)
	assert.JSONEq(t, `{"age":60000,"bytes":5000,"first":3,"last":9,"oldest_at":7,"stored_events":7,"stored_bytes":99}`, string(text))
	assert.Equal(t, []string{
		`PUT /topics/widgets/history {"events":5,"age":3600000}`, `PUT /topics/widgets/history {"bytes":1000}`,
		"DELETE /topics/widgets/history ", "GET /topics/widgets/history ",
	}, sent)
}

// TestEventsAreReadPageByPage has a bus that sends two events at once, of positions 4 to 7.
func TestEventsAreReadPageByPage(t *testing.T) {
	var queries []string
	h := connect(t, func(w http.ResponseWriter, r *http.Request) {
		queries = append(queries, r.URL.RawQuery)
		from := 4
		_, _ = fmt.Sscan(r.URL.Query().Get("from"), &from)
		fmt.Fprintf(w, `{"first":4,"last":7,"next":%d,"events":[{"position":%d,"received_at":5,"topic":"widgets","type":"noop",
			"url":"https://x.example/","t":6,"data":{"a":1.0}},{"position":%d,"received_at":5,"unreadable":true}]}`, from+2, from, from+1)
	})
	var got []int64
	for event, err := range h.Events(t.Context(), history.Start{Since: time.UnixMilli(1000)}) {
		require.NoError(t, err)
		got = append(got, event.Position)
		assert.Equal(t, time.UnixMilli(5), event.ReceivedAt)
		text, err := json.Marshal(event)
		require.NoError(t, err)
		if event.Unreadable {
			assert.Equal(t, fmt.Sprintf(`{"position":%d,"received_at":5,"unreadable":true}`, event.Position), string(text))
			continue
		}
		assert.Equal(t, "https://x.example/", event.URL)
		assert.Equal(t, fmt.Sprintf(`{"position":%d,"received_at":5,"topic":"widgets","type":"noop","url":"https://x.example/","t":6,"data":{"a":1.0}}`,
			event.Position), string(text))
	}
	assert.Equal(t, []int64{4, 5, 6, 7}, got)
	assert.Equal(t, []string{"limit=1000&since=1000", "from=6&limit=1000"}, queries)

	queries = nil
	for range h.Events(t.Context(), history.Start{Position: 3}) {
		break
	}
	assert.Equal(t, []string{"from=3&limit=1000"}, queries, "no more is read than wanted")
	_, err := h.Read(t.Context(), history.Start{Position: -1}, 1)
	assert.Error(t, err)
	refusing := connect(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) })
	for _, err := range refusing.Events(t.Context(), history.Start{}) {
		var refused *client.Error
		assert.ErrorAs(t, err, &refused)
	}
}
