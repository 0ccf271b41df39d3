package web_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
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
	"routemaster/internal/selfsigned"
	"routemaster/internal/web"
	"routemaster/internal/web/rest"
)

func TestForceTLS(t *testing.T) {
	a := newAPI(t, rdbtest.Embedded(t), func(c *web.Config) { c.ForceTLS = true })
	for target, location := range map[string]string{
		"/topics/a%2Fb?c=d": "https://example.com/topics/a%2Fb?c=d", "/nowhere": "https://example.com/nowhere",
		"http://bus.example/topics": "https://bus.example/topics", "/healthy": "https://example.com/healthy",
	} {
		got := a.Do("", "POST", target, "")
		assert.Equal(t, 308, got.Status)
		assert.Equal(t, location, got.Header.Get("Location"))
		assert.Empty(t, got.Header.Get("Strict-Transport-Security"))
	}
	assert.Equal(t, 200, a.Do("", "GET", "/health", "").Status)

	for proto, status := range map[string]int{"https": 204, "HTTPS": 204, "https, http": 204, "http": 308, "http, https": 308, "": 308} {
		r := httptest.NewRequestWithContext(t.Context(), "GET", "/pulse", nil)
		r.Header.Set("X-Forwarded-Proto", proto)
		r.SetBasicAuth(alice, "")
		w := httptest.NewRecorder()
		a.Handler.ServeHTTP(w, r)
		assert.Equal(t, status, w.Code, proto)
		assert.Equal(t, status == 204, w.Header().Get("Strict-Transport-Security") != "", proto)
	}
}

// newCertificate makes a certificate of its own for a test, and returns the pool that trusts it.
func newCertificate(t *testing.T) (*rest.Certificate, *x509.CertPool) {
	t.Helper()
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	made, err := selfsigned.Certificate("127.0.0.1:0")
	require.NoError(t, err)
	key, err := x509.MarshalPKCS8PrivateKey(made.PrivateKey)
	require.NoError(t, err)
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: made.Certificate[0]})
	require.NoError(t, os.WriteFile(certFile, certPEM, 0o600))
	require.NoError(t, os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}), 0o600))
	certificate, err := rest.LoadCertificate(certFile, keyFile, slog.New(slog.DiscardHandler), time.Now)
	require.NoError(t, err)
	roots := x509.NewCertPool()
	require.True(t, roots.AppendCertsFromPEM(certPEM))
	return certificate, roots
}

// TestTLSServedDirectlyIsNotRedirected enforces TLS without a proxy before the server.
func TestTLSServedDirectlyIsNotRedirected(t *testing.T) {
	certificate, roots := newCertificate(t)
	a := newAPI(t, rdbtest.Embedded(t), func(c *web.Config) { c.Certificate, c.ForceTLS = certificate, true })
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true}
	defer transport.CloseIdleConnections()
	r, err := http.NewRequestWithContext(t.Context(), "GET", "https"+strings.TrimPrefix(a.Run(), "http")+"/pulse", nil)
	require.NoError(t, err)
	r.SetBasicAuth(alice, "")
	resp, err := transport.RoundTrip(r)
	require.NoError(t, err)
	defer resp.Body.Close()
	assert.Equal(t, 204, resp.StatusCode)
	assert.Equal(t, 2, resp.ProtoMajor)
	assert.NotEmpty(t, resp.Header.Get("Strict-Transport-Security"))
}
