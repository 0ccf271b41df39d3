package delivery_test

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/delivery"
	"routemaster/internal/store"
)

// soon bounds what must happen; nothing waits that long unless it fails.
const soon = 30 * time.Second

var acknowledged = store.Outcome{Health: 1, Delivered: 2}

// endpoint is an HTTPS subscriber that counts its connections.
type endpoint struct {
	url          string
	opened, open atomic.Int64
	server       *httptest.Server
}

func newEndpoint(t *testing.T, http2 bool, handler http.HandlerFunc) *endpoint {
	t.Helper()
	e := &endpoint{server: httptest.NewUnstartedServer(handler)}
	e.server.EnableHTTP2 = http2
	e.server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	e.server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			e.opened.Add(1)
			e.open.Add(1)
		case http.StateClosed:
			e.open.Add(-1)
		}
	}
	e.server.StartTLS()
	t.Cleanup(e.server.Close)
	e.url = e.server.URL + "/events"
	return e
}

// eachProtocol runs a test with HTTP/1.1 and with HTTP/2.
func eachProtocol(t *testing.T, test func(t *testing.T, http2 bool)) {
	for _, http2 := range []bool{false, true} {
		t.Run(map[bool]string{false: "HTTP/1.1", true: "HTTP/2"}[http2], func(t *testing.T) { test(t, http2) })
	}
}

// deliver delivers, and fails the test should that take as long as no thread may be held.
func deliver(t *testing.T, d *delivery.Deliverer, url string) (outcome store.Outcome) {
	t.Helper()
	task, done := batch(t, url), make(chan store.Outcome, 1)
	go func() { done <- d.Deliver(t.Context(), task) }()
	select {
	case outcome = <-done:
	case <-time.After(soon):
		t.Fatal("the delivery does not end")
	}
	return outcome
}

// rawReceiver starts an HTTPS subscriber that reads a request and then does as it likes with its connection.
func rawReceiver(t *testing.T, serve func(number int64, conn net.Conn, r *bufio.Reader)) (url string) {
	t.Helper()
	certificate := httptest.NewUnstartedServer(nil)
	certificate.StartTLS()
	config := &tls.Config{Certificates: certificate.TLS.Certificates}
	certificate.Close()
	listener, err := tls.Listen("tcp", "127.0.0.1:0", config)
	require.NoError(t, err)
	var serving sync.WaitGroup
	t.Cleanup(func() {
		_ = listener.Close()
		serving.Wait()
	})
	serving.Go(func() {
		for number := int64(1); ; number++ {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			serving.Go(func() {
				defer conn.Close()
				serve(number, conn, bufio.NewReader(conn))
			})
		}
	})
	return "https://" + listener.Addr().String()
}

// readRequest reads a request with its body.
func readRequest(r *bufio.Reader) error {
	req, err := http.ReadRequest(r)
	if err == nil {
		_, err = io.Copy(io.Discard, req.Body)
	}
	return err
}

// TestASwitchOfProtocolsFails wants a thread back from a subscriber that answers 101 and keeps the connection open.
func TestASwitchOfProtocolsFails(t *testing.T) {
	closed := make(chan error, 1)
	url := rawReceiver(t, func(_ int64, conn net.Conn, r *bufio.Reader) {
		if readRequest(r) != nil {
			return
		}
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
		_, err := r.ReadByte()
		closed <- err
	})
	d, log := deliverer(t)
	outcome := deliver(t, d, url)
	assert.Equal(t, -2, outcome.Health)
	assert.False(t, outcome.RetryAt.IsZero())
	assert.Contains(t, log.String(), " status=101 ")
	select {
	case err := <-closed:
		assert.Error(t, err)
	case <-time.After(soon):
		t.Fatal("the connection stays open")
	}
}

func TestInformationalAnswersDoNotDecide(t *testing.T) {
	eachProtocol(t, func(t *testing.T, http2 bool) {
		e := newEndpoint(t, http2, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusProcessing)
			w.WriteHeader(http.StatusEarlyHints)
			w.WriteHeader(http.StatusNoContent)
		})
		d, _ := deliverer(t)
		assert.Equal(t, acknowledged, deliver(t, d, e.url))
	})
}

