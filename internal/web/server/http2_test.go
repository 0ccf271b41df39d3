package server

import (
	"context"
	"crypto/tls"
	"encoding/binary"
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

// TestAConnectionOfHTTP2IsBounded reads the first frame of a server: its settings (RFC 9113,
// section 6.5).
func TestAConnectionOfHTTP2IsBounded(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	writeCertificate(t, certFile, keyFile)
	certificate, err := LoadCertificate(certFile, keyFile, slog.New(slog.DiscardHandler), time.Now)
	require.NoError(t, err)
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
