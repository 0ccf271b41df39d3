package outbound

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
)

// startClient starts a client and a server that counts its open connections.
func startClient(t *testing.T, http2 bool) (c *Client, post func() Attempt, open *atomic.Int64) {
	t.Helper()
	open = &atomic.Int64{}
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
	c = New(Config{ConnectTimeout: time.Minute, Timeout: time.Minute, MaxIdle: 4}, time.Now)
	t.Cleanup(c.Close)
	body := func() io.ReadCloser { return io.NopCloser(strings.NewReader("x")) }
	return c, func() Attempt {
		return c.Send(t.Context(), Request{URL: server.URL, Body: body, Length: 1})
	}, open
}

func TestConnectionsAreNotIdleForLong(t *testing.T) {
	assert.Equal(t, 30*time.Second, New(Config{}, time.Now).idle.ttl)
	for _, http2 := range []bool{false, true} {
		c, post, open := startClient(t, http2)
		c.idle.grace, c.idle.ttl = 5*time.Millisecond, 10*time.Millisecond
		require.NoError(t, post().Err)
		require.Eventually(t, func() bool { return open.Load() == 0 }, time.Minute, time.Millisecond)
		assert.Zero(t, c.idle.all.Len())
		assert.Empty(t, c.idle.byHost)
	}
}

// TestOutOfFiles leaves no descriptor for the first attempts to connect.
func TestOutOfFiles(t *testing.T) {
	c, post, open := startClient(t, false)
	require.NoError(t, post().Err)
	left := 0
	c.dialer.ControlContext = func(context.Context, string, string, syscall.RawConn) error {
		if left--; left >= 0 {
			return os.NewSyscallError("socket", syscall.EMFILE)
		}
		return nil
	}
	var a Attempt
	left = 1
	conn, err := c.connect(t.Context(), "http", "127.0.0.1:1", &a) // another host
	require.Error(t, err, "nobody listens there")
	require.Nil(t, conn)
	require.ErrorIs(t, a.OutOfFiles, syscall.EMFILE)
	require.Eventually(t, func() bool { return open.Load() == 0 }, time.Minute, time.Millisecond, "idle connections are closed")

	left = 1
	a = post()
	require.NoError(t, a.Err, "the second try succeeds")
	require.ErrorIs(t, a.OutOfFiles, syscall.EMFILE)
	a = post()
	require.NoError(t, a.Err)
	require.NoError(t, a.OutOfFiles)

	c.idle.clear()
	left = 2
	a = post()
	require.ErrorIs(t, a.Err, syscall.EMFILE)
	require.ErrorIs(t, a.OutOfFiles, syscall.EMFILE)
	require.Equal(t, bus.EndpointFailure, a.Failure())
}

func TestOutOfFilesIsRecognised(t *testing.T) {
	for _, c := range []struct{ err, want error }{
		{nil, nil},
		{errors.New("connection refused"), nil},
		{&net.OpError{Err: os.NewSyscallError("socket", syscall.ENFILE)}, syscall.ENFILE},
		{&net.DNSError{Err: "dial udp 192.0.2.1:53: socket: too many open files"}, syscall.EMFILE},
	} {
		assert.Equal(t, c.want, outOfFiles(c.err), "%v", c.err)
	}
}

func TestHostPort(t *testing.T) {
	for text, want := range map[string]string{
		"https://Example.COM/x": "example.com:443", "https://example.com:8443": "example.com:8443", "http://a_b.example": "a_b.example:80",
		"https://[::1]/": "[::1]:443", "https://b%C3%BCcher.example": "xn--bcher-kva.example:443",
	} {
		u, err := url.Parse(text)
		require.NoError(t, err)
		got, err := hostPort(u)
		require.NoError(t, err)
		assert.Equal(t, want, got)
	}
	_, err := hostPort(&url.URL{Scheme: "https", Host: "b\u202e\u00fc.example"})
	assert.Error(t, err)
}

// TestAHostIsNotInDoubtForever has the time pass for which none of its connections are kept.
func TestAHostIsNotInDoubtForever(t *testing.T) {
	c, post, _ := startClient(t, false)
	require.NoError(t, post().Err)
	host := c.idle.all.Front().Value.(*connection)
	c.idle.doubt(host.scheme, host.host)
	require.NoError(t, post().Err)
	assert.Zero(t, c.idle.all.Len())
	c.idle.doubted[origin{host.scheme, host.host}] = time.Now().Add(-time.Second)
	require.NoError(t, post().Err)
	assert.Equal(t, 1, c.idle.all.Len())
	assert.Empty(t, c.idle.doubted)
	for i := range maxHosts + 1 {
		c.idle.doubt("https", strconv.Itoa(i))
	}
	assert.Len(t, c.idle.doubted, 1)
}
