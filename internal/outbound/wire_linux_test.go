package outbound

import (
	"context"
	"io"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestWhatASystemKnows gives the other side of a connection room for little of the written data,
// then reads it there, and at last closes the connection.
func TestWhatASystemKnows(t *testing.T) {
	little := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		return c.Control(func(fd uintptr) { _ = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 1024) })
	}}
	listener, err := little.Listen(context.Background(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	conn, err := net.Dial("tcp", listener.Addr().String())
	require.NoError(t, err)
	defer conn.Close()
	other, err := listener.Accept()
	require.NoError(t, err)
	defer other.Close()

	const length = 8 << 10
	w := newWire(conn)
	begun := w.mark()
	assert.True(t, w.isSending(length, begun), "nothing was written")
	_, err = w.Write(make([]byte, length))
	require.NoError(t, err)
	assert.True(t, w.isSending(length, begun), "the system has most of it")
	_, err = io.CopyN(io.Discard, other, length)
	require.NoError(t, err)
	eventually := func(what func() bool) { require.Eventually(t, what, time.Minute, time.Millisecond) }
	eventually(func() bool { return !w.isSending(length, begun) })
	assert.False(t, w.isClosed())
	require.NoError(t, other.Close())
	eventually(w.isClosed)
	assert.False(t, w.closed.Load(), "it is not read yet")
}
