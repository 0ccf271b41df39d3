package web_test

import (
	"context"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store/storetest"
)

func TestRunAnswersWhatItHasAccepted(t *testing.T) {
	a := newAPI(t, rdbtest.Embedded(t))
	for _, name := range []bus.JobName{"x", "y"} { // so that /pulse/scaling takes a second
		_, err := storetest.NewQueue(a.First(), 1).Enqueue(t.Context(), bus.QueueMain, bus.Job{Name: name})
		require.NoError(t, err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	ran := make(chan error)
	started := countAccepted{Listener: listener}
	go func() { ran <- a.Server.Run(ctx, &started) }()

	conn, err := net.Dial("tcp", listener.Addr().String())
	require.NoError(t, err)
	defer conn.Close()
	_, err = io.WriteString(conn, "GET /pulse/scaling HTTP/1.1\r\nHost: x\r\nAuthorization: Basic YWxpY2UtLTE6\r\nConnection: close\r\n\r\n")
	require.NoError(t, err)
	require.Eventually(t, func() bool { return started.Load() > 0 }, time.Minute, time.Millisecond)
	stop()
	text, err := io.ReadAll(conn)
	require.NoError(t, err)
	assert.Contains(t, string(text), "HTTP/1.1 204")
	require.NoError(t, <-ran)
	_, err = net.Dial("tcp", listener.Addr().String())
	assert.Error(t, err)
}

// countAccepted counts the requests whose first bytes have been read.
type countAccepted struct {
	net.Listener
	atomic.Int32
}

func (l *countAccepted) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &countReads{conn, l}, nil
}

type countReads struct {
	net.Conn
	count *countAccepted
}

func (c *countReads) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 {
		c.count.Add(1)
	}
	return n, err
}
