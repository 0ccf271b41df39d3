package subscriber_test

import (
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/client/subscriber"
)

func TestReplays(t *testing.T) {
	var requests []string
	s := subscriber.New(connect(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		requests = append(requests, r.Method+" "+r.URL.Path+" "+string(body))
		switch r.Method {
		case http.MethodPost:
			w.WriteHeader(http.StatusAccepted)
			_, _ = io.WriteString(w, `{"id":"AAAABBBBCCCCDDDDEEEE","topic":"widgets","from":4,"to":9,"events":6}`)
		case http.MethodGet:
			_, _ = io.WriteString(w, `[{"id":"AAAABBBBCCCCDDDDEEEE","topic":"widgets","from":4,"to":9,"next":7,"copied":2,"skipped":1,
				"state":"running","created_at":5,"error":null}]`)
		default:
			w.WriteHeader(http.StatusNoContent)
		}
	}))
	started, err := s.StartReplay(t.Context(), "widgets", subscriber.ReplayRange{From: 1, Until: time.UnixMilli(7)})
	require.NoError(t, err)
	assert.Equal(t, subscriber.StartedReplay{ID: "AAAABBBBCCCCDDDDEEEE", Topic: "widgets", From: 4, To: 9, Events: 6}, started)
	_, err = s.StartReplay(t.Context(), "widgets", subscriber.ReplayRange{Since: time.UnixMilli(0), To: 9})
	require.NoError(t, err)
	all, err := s.Replays(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []subscriber.Replay{{
		ID: "AAAABBBBCCCCDDDDEEEE", Topic: "widgets", From: 4, To: 9, Next: 7, Copied: 2, Skipped: 1, State: "running",
		CreatedAt: subscriber.Time{Time: time.UnixMilli(5)},
	}}, all)
	require.NoError(t, s.CancelReplay(t.Context(), "a/b"))
	assert.Equal(t, []string{
		`POST /subscriber/replays {"topic":"widgets","from":1,"until":7}`,
		`POST /subscriber/replays {"topic":"widgets","since":0,"to":9}`,
		"GET /subscriber/replays ", "DELETE /subscriber/replays/a/b ",
	}, requests)
}
