package topics_test

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
	"routemaster/client/topics"
)

func TestATopicIsReadAsTheBusWritesIt(t *testing.T) {
	const text = `{"name":"widgets","publisher":"warehouse","events":7,"last_event":{"url":"https://x.example/","data":{"n":9007199254740993}},
		"subscribers":[{"name":"shop","health_points":98,"queued":3,"oldest":5},{"name":"spare","health_points":100,"queued":0,"oldest":null}]}`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		assert.Equal(t, "/topics/a%2Fb", r.URL.EscapedPath())
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, text)
	}))
	t.Cleanup(server.Close)
	c, err := client.New(server.URL, "shop--1")
	require.NoError(t, err)
	topic, err := topics.Get(t.Context(), c, "a/b")
	require.NoError(t, err)
	assert.Equal(t, client.Topic{Name: "widgets", Publisher: "warehouse", Events: 7}, topic.Topic)
	assert.Equal(t, []topics.Subscriber{
		{Name: "shop", Health: 98, Queued: 3, Oldest: subscriber.Time{Time: time.UnixMilli(5)}}, {Name: "spare", Health: 100},
	}, topic.Subscribers)
	again, err := json.Marshal(topic)
	require.NoError(t, err)
	assert.JSONEq(t, text, string(again))
	assert.Contains(t, string(again), "9007199254740993", "large numbers keep their digits")
}