// TestTheStatusDecides has subscribers acknowledge with bodies that do not end, or are long.
func TestTheStatusDecides(t *testing.T) {
	endless := func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusAccepted)
		for w.(http.Flusher).Flush(); r.Context().Err() == nil; time.Sleep(time.Millisecond) {
			_, _ = w.Write([]byte("."))
			w.(http.Flusher).Flush()
		}
	}
	silent := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "10")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}
	long := func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 10<<20)) }
	announced := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", fmt.Sprint(64<<10+1))
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}
	eachProtocol(t, func(t *testing.T, http2 bool) {
		for name, c := range map[string]struct {
			handler http.HandlerFunc
			timeout time.Duration
			most    time.Duration
		}{
			"endless":                {endless, time.Hour, 10 * time.Second},
			"endless, short timeout": {endless, time.Second / 2, 10 * time.Second},
			"silent":                 {silent, time.Hour, 10 * time.Second},
			"long":                   {long, time.Hour, 10 * time.Second},
			"said to be long":        {announced, time.Hour, 10 * time.Second},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				e := newEndpoint(t, http2, c.handler)
				d, _ := deliverer(t, func(config *delivery.Config) { config.Timeout = c.timeout })
				began := time.Now()
				assert.Equal(t, acknowledged, deliver(t, d, e.url))
				assert.Less(t, time.Since(began), c.most)
				require.Eventually(t, func() bool { return e.open.Load() == 0 }, soon, time.Millisecond, "it cannot be used again")
			})
		}
	})
}

func TestIdleConnectionsAreBoundedInAll(t *testing.T) {
	eachProtocol(t, func(t *testing.T, http2 bool) {
		const hosts, most = 12, 5
		d, _ := deliverer(t, func(config *delivery.Config) { config.MaxIdle = most })
		var endpoints []*endpoint
		for range hosts {
			e := newEndpoint(t, http2, func(http.ResponseWriter, *http.Request) {})
			assert.Equal(t, acknowledged, deliver(t, d, e.url))
			endpoints = append(endpoints, e)
		}
		for i, e := range endpoints { // those used last are kept
			want := int64(0)
			if i >= hosts-most {
				want = 1
			}
			require.Eventually(t, func() bool { return e.open.Load() == want }, soon, time.Millisecond, "%d", i)
		}
		assert.Equal(t, acknowledged, deliver(t, d, endpoints[hosts-most].url))
		assert.EqualValues(t, 1, endpoints[hosts-most].opened.Load(), "it is used again")
	})
}

func TestIdleConnectionsAreBoundedByHost(t *testing.T) {
	eachProtocol(t, func(t *testing.T, http2 bool) {
		const atOnce, most = 10, 4
		var arrived sync.WaitGroup
		arrived.Add(atOnce)
		e := newEndpoint(t, http2, func(http.ResponseWriter, *http.Request) {
			arrived.Done()
			arrived.Wait()
		})
		d, _ := deliverer(t, func(config *delivery.Config) { config.MaxIdle = 100 })
		var delivering sync.WaitGroup
		for range atOnce {
			delivering.Go(func() { assert.Equal(t, acknowledged, d.Deliver(t.Context(), batch(t, e.url))) })
		}
		delivering.Wait()
		require.Eventually(t, func() bool { return e.open.Load() <= most }, soon, time.Millisecond)
		assert.EqualValues(t, most, e.open.Load())
		d.Close()
		require.Eventually(t, func() bool { return e.open.Load() == 0 }, soon, time.Millisecond)
	})
}

func TestAConnectionThatFailedIsClosed(t *testing.T) {
	eachProtocol(t, func(t *testing.T, http2 bool) {
		status := http.StatusOK
		e := newEndpoint(t, http2, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) })
		d, _ := deliverer(t)
		for i, s := range []int{200, 200, 500, 200, 302, 200} {
			status = s
			assert.Equal(t, s == 200, deliver(t, d, e.url) == acknowledged)
			opened := []int64{1, 1, 1, 2, 2, 3}[i]
			assert.Equal(t, opened, e.opened.Load(), "delivery %d", i)
			if s != 200 {
				require.Eventually(t, func() bool { return e.open.Load() == 0 }, soon, time.Millisecond)
			}
		}
	})
}

// TestAnIdleConnectionThatIsClosedIsReplaced has the other side close connections that were used before: at once, and only
// when the next request has arrived.
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
	d, log := deliverer(t)
	for range 3 {
		assert.Equal(t, acknowledged, deliver(t, d, late))
	}
	assert.EqualValues(t, 3, requests.Load())
	assert.Zero(t, strings.Count(log.String(), "failed"))

	eachProtocol(t, func(t *testing.T, http2 bool) {
		e := newEndpoint(t, http2, func(http.ResponseWriter, *http.Request) {})
		for range 3 {
			assert.Equal(t, acknowledged, deliver(t, d, e.url))
			e.server.CloseClientConnections()
		}
		assert.EqualValues(t, 3, e.opened.Load())
	})
}
