package rest

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/selfsigned"
)

// writeCertificate writes a new certificate and its key to files, and returns the certificate.
func writeCertificate(t *testing.T, certFile, keyFile string) []byte {
	t.Helper()
	certificate, err := selfsigned.Certificate("127.0.0.1:0")
	require.NoError(t, err)
	key, err := x509.MarshalPKCS8PrivateKey(certificate.PrivateKey)
	require.NoError(t, err)
	der := certificate.Certificate[0]
	for file, block := range map[string]*pem.Block{
		certFile: {Type: "CERTIFICATE", Bytes: der},
		keyFile:  {Type: "PRIVATE KEY", Bytes: key},
	} {
		require.NoError(t, os.WriteFile(file, pem.EncodeToMemory(block), 0o600))
	}
	return der
}

// servedWith makes a request over a new connection, and returns the server's certificate.
func servedWith(t *testing.T, url string) []byte {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true}
	defer transport.CloseIdleConnections()
	resp, err := (&http.Client{Transport: transport}).Get(url)
	require.NoError(t, err)
	defer resp.Body.Close()
	assert.Equal(t, http.StatusNoContent, resp.StatusCode)
	assert.Equal(t, 2, resp.ProtoMajor)
	return resp.TLS.PeerCertificates[0].Raw
}

func TestARenewedCertificateIsServed(t *testing.T) {
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	first := writeCertificate(t, certFile, keyFile)
	var logged bytes.Buffer
	log := slog.New(slog.NewTextHandler(&logged, nil))
	now := time.Now()
	certificate, err := LoadCertificate(certFile, keyFile, log, func() time.Time { return now })
	require.NoError(t, err)

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	ran := make(chan error)
	go func() {
		ran <- Run(ctx, listener, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusNoContent)
		}), certificate, nil, slog.New(slog.DiscardHandler))
	}()
	url := "https://" + listener.Addr().String()
	assert.Equal(t, first, servedWith(t, url))

	second := writeCertificate(t, certFile, keyFile)
	require.NoError(t, os.Chtimes(certFile, now, now.Add(time.Minute))) // whatever the file system's clock
	assert.Equal(t, first, servedWith(t, url), "the files were checked a moment ago")
	now = now.Add(certificateCheckInterval)
	assert.Equal(t, second, servedWith(t, url))

	require.NoError(t, os.WriteFile(keyFile, []byte("broken"), 0o600))
	for range 3 {
		now = now.Add(certificateCheckInterval)
		assert.Equal(t, second, servedWith(t, url), "a broken renewal does not replace what works")
	}
	stop()
	require.NoError(t, <-ran)
	assert.Equal(t, 1, strings.Count(logged.String(), "TLS certificate renewed"), &logged)
	assert.Equal(t, 1, strings.Count(logged.String(), "cannot read the renewed TLS certificate"), &logged)

	_, err = LoadCertificate(certFile, keyFile, log, time.Now)
	require.Error(t, err)
	_, err = LoadCertificate(certFile, filepath.Join(dir, "none"), log, time.Now)
	require.Error(t, err)
}
