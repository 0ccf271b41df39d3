package web_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/web"
	"routemaster/internal/web/server"
)

func TestForceTLS(t *testing.T) {
	a := newAPI(t, rdbtest.Embedded(t), func(c *web.Config) { c.ForceTLS = true })
	for target, location := range map[string]string{
		"/topics/a%2Fb?c=d": "https://example.com/topics/a%2Fb?c=d", "/nowhere": "https://example.com/nowhere",
		"http://bus.example/topics": "https://bus.example/topics", "/healthy": "https://example.com/healthy",
	} {
		got := a.do("", "POST", target, "")
		assert.Equal(t, 308, got.status)
		assert.Equal(t, location, got.header.Get("Location"))
		assert.NotEmpty(t, got.header.Get("Strict-Transport-Security"))
	}
	assert.Equal(t, 200, a.do("", "GET", "/health", "").status)

	for proto, status := range map[string]int{"https": 204, "HTTPS": 204, "https, http": 204, "http": 308, "http, https": 308, "": 308} {
		r := httptest.NewRequestWithContext(t.Context(), "GET", "/pulse", nil)
		r.Header.Set("X-Forwarded-Proto", proto)
		r.SetBasicAuth(alice, "")
		w := httptest.NewRecorder()
		a.handler.ServeHTTP(w, r)
		assert.Equal(t, status, w.Code, proto)
		assert.NotEmpty(t, w.Header().Get("Strict-Transport-Security"))
	}
}

// certificate writes a new self-signed certificate with a serial number.
func certificate(t *testing.T, serial int64, certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(certFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	require.NoError(t, os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), 0o600))
}

func TestTLSIsServedDirectlyAndRenewed(t *testing.T) {
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	certificate(t, 1, certFile, keyFile)
	a := newAPI(t, rdbtest.Embedded(t))
	loaded, err := server.LoadCertificate(certFile, keyFile, a.logger(), time.Now)
	require.NoError(t, err)
	a = newAPI(t, rdbtest.Embedded(t), func(c *web.Config) { c.Certificate, c.ForceTLS = loaded, true })
	url := a.run()

	// serial makes a request over a new connection, and returns the serial number of the
	// certificate.
	serial := func() int64 {
		transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true}
		defer transport.CloseIdleConnections()
		r, err := http.NewRequestWithContext(t.Context(), "GET", "https"+strings.TrimPrefix(url, "http")+"/pulse", nil)
		require.NoError(t, err)
		r.SetBasicAuth(alice, "")
		resp, err := (&http.Client{Transport: transport}).Do(r)
		require.NoError(t, err)
		defer resp.Body.Close()
		assert.Equal(t, 204, resp.StatusCode, "it is not redirected")
		assert.Equal(t, 2, resp.ProtoMajor)
		return resp.TLS.PeerCertificates[0].SerialNumber.Int64()
	}
	assert.Equal(t, int64(1), serial())
	certificate(t, 2, certFile, keyFile)
	require.Eventually(t, func() bool { return serial() == 2 }, 10*time.Second, 20*time.Millisecond)
	require.NoError(t, os.WriteFile(keyFile, []byte("broken"), 0o600))
	began := time.Now()
	for time.Since(began) < 1200*time.Millisecond { // longer than certificateCheckInterval
		require.Equal(t, int64(2), serial(), "a broken renewal does not replace what works")
	}

	_, err = server.LoadCertificate(certFile, keyFile, a.logger(), time.Now)
	require.Error(t, err)
	_, err = server.LoadCertificate(certFile, filepath.Join(dir, "none"), a.logger(), time.Now)
	require.Error(t, err)
}
