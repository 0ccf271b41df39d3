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
			posting.Go(func() { assert.NoError(t, c.Post(t.Context(), request(e.url)).Err) })
		}
		posting.Wait()
		require.Eventually(t, func() bool { return e.open.Load() <= maxIdlePerHost }, soon, time.Millisecond)
		assert.EqualValues(t, maxIdlePerHost, e.open.Load())
		c.Close()
		require.Eventually(t, func() bool { return e.open.Load() == 0 }, soon, time.Millisecond)
	})
}

func TestAConnectionThatFailedIsClosed(t *testing.T) {
	eachProtocol(t, func(t *testing.T, http2 bool) {
		status := http.StatusOK
		e := newEndpoint(t, http2, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) })
		c := newClient(t)
		for i, s := range []int{200, 200, 500, 200, 302, 200} {
			status = s
			a := post(t, c, e.url)
			assert.Equal(t, s, a.Status)
			assert.Equal(t, s == 200, a.Err == nil)
			opened := []int64{1, 1, 1, 2, 2, 3}[i]
			assert.Equal(t, opened, e.opened.Load(), "request %d", i)
			if s != 200 {
				require.Eventually(t, func() bool { return e.open.Load() == 0 }, soon, time.Millisecond)
			}
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
