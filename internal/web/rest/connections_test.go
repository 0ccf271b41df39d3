package rest

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestConnectionsHaveBounds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ files, perAddress, wantAll, wantPeer int }{
		{1024, 0, 896, 672}, {20_000, 0, 17_500, 13_125}, {100, 0, 50, 38}, {1024, 10, 896, 10}, {1, 0, 1, 1},
		{0, 0, 1 << 30, 3 << 28},
	} {
		all, peer := NewConnections(c.files, c.perAddress, nil).Max()
		assert.Equal(t, []int{c.wantAll, c.wantPeer}, []int{all, peer}, c)
	}
}

// fakeConn is a connection from an address.
type fakeConn struct {
	net.Conn
	from   string
	closed bool
}

func (f *fakeConn) RemoteAddr() net.Addr {
	return &net.TCPAddr{IP: net.ParseIP(f.from), Port: 1}
}

func (f *fakeConn) Close() error {
	f.closed = true
	return nil
}

func TestTheConnectionThatIsIdleLongestIsClosed(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	c := NewConnections(0, 0, slog.New(slog.NewTextHandler(&log, nil)))
	c.max, c.maxPeer = 5, 3
	dial := func(from string) *fakeConn {
		conn := &fakeConn{from: from}
		c.Changed(conn, http.StateNew)
		return conn
	}
	end := func(conn *fakeConn) { c.Changed(conn, http.StateClosed) }

	a1, a2, a3 := dial("192.0.2.1"), dial("192.0.2.1"), dial("192.0.2.1")
	c.Changed(a1, http.StateActive)
	c.Changed(a1, http.StateIdle) // the latest now
	b1 := dial("2001:db8::1")
	a4 := dial("192.0.2.1")
	assert.True(t, a2.closed, "the idlest of the address that has too many")
	end(a2)
	b2 := dial("2001:db8::2")
	assert.False(t, a1.closed || a3.closed || a4.closed || b1.closed || b2.closed)
	b3 := dial("2001:db8::3")
	assert.True(t, a3.closed, "the idlest of all")
	end(a3)
	for _, conn := range []*fakeConn{a1, a4, b1, b2, b3} {
		c.Changed(conn, http.StateActive)
	}
	other := dial("192.0.2.2")
	assert.True(t, other.closed, "no other is idle")
	c.Changed(other, http.StateActive)
	end(other)
	assert.False(t, a1.closed || a4.closed || b1.closed || b2.closed || b3.closed, "requests are served to their end")
	assert.Equal(t, 1, bytes.Count(log.Bytes(), []byte("too many connections")), "a burst is logged once")
	for _, conn := range []*fakeConn{a1, a4, b1, b2, b3} {
		end(conn)
	}
	assert.Empty(t, c.open)
	assert.Empty(t, c.peers)
	assert.Zero(t, c.idle.Len())
}

// TestIdleConnectionsKeepNobodyOut opens far more connections than there may be, and sends nothing:
// with TLS not even a handshake.
func TestIdleConnectionsKeepNobodyOut(t *testing.T) {
	t.Parallel()
	dial := func(address string) (net.Conn, error) { return net.Dial("tcp", address) }
	t.Run("plain", func(t *testing.T) { t.Parallel(); testIdleConnections(t, nil, dial) })
	secure := func(address string) (net.Conn, error) {
		return tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true})
	}
	t.Run("TLS", func(t *testing.T) { t.Parallel(); testIdleConnections(t, newCertificate(t), secure) })
}

func testIdleConnections(t *testing.T, certificate *Certificate, dial func(address string) (net.Conn, error)) {
	connections := NewConnections(0, 0, slog.New(slog.DiscardHandler))
	connections.max, connections.maxPeer = 10, 8
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	ran := make(chan error)
	handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	go func() { ran <- Run(ctx, listener, handler, certificate, connections, slog.New(slog.DiscardHandler)) }()

	var idle []net.Conn
	for range 50 {
		conn, err := net.Dial("tcp", listener.Addr().String())
		require.NoError(t, err)
		idle = append(idle, conn)
	}
	conn, err := dial(listener.Addr().String())
	require.NoError(t, err)
	_, err = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
	require.NoError(t, err)
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	assert.Equal(t, http.StatusNoContent, resp.StatusCode)
	require.NoError(t, resp.Body.Close())
	for _, first := range idle[:40] {
		require.NoError(t, first.SetReadDeadline(time.Now().Add(time.Minute)))
		_, err := first.Read(make([]byte, 1))
		require.Error(t, err, "the server has closed it")
	}
	connections.mu.Lock()
	assert.LessOrEqual(t, len(connections.open), 8)
	connections.mu.Unlock()
	for _, conn := range append(idle, conn) {
		require.NoError(t, conn.Close())
	}
	stop()
	require.NoError(t, <-ran)
}
