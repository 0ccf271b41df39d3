package workers_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/client"
	"routemaster/client/subscriber"
	"routemaster/client/workers"
)

func TestWorkIsReadAsTheBusWritesIt(t *testing.T) {
	const batch = `{"id":"b1","subscriber":"shop","created_at":5,"attempts":1,"events":7}`
	answers := map[string]string{
		"/threads": `{"active":2,"silent":1,"running":[{"queue":"main","job":"batch","arguments":["b1"],"due_at":null,"thread":"w1","batch":` + batch + `}],"more":3}`,
		"/queues/a%2Fb?limit=9": `[{"queue":"jobs","job":"job","arguments":["job_1"],"due_at":6,"thread":null,"batch":null},
			{"queue":"jobs","job":null,"arguments":[],"due_at":null,"thread":null,"batch":null}]`,
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, answers[r.URL.RequestURI()])
	}))
	t.Cleanup(server.Close)
	c, err := client.New(server.URL, "root")
	require.NoError(t, err)
	threads, err := workers.Get(t.Context(), c)
	require.NoError(t, err)
	assert.Equal(t, workers.Threads{Active: 2, Silent: 1, More: 3, Running: []workers.Job{{
		Queue: "main", Job: "batch", Arguments: []string{"b1"}, Thread: "w1",
		Batch: &workers.Batch{ID: "b1", Subscriber: "shop", CreatedAt: subscriber.Time{Time: time.UnixMilli(5)}, Attempts: 1, Events: 7},
	}}}, threads)
	again, err := json.Marshal(threads)
	require.NoError(t, err)
	assert.JSONEq(t, `{"active":2,"silent":1,"running":[{"queue":"main","job":"batch","arguments":["b1"],"thread":"w1","batch":`+batch+`}],"more":3}`, string(again))
	next, err := workers.Next(t.Context(), c, "a/b", 9)
	require.NoError(t, err)
	assert.Equal(t, []workers.Job{
		{Queue: "jobs", Job: "job", Arguments: []string{"job_1"}, DueAt: subscriber.Time{Time: time.UnixMilli(6)}}, {Queue: "jobs", Arguments: []string{}},
	}, next)
}
