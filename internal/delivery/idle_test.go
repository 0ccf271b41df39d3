package delivery

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/store/storetest"
)

// startTransport starts a transport and a server that counts its open connections.
func startTransport(t *testing.T, http2 bool) (tr *transport, request func() error, open *atomic.Int64, log *storetest.Buffer) {
	t.Helper()
	open, log = &atomic.Int64{}, &storetest.Buffer{}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	server.EnableHTTP2 = http2
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			open.Add(1)
		case http.StateClosed:
			open.Add(-1)
		}
	}
	server.StartTLS()
	t.Cleanup(server.Close)
	tr = newTransport(Config{ConnectTimeout: time.Minute, MaxIdle: 4}, slog.New(slog.NewTextHandler(log, nil)))
	t.Cleanup(tr.close)
	return tr, func() error {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, strings.NewReader("x"))
		require.NoError(t, err)
		_, err = tr.send(req, time.Minute)
		return err
	}, open, log
}

func TestConnectionsAreNotIdleForLong(t *testing.T) {
	assert.Equal(t, 30*time.Second, newTransport(Config{}, slog.Default()).idle.ttl)
	for _, http2 := range []bool{false, true} {
		tr, request, open, _ := startTransport(t, http2)
		tr.idle.grace, tr.idle.ttl = 5*time.Millisecond, 10*time.Millisecond
		require.NoError(t, request())
		require.Eventually(t, func() bool { return open.Load() == 0 }, time.Minute, time.Millisecond)
		assert.Zero(t, tr.idle.all.Len())
		assert.Empty(t, tr.idle.byHost)
	}
}

// TestOutOfDescriptors has no descriptor be left for the first tries to connect.
func TestOutOfDescriptors(t *testing.T) {
	tr, request, open, log := startTransport(t, false)
	require.NoError(t, request())
	dial := tr.dialer.DialContext
	left := 0
	tr.dialer.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		if left--; left >= 0 {
			return nil, &net.OpError{Op: "dial", Err: os.NewSyscallError("socket", syscall.EMFILE)}
		}
		return dial(ctx, network, address)
	}
	left = 1
	conn, err := tr.connect(t.Context(), "http", "127.0.0.1:1") // another host
	require.Error(t, err, "nobody listens there")
	require.Nil(t, conn)
	require.Eventually(t, func() bool { return open.Load() == 0 }, time.Minute, time.Millisecond, "idle connections are given up")
	left = 1
	require.NoError(t, request(), "the second try succeeds")
	tr.idle.clear()
	left = 2
	require.ErrorIs(t, request(), syscall.EMFILE)
	require.Equal(t, 1, strings.Count(log.String(), "\n"), "it is said once in 10 s: %s", log)
	assert.Contains(t, log.String(), `level=WARN msg="out of file descriptors; raise the limit of open files" doing="connecting to a callback" times=1`)
}

func TestAddressOf(t *testing.T) {
	for text, want := range map[string]string{
		"https://Example.COM/x": "example.com:443", "https://example.com:8443": "example.com:8443", "http://a_b.example": "a_b.example:80",
		"https://[::1]/": "[::1]:443", "https://b%C3%BCcher.example": "xn--bcher-kva.example:443",
	} {
		u, err := url.Parse(text)
		require.NoError(t, err)
		got, err := addressOf(u)
		require.NoError(t, err)
		assert.Equal(t, want, got)
	}
	_, err := addressOf(&url.URL{Scheme: "https", Host: "b\u202e\u00fc.example"})
	assert.Error(t, err)
	assert.False(t, errors.Is(err, syscall.EMFILE))
}
