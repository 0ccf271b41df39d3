package telemetry

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestProfilesAreOnPrivateAddressesOnly listens on all addresses of the host too, and without being
// asked for profiles.
func TestProfilesAreOnPrivateAddressesOnly(t *testing.T) {
	for _, c := range []struct {
		address  string
		profiles bool
		want     int
	}{{"127.0.0.1:0", true, http.StatusOK}, {"127.0.0.1:0", false, http.StatusNotFound}, {":0", true, http.StatusNotFound}} {
		address, want := c.address, c.want
		listener, err := net.Listen("tcp", address)
		require.NoError(t, err)
		ctx, stop := context.WithCancel(t.Context())
		served := make(chan error)
		go func() {
			served <- NewRegistry().Serve(ctx, listener, ServeOptions{Profiles: c.profiles}, slog.New(slog.DiscardHandler))
		}()
		_, port, err := net.SplitHostPort(listener.Addr().String())
		require.NoError(t, err)
		for path, want := range map[string]int{"/metrics": http.StatusOK, "/debug/pprof/": want, "/debug/pprof/cmdline": want} {
			resp, err := http.Get("http://127.0.0.1:" + port + path)
			require.NoError(t, err)
			_, _ = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
			assert.Equal(t, want, resp.StatusCode, "%s on %s", path, address)
		}
		http.DefaultClient.CloseIdleConnections()
		stop()
		require.NoError(t, <-served)
	}
	for ip, want := range map[string]bool{"127.0.0.1": true, "10.1.2.3": true, "192.168.0.1": true, "fd00::1": true, "::1": true, "8.8.8.8": false, "0.0.0.0": false} {
		assert.Equal(t, want, isPrivate(&net.TCPAddr{IP: net.ParseIP(ip)}), ip)
	}
}

func TestMetricsServesTheRuntimes(t *testing.T) {
	w := httptest.NewRecorder()
	NewRegistry().Handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "/metrics", nil))
	assert.Equal(t, 200, w.Code)
	assert.Contains(t, w.Header().Get("Content-Type"), "text/plain")
	assert.Contains(t, w.Body.String(), "\ngo_goroutines ")
}
