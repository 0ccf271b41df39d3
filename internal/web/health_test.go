package web_test

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store/storetest"
	"routemaster/internal/web"
)

func TestPulseScalingIsSlowWhenThereIsMuchToDo(t *testing.T) {
	a := newAPI(t, rdbtest.Embedded(t))
	ctx := t.Context()
	pulse := func() time.Duration {
		return rdbtest.Took(func() { a.RequireDone(alice, "GET", "/pulse/scaling", "") })
	}
	rdbtest.Promptly(t, time.Second, pulse)
	for _, name := range []bus.JobName{"x", "y"} {
		_, err := storetest.NewQueue(a.First(), 1).Enqueue(ctx, bus.QueueMain, bus.Job{Name: name})
		require.NoError(t, err)
	}
	assert.GreaterOrEqual(t, pulse(), time.Second)
}

func TestStatus(t *testing.T) {
	a := newAPI(t, rdbtest.Embedded(t))
	got := a.Do("", "GET", "/", "")
	assert.Equal(t, 200, got.Status)
	assert.JSONEq(t, `{"status":"ok","state-machines":"/state-machines","version":"1.2.3"}`, got.Body)
}

// TestAWebThatWaitsSaysThatItIsOne: rtm health tells it from the web beside a worker that is dead.
func TestAWebThatWaitsSaysThatItIsOne(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- web.RunWaiting(ctx, listener, nil, slog.New(slog.DiscardHandler)) }()
	response, err := http.Get("http://" + listener.Addr().String() + "/health")
	require.NoError(t, err)
	defer response.Body.Close()
	assert.Equal(t, http.StatusOK, response.StatusCode)
	assert.Equal(t, "web", response.Header.Get("Routemaster-Program"))
	stop()
	assert.NoError(t, <-ended)
	_ = listener.Close()
}
