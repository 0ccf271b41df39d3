package app_test

import (
	"log/slog"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/app"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store"
)

// TestNothingIsAcceptedOnAnUnfinishedCopy also if Redis is away as web starts: until it answers,
// clients get 503, and then web ends.
func TestNothingIsAcceptedOnAnUnfinishedCopy(t *testing.T) {
	server := rdbtest.Real(t)
	require.NoError(t, server.Raw.Set(t.Context(), "copying", 1, 0).Err())
	server.Freeze(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	config, err := app.LoadConfig(func(name string) string {
		return map[string]string{"ROUTEMASTER_REDIS_URL": rdbtest.Hurried(server.URL), "ROUTEMASTER_ROOT_KEY": "a-key-for-the-test", "FORCE_SSL": "false"}[name]
	})
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() { served <- app.ServeWeb(t.Context(), config, slog.New(slog.DiscardHandler), listener) }()
	for path, want := range map[string]int{"/health": http.StatusOK, "/topics": http.StatusServiceUnavailable} {
		var status int
		require.Eventually(t, func() bool {
			resp, err := http.Get("http://" + listener.Addr().String() + path)
			if err == nil {
				status = resp.StatusCode
				_ = resp.Body.Close()
			}
			return err == nil
		}, time.Minute, time.Millisecond)
		assert.Equal(t, want, status, path)
	}
	server.Thaw(t)
	require.ErrorIs(t, <-served, store.ErrCopying)
}
