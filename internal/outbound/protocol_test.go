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
)

// TestHTTP1IsPreferred posts twice to servers of every kind, over a new connection each, and counts
// the handshakes.
func TestHTTP1IsPreferred(t *testing.T) {
	type server struct {
		protocols []string
		// without has what becomes of a client that does not offer HTTP/2.
		without func(*tls.ClientHelloInfo) *tls.Config
		status  int // the answer to HTTP/1.1
	}
	h2, http1 := []string{"h2"}, []string{"http/1.1"}
	refuses := func(*tls.ClientHelloInfo) *tls.Config { return &tls.Config{NextProtos: []string{"other"}} }
	hangsUp := func(hello *tls.ClientHelloInfo) *tls.Config { _ = hello.Conn.Close(); return nil }
	for name, test := range map[string]struct {
		server     server
		handshakes []int64
		proto      int
	}{
		"both":                      {server{append(h2, http1...), nil, 200}, []int64{1, 2}, 1},
		"HTTP/1.1":                  {server{http1, nil, 200}, []int64{1, 2}, 1},
		"no ALPN":                   {server{nil, nil, 200}, []int64{2, 3}, 1},
		"HTTP/2":                    {server{h2, nil, 505}, []int64{2, 3}, 2},
		"HTTP/2, by an alert":       {server{h2, refuses, 505}, []int64{2, 3}, 2},
		"HTTP/2, hangs up":          {server{h2, hangsUp, 505}, []int64{2, 3}, 2},
		"both, but refuses 1.1":     {server{append(h2, http1...), nil, 505}, []int64{2, 3}, 2},
		"both, asks for an upgrade": {server{append(h2, http1...), nil, 426}, []int64{2, 3}, 2},
		"both, AWS":                 {server{append(h2, http1...), nil, 464}, []int64{2, 3}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			var handshakes, proto atomic.Int64
			s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				proto.Store(int64(r.ProtoMajor))
				if r.ProtoMajor == 1 {
					w.WriteHeader(test.server.status)
				}
			}))
			s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
			s.EnableHTTP2 = slices.Contains(test.server.protocols, "h2")
			s.StartTLS()
			t.Cleanup(s.Close)
			config := s.TLS.Clone()
			config.NextProtos = test.server.protocols
			s.TLS.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
				handshakes.Add(1)
				if test.server.without != nil && !slices.Contains(hello.SupportedProtos, "h2") {
					return test.server.without(hello), nil
				}
				return config, nil
			}
			c, r := newClient(t), request(s.URL)
			r.Once = true
			for _, want := range test.handshakes {
				require.NoError(t, c.Send(t.Context(), r).Err)
				assert.Equal(t, want, handshakes.Load())
				assert.EqualValues(t, test.proto, proto.Load())
			}
		})
	}
}
