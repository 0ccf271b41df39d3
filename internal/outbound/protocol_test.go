package outbound_test

import (
	"crypto/tls"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/outbound"
)

// server is a TLS server that counts handshakes and requests.
type server struct {
	*httptest.Server
	handshakes, requests, proto atomic.Int64
}

// newServer makes a server that speaks protocols. Requests over HTTP/1.1 get a status. A client
// that does not offer HTTP/2 gets another configuration, unless that is nil.
func newServer(t *testing.T, protocols []string, without func(*tls.ClientHelloInfo) *tls.Config, status int) *server {
	s := &server{}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.requests.Add(1)
		s.proto.Store(int64(r.ProtoMajor))
		if r.ProtoMajor == 1 {
			w.WriteHeader(status)
		}
	}))
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	s.EnableHTTP2 = slices.Contains(protocols, "h2")
	s.StartTLS()
	t.Cleanup(s.Close)
	config := s.TLS.Clone()
	config.NextProtos = protocols
	s.TLS.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		s.handshakes.Add(1)
		if without != nil && !slices.Contains(hello.SupportedProtos, "h2") {
			return without(hello), nil
		}
		return config, nil
	}
	return s
}

var (
	h2, http1 = []string{"h2"}, []string{"http/1.1"}
	anyHTTP   = append(h2, http1...)
)

// keepNone has each request go over a new connection.
func keepNone(c *outbound.Config) { c.MaxIdle = 0 }

// TestHTTP1IsPreferred posts twice to servers of every kind, over a new connection each, and counts
// handshakes and requests.
func TestHTTP1IsPreferred(t *testing.T) {
	refuses := func(*tls.ClientHelloInfo) *tls.Config { return &tls.Config{NextProtos: []string{"other"}} }
	hangsUp := func(hello *tls.ClientHelloInfo) *tls.Config { _ = hello.Conn.Close(); return nil }
	for name, test := range map[string]struct {
		protocols            []string
		without              func(*tls.ClientHelloInfo) *tls.Config
		status               int
		handshakes, requests []int64
		proto                int
	}{
		"both":                      {anyHTTP, nil, 200, []int64{1, 2}, []int64{1, 2}, 1},
		"HTTP/1.1":                  {http1, nil, 200, []int64{1, 2}, []int64{1, 2}, 1},
		"no ALPN":                   {nil, nil, 200, []int64{2, 3}, []int64{1, 2}, 1},
		"HTTP/2":                    {h2, nil, 505, []int64{2, 3}, []int64{1, 2}, 2},
		"HTTP/2, by an alert":       {h2, refuses, 505, []int64{2, 3}, []int64{1, 2}, 2},
		"HTTP/2, hangs up":          {h2, hangsUp, 505, []int64{2, 3}, []int64{1, 2}, 2},
		"both, but refuses 1.1":     {anyHTTP, nil, 505, []int64{2, 3}, []int64{2, 3}, 2},
		"both, asks for an upgrade": {anyHTTP, nil, 426, []int64{2, 3}, []int64{2, 3}, 2},
		"both, AWS":                 {anyHTTP, nil, 464, []int64{2, 3}, []int64{2, 3}, 2},
		"HTTP/1.1, but refuses it":  {http1, nil, 505, []int64{2, 3}, []int64{1, 2}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, test.protocols, test.without, test.status)
			c := newClient(t, keepNone)
			for i := range 2 {
				a := c.Send(t.Context(), request(s.URL))
				if test.proto == 1 {
					assert.Equal(t, test.status, a.Status)
				} else {
					require.NoError(t, a.Err)
				}
				assert.Equal(t, test.handshakes[i], s.handshakes.Load(), "handshakes")
				assert.Equal(t, test.requests[i], s.requests.Load(), "requests")
				assert.EqualValues(t, test.proto, s.proto.Load())
			}
		})
	}
}

// TestOnceHoldsIfHTTP1IsRefused has a server refuse HTTP/1.1: the next request goes over HTTP/2.
func TestOnceHoldsIfHTTP1IsRefused(t *testing.T) {
	s := newServer(t, anyHTTP, nil, http.StatusHTTPVersionNotSupported)
	c, r := newClient(t), request(s.URL)
	r.Once = true
	assert.Equal(t, http.StatusHTTPVersionNotSupported, c.Send(t.Context(), r).Status)
	assert.EqualValues(t, 1, s.requests.Load())
	require.NoError(t, c.Send(t.Context(), r).Err)
	assert.EqualValues(t, 2, s.requests.Load())
}
