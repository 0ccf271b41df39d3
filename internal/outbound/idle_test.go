package outbound_test

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/outbound"
)

func TestIdleConnectionsAreBoundedInAll(t *testing.T) {
	eachProtocol(t, func(t *testing.T, http2 bool) {
		const hosts, maxIdle = 12, 5
		c := newClient(t, func(config *outbound.Config) { config.MaxIdle = maxIdle })
		var endpoints []*endpoint
		for range hosts {
			e := newEndpoint(t, http2, func(http.ResponseWriter, *http.Request) {})
			acknowledged(t, c, e.url)
			endpoints = append(endpoints, e)
		}
		for i, e := range endpoints { // those used last are kept
			want := int64(0)
			if i >= hosts-maxIdle {
				want = 1
			}
			require.Eventually(t, func() bool { return e.open.Load() == want }, soon, time.Millisecond, "%d", i)
		}
		acknowledged(t, c, endpoints[hosts-maxIdle].url)
		assert.EqualValues(t, 1, endpoints[hosts-maxIdle].opened.Load(), "it is used again")
	})
}

func TestIdleConnectionsAreBoundedByHost(t *testing.T) {
	eachProtocol(t, func(t *testing.T, http2 bool) {
		const atOnce, maxIdlePerHost = 10, 4
		var arrived sync.WaitGroup
		arrived.Add(atOnce)
		e := newEndpoint(t, http2, func(http.ResponseWriter, *http.Request) {
			arrived.Done()
			arrived.Wait()
		})
		c := newClient(t, func(config *outbound.Config) { config.MaxIdle = 100 })
		var posting sync.WaitGroup
		for range atOnce {
			posting.Go(func() { assert.NoError(t, c.Send(t.Context(), request(e.url)).Err) })
		}
		posting.Wait()
		require.Eventually(t, func() bool { return e.open.Load() <= maxIdlePerHost }, soon, time.Millisecond)
		assert.EqualValues(t, maxIdlePerHost, e.open.Load())
		c.Close()
		require.Eventually(t, func() bool { return e.open.Load() == 0 }, soon, time.Millisecond)
	})
}

func TestAConnectionToAnEndpointThatFailedIsClosed(t *testing.T) {
	eachProtocol(t, func(t *testing.T, http2 bool) {
		status := http.StatusOK
		e := newEndpoint(t, http2, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = w.Write(bytes.Repeat([]byte("why "), 1000))
		})
		c, r := newClient(t), request(e.url)
		r.KeepBody = func(int) int { return 256 }
		for i, test := range []struct {
			status       int
			open, opened int64
		}{
			{200, 1, 1},
			{422, 1, 1}, // it refused a batch
			{500, 1, 1},
			{200, 1, 1},
			{503, 0, 1},
			{200, 1, 2},
			{302, 0, 2},
			{200, 1, 3},
		} {
			status = test.status
			a := c.Send(t.Context(), r)
			assert.Equal(t, status, a.Status)
			assert.Equal(t, test.opened, e.opened.Load(), "request %d", i)
			require.Eventually(t, func() bool { return e.open.Load() == test.open }, soon, time.Millisecond)
		}
	})
}

// TestAnIdleConnectionThatIsClosedIsReplaced has the other side close connections that were used
// before: only when the next request has arrived, and then at once.
func TestAnIdleConnectionThatIsClosedIsReplaced(t *testing.T) {
	const answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
	var requests atomic.Int64
	late := rawReceiver(t, func(_ int64, conn net.Conn, r *bufio.Reader) {
		if readRequest(r) == nil {
			requests.Add(1)
			_, _ = io.WriteString(conn, answer)
			_ = readRequest(r)
		}
	})
	c := newClient(t)
	for i := range 3 {
		a := post(t, c, late)
		require.NoError(t, a.Err)
		assert.Equal(t, i > 0, a.Reused, "request %d", i)
		assert.True(t, a.Connected)
	}
	assert.EqualValues(t, 3, requests.Load())

	eachProtocol(t, func(t *testing.T, http2 bool) {
		e := newEndpoint(t, http2, func(http.ResponseWriter, *http.Request) {})
		c := newClient(t)
		for range 3 {
			acknowledged(t, c, e.url)
			e.server.CloseClientConnections()
		}
		assert.EqualValues(t, 3, e.opened.Load())
	})
}

// TestARequestToBeSentOnceIsNotRepeated has the other side close each connection when its second
// request has arrived: then nobody knows whether that has been acted on.
func TestARequestToBeSentOnceIsNotRepeated(t *testing.T) {
	var requests atomic.Int64
	url := rawReceiver(t, func(_ int64, conn net.Conn, r *bufio.Reader) {
		for first := true; readRequest(r) == nil; first = false {
			requests.Add(1)
			if !first {
				return
			}
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
		}
	})
	c, r := newClient(t), request(url)
	require.NoError(t, c.Send(t.Context(), r).Err)
	r.Once = true
	for range 2 {
		a := c.Send(t.Context(), r)
		require.NoError(t, a.Err)
		assert.False(t, a.Reused)
		assert.True(t, a.Connected)
	}
	assert.EqualValues(t, 3, requests.Load())
	r.Once = false
	assert.True(t, c.Send(t.Context(), r).Reused, "others may reuse its connection")
	assert.EqualValues(t, 5, requests.Load(), "and are repeated")
}

func TestWithoutAUserNothingIsSentByBasic(t *testing.T) {
	header := make(chan http.Header, 1)
	e := newEndpoint(t, false, func(_ http.ResponseWriter, r *http.Request) { header <- r.Header })
	r := request(e.url)
	r.User, r.Password = "", ""
	require.NoError(t, newClient(t).Send(t.Context(), r).Err)
	assert.NotContains(t, <-header, "Authorization")
}

func TestConnectionsAreReused(t *testing.T) {
	eachProtocol(t, func(t *testing.T, http2 bool) {
		e := newEndpoint(t, http2, func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write(bytes.Repeat([]byte("thank you "), 1000))
		})
		c := newClient(t)
		for i := range 5 {
			a := post(t, c, e.url)
			require.NoError(t, a.Err)
			assert.Equal(t, i > 0, a.Reused, "request %d", i)
			assert.Equal(t, i == 0, a.Connected, "request %d", i)
		}
		assert.EqualValues(t, 1, e.opened.Load())
	})
}
