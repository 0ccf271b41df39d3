package outbound_test

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
	"go.uber.org/goleak"

	"routemaster/internal/outbound"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// soon bounds how long a test waits for an expected event. Only a failing test waits that long.
const soon = 2 * time.Minute

// newClient makes a client with time-outs that are long enough for any host.
func newClient(t *testing.T, adjust ...func(*outbound.Config)) *outbound.Client {
	t.Helper()
	config := outbound.Config{ConnectTimeout: time.Minute, Timeout: time.Minute, MaxIdle: 4, UserAgent: "routemaster/test"}
	for _, f := range adjust {
		f(&config)
	}
	c := outbound.New(config, time.Now)
	t.Cleanup(c.Close)
	return c
}

// request is a small one to a URL.
func request(url string) outbound.Request {
	const body = `["hello"]`
	return outbound.Request{
		URL: url, User: "user", Password: "password", Header: http.Header{"X-Test": {"yes"}},
		Body: func() io.ReadCloser { return io.NopCloser(strings.NewReader(body)) }, Length: int64(len(body)),
	}
}

// post sends a request, and fails the test should that take longer than a thread may be held.
func post(t *testing.T, c *outbound.Client, url string) (a outbound.Attempt) {
	t.Helper()
	done := make(chan outbound.Attempt, 1)
	go func() { done <- c.Send(t.Context(), request(url)) }()
	select {
	case a = <-done:
	case <-time.After(soon):
		t.Fatal("the attempt does not end")
	}
	return a
}

// acknowledged posts, and requires that the response was 2xx.
func acknowledged(t *testing.T, c *outbound.Client, url string) {
	t.Helper()
	require.NoError(t, post(t, c, url).Err)
}

// endpoint is an HTTPS server that counts its connections.
type endpoint struct {
	url string
	// opened counts the connections that have carried a request, open the ones that are open.
	opened, open atomic.Int64
	server       *httptest.Server
}

func newEndpoint(t *testing.T, http2 bool, handler http.HandlerFunc) *endpoint {
	t.Helper()
	e := &endpoint{}
	var clients sync.Map
	e.server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, known := clients.LoadOrStore(r.RemoteAddr, true); !known {
			e.opened.Add(1)
		}
		handler(w, r)
	}))
	e.server.EnableHTTP2 = http2 // and nothing else
	e.server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	e.server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
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

// rawReceiver starts an HTTPS server that reads a request and then does as it likes with its
// connection.
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

// TestASwitchOfProtocolsFails has a server answer 101 and keep the connection open.
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
	a := post(t, newClient(t), url)
	assert.Error(t, a.Err)
	assert.Equal(t, http.StatusSwitchingProtocols, a.Status)
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
		c := newClient(t)
		acknowledged(t, c, e.url)
	})
}

// TestTheStatusDecides has servers acknowledge with bodies that do not end, or are long.
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
		const limit = time.Minute
		for name, test := range map[string]struct {
			handler http.HandlerFunc
			timeout time.Duration
		}{
			"endless":                {endless, time.Hour},
			"endless, short timeout": {endless, time.Second / 2},
			"silent":                 {silent, time.Hour},
			"long":                   {long, time.Hour},
			"announced as long":      {announced, time.Hour},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				e := newEndpoint(t, http2, test.handler)
				c := newClient(t, func(config *outbound.Config) { config.Timeout = test.timeout })
				began := time.Now()
				acknowledged(t, c, e.url)
				assert.Less(t, time.Since(began), limit)
				require.Eventually(t, func() bool { return e.open.Load() == 0 }, soon, time.Millisecond, "it cannot be used again")
			})
		}
	})
}

func TestWhatIsSent(t *testing.T) {
	eachProtocol(t, func(t *testing.T, http2 bool) {
		var got *http.Request
		var body string
		e := newEndpoint(t, http2, func(_ http.ResponseWriter, r *http.Request) {
			text, _ := io.ReadAll(r.Body)
			got, body = r, string(text)
		})
		acknowledged(t, newClient(t), e.url)
		assert.Equal(t, `["hello"]`, body)
		assert.Equal(t, int64(len(body)), got.ContentLength)
		assert.Equal(t, http.MethodPost, got.Method)
		assert.Equal(t, "/events", got.URL.Path)
		assert.Equal(t, "routemaster/test", got.UserAgent())
		assert.Equal(t, "yes", got.Header.Get("X-Test"))
		assert.Empty(t, got.Header.Get("Accept-Encoding"), "the response is not read")
		user, password, _ := got.BasicAuth()
		assert.Equal(t, []string{"user", "password"}, []string{user, password})
	})
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	e := newEndpoint(t, true, func(w http.ResponseWriter, r *http.Request) {
		assert.Equal(t, "/events", r.URL.Path)
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(http.StatusTemporaryRedirect)
	})
	a := post(t, newClient(t), e.url)
	assert.Equal(t, http.StatusTemporaryRedirect, a.Status)
	assert.EqualError(t, a.Err, "the endpoint answered 307 Temporary Redirect")
}
