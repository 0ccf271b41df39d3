package rest

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// newCertificate makes a certificate of its own for a test.
func newCertificate(t *testing.T) *Certificate {
	t.Helper()
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	writeCertificate(t, certFile, keyFile)
	certificate, err := LoadCertificate(certFile, keyFile, slog.New(slog.DiscardHandler), time.Now)
	require.NoError(t, err)
	return certificate
}

// TestRequestsOverTLS are answered in each protocol, and handlers see their TLS.
func TestRequestsOverTLS(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	ran := make(chan error)
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if assert.NotNil(t, r.TLS) {
			assert.True(t, r.TLS.HandshakeComplete)
			fmt.Fprint(w, r.Proto, " ", r.TLS.NegotiatedProtocol)
		}
	})
	certificate, connections := newCertificate(t), NewConnections(0, 0, slog.New(slog.DiscardHandler))
	go func() { ran <- Run(ctx, listener, handler, certificate, connections, slog.New(slog.DiscardHandler)) }()
	var waiting []*http.Transport
	for want, protocols := range map[string][]string{
		"HTTP/2.0 h2": {"h2", "http/1.1"}, "HTTP/1.1 http/1.1": {"http/1.1"}, "HTTP/1.1 ": nil,
	} {
		transport := &http.Transport{
			ForceAttemptHTTP2: len(protocols) > 1,
			TLSClientConfig:   &tls.Config{InsecureSkipVerify: true, NextProtos: protocols},
		}
		waiting = append(waiting, transport)
		for range 2 { // the second over the same connection
			r, err := http.NewRequestWithContext(ctx, "GET", "https://"+listener.Addr().String(), nil)
			require.NoError(t, err)
			resp, err := transport.RoundTrip(r)
			require.NoError(t, err)
			body, err := io.ReadAll(resp.Body)
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
			assert.Equal(t, want, string(body))
		}
	}
	plain, err := net.Dial("tcp", listener.Addr().String())
	require.NoError(t, err)
	_, err = io.WriteString(plain, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	require.NoError(t, err)
	answer, err := io.ReadAll(plain)
	require.NoError(t, err)
	assert.Contains(t, string(answer), "Client sent an HTTP request to an HTTPS server")
	require.NoError(t, plain.Close())
	silent, err := net.Dial("tcp", listener.Addr().String())
	require.NoError(t, err)
	requireOpen := func(want int) {
		t.Helper()
		require.Eventually(t, func() bool {
			connections.mu.Lock()
			defer connections.mu.Unlock()
			return len(connections.open) == want
		}, time.Minute, time.Millisecond)
	}
	requireOpen(len(waiting) + 1) // each counts once
	stop()
	require.NoError(t, <-ran, "no handshake is waited for")
	require.NoError(t, silent.Close())
	for _, transport := range waiting {
		transport.CloseIdleConnections()
	}
	requireOpen(0)
}

// TestAConnectionOfHTTP2IsBounded reads the first frame of a server: its settings (RFC 9113,
// section 6.5).
func TestAConnectionOfHTTP2IsBounded(t *testing.T) {
	t.Parallel()
	certificate := newCertificate(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	ran := make(chan error)
	go func() {
		ran <- Run(ctx, listener, http.NotFoundHandler(), certificate, nil, slog.New(slog.DiscardHandler))
	}()

	conn, err := tls.Dial("tcp", listener.Addr().String(), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
	require.NoError(t, err)
	_, err = io.WriteString(conn, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00")
	require.NoError(t, err)
	head := make([]byte, 9)
	_, err = io.ReadFull(conn, head)
	require.NoError(t, err)
	settings := make([]byte, int(head[1])<<8|int(head[2]))
	_, err = io.ReadFull(conn, settings)
	require.NoError(t, err)
	require.Equal(t, byte(4), head[3], "a SETTINGS frame")
	values := map[uint16]uint32{}
	for ; len(settings) > 0; settings = settings[6:] {
		values[binary.BigEndian.Uint16(settings)] = binary.BigEndian.Uint32(settings[2:])
	}
	const maxStreams, window, maxFrame = 3, 4, 5
	assert.Equal(t, uint32(100), values[maxStreams])
	assert.Equal(t, uint32(256<<10), values[window])
	assert.Equal(t, uint32(16<<10), values[maxFrame])
	require.NoError(t, conn.Close())
	stop()
	require.NoError(t, <-ran)
}

// TestAListenerWithTLSIsLent has two servers in turn serve TLS on one listener. A handshake that is
// under way when the first ends does not keep it.
func TestAListenerWithTLSIsLent(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	certificate := newCertificate(t)
	for _, name := range []string{"first", "second"} {
		ctx, stop := context.WithCancel(t.Context())
		ran := make(chan error)
		handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, name) })
		go func() { ran <- RunOnLoan(ctx, listener, handler, certificate, slog.New(slog.DiscardHandler)) }()
		silent, err := net.Dial("tcp", listener.Addr().String())
		require.NoError(t, err)
		transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
		r, err := http.NewRequestWithContext(t.Context(), "GET", "https://"+listener.Addr().String(), nil)
		require.NoError(t, err)
		resp, err := transport.RoundTrip(r)
		require.NoError(t, err)
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		assert.Equal(t, name, string(body))
		transport.CloseIdleConnections()
		stop()
		require.NoError(t, <-ran)
		_, err = silent.Read(make([]byte, 1))
		require.Error(t, err, "it was closed")
		require.NoError(t, silent.Close())
	}
}
