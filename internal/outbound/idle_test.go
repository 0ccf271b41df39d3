package outbound_test

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
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

// TestAnIdleConnectionThatIsClosedIsReplaced has the other side close connections at once that were
// used before. The next request is sent again though the goroutine that reads may not have seen it.
func TestAnIdleConnectionThatIsClosedIsReplaced(t *testing.T) {
	eachProtocol(t, func(t *testing.T, http2 bool) {
		const times = 30
		e := newEndpoint(t, http2, func(http.ResponseWriter, *http.Request) {})
		c := newClient(t)
		for range times {
			acknowledged(t, c, e.url)
			e.server.CloseClientConnections()
		}
		assert.EqualValues(t, times, e.opened.Load())
	})
}

// closesAfter starts a server that answers the first requests over each connection, closes it
// without an answer when another has arrived, and counts requests.
func closesAfter(t *testing.T, answered int) (url string, requests *atomic.Int64) {
	requests = &atomic.Int64{}
	return rawReceiver(t, func(_ int64, conn net.Conn, r *bufio.Reader) {
		for i := 0; readRequest(r) == nil; i++ {
			requests.Add(1)
			if i == answered {
				return
			}
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
		}
	}), requests
}

// TestARequestThatMayHaveArrivedIsNotSentAgain has the other side close a connection when its
// second request has arrived. It may have acted on that, and may have closed because of it.
func TestARequestThatMayHaveArrivedIsNotSentAgain(t *testing.T) {
	url, requests := closesAfter(t, 1)
	c := newClient(t)
	for i, want := range []string{"", bus.ErrorReset, "", bus.ErrorReset} {
		a := post(t, c, url)
		require.Equal(t, want, a.Error, "request %d: %v", i, a.Err)
		assert.Equal(t, want != "", a.Reused)
		assert.False(t, a.Doubtful)
		assert.EqualValues(t, i+1, requests.Load())
	}
}

// TestFreshRequestsGetANewConnection has every second request over a connection be without an
// answer.
func TestFreshRequestsGetANewConnection(t *testing.T) {
	for _, r := range []outbound.Request{{Once: true}, {Fresh: true}} {
		url, requests := closesAfter(t, 1)
		c := newClient(t)
		require.NoError(t, c.Send(t.Context(), request(url)).Err)
		once, fresh := r.Once, r.Fresh
		for range 2 {
			r = request(url)
			r.Once, r.Fresh = once, fresh
			a := c.Send(t.Context(), r)
			require.NoError(t, a.Err)
			assert.False(t, a.Reused)
			assert.True(t, a.Connected)
		}
		assert.EqualValues(t, 3, requests.Load())
		assert.True(t, c.Send(t.Context(), request(url)).Reused, "others may reuse its connection")
	}
}

// TestSilenceOnAnIdleConnectionIsInDoubt has a server that is silent when a connection is used for
// the second time, though it answers over new ones.
func TestSilenceOnAnIdleConnectionIsInDoubt(t *testing.T) {
	var requests, open atomic.Int64
	url := rawReceiver(t, func(_ int64, conn net.Conn, r *bufio.Reader) {
		open.Add(1)
		defer open.Add(-1)
		for first := true; readRequest(r) == nil; first = false {
			requests.Add(1)
			if first {
				_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
			}
		}
	})
	c := newClient(t)
	fresh := request(url)
	fresh.Fresh = true
	for range 3 { // which leave three idle connections
		require.NoError(t, c.Send(t.Context(), fresh).Err)
	}
	r := request(url)
	r.Timeout = 50 * time.Millisecond
	a := c.Send(t.Context(), r)
	assert.Equal(t, bus.ErrorTimeout, a.Error)
	assert.EqualError(t, a.Err, "no answer within 50ms, over a connection that was used before")
	assert.True(t, a.Doubtful)
	assert.False(t, a.Connected, "it is not sent again")
	require.Eventually(t, func() bool { return open.Load() == 0 }, soon, time.Millisecond, "the host's other connections are closed")
	for range 3 {
		a = post(t, c, url)
		require.NoError(t, a.Err)
		assert.False(t, a.Reused, "none is kept for a while")
	}
}

// TestSilenceOfANewConnectionIsNotInDoubt has an endpoint hang.
func TestSilenceOfANewConnectionIsNotInDoubt(t *testing.T) {
	e := newEndpoint(t, false, hang)
	c := newClient(t, func(c *outbound.Config) { c.Timeout = 100 * time.Millisecond })
	a := post(t, c, e.url)
	assert.Error(t, a.Err)
	assert.False(t, a.Doubtful)
}

// TestAnAnswerBeforeTheBody has a server answer when it has read a request's header, read the body,
// and be silent from then on.
func TestAnAnswerBeforeTheBody(t *testing.T) {
	var requests atomic.Int64
	url := rawReceiver(t, func(_ int64, conn net.Conn, r *bufio.Reader) {
		for {
			req, err := http.ReadRequest(r)
			if err != nil {
				return
			}
			first := requests.Add(1) == 1
			if !first {
				_, _ = io.Copy(io.Discard, req.Body)
			}
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
			if first {
				_, _ = io.Copy(io.Discard, r)
			}
		}
	})
	c, r := newClient(t), request(url)
	answered := make(chan struct{}) // as the client sees it
	body := []io.Reader{
		strings.NewReader(strings.Repeat(" ", 20<<10)), readerFunc(func([]byte) (int, error) { <-answered; return 0, io.EOF }),
		strings.NewReader(strings.Repeat(" ", 20<<10)),
	}
	r.Body, r.Length = func() io.ReadCloser { return io.NopCloser(io.MultiReader(body...)) }, 40<<10
	a := c.Send(httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotFirstResponseByte: func() { close(answered) }}), r)
	require.NoError(t, a.Err)
	for i := range 2 {
		a = post(t, c, url)
		require.NoError(t, a.Err)
		assert.Equal(t, i == 1, a.Reused)
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }

// TestLargeRequestsReuseConnections posts bodies that take several writes to a server that reads
// them before it answers.
func TestLargeRequestsReuseConnections(t *testing.T) {
	eachProtocol(t, func(t *testing.T, http2 bool) {
		e := newEndpoint(t, http2, func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) })
		c, r := newClient(t), request(e.url)
		r.Body, r.Length = func() io.ReadCloser { return io.NopCloser(strings.NewReader(strings.Repeat(" ", 1<<20))) }, 1<<20
		for i := range 20 {
			a := c.Send(t.Context(), r)
			require.NoError(t, a.Err)
			assert.Equal(t, i > 0, a.Reused)
		}
	})
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
