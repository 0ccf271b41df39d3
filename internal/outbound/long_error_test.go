package outbound_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/outbound"
)

// TestAnErrorOfACertificateIsShort has an endpoint show a certificate for 99 names of others,
// which the error of package x509 lists.
func TestAnErrorOfACertificateIsShort(t *testing.T) {
	t.Parallel()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	for i := range 99 { // of 100 it gives the number alone
		template.DNSNames = append(template.DNSNames, fmt.Sprintf("a-name-of-others-%d.%sexample", i, strings.Repeat(strings.Repeat("x", 60)+".", 3)))
	}
	der, err := x509.CreateCertificate(rand.Reader, &template, &template, key.Public(), key)
	require.NoError(t, err)
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // that the handshake failed
	s.StartTLS()
	defer s.Close()

	client := outbound.New(outbound.Config{ConnectTimeout: time.Minute, Timeout: time.Minute, VerifyTLS: true}, time.Now)
	defer client.Close()
	_, port, err := net.SplitHostPort(s.Listener.Addr().String())
	require.NoError(t, err)
	a := client.Send(t.Context(), outbound.Request{URL: "https://localhost:" + port})
	require.Equal(t, bus.ErrorTLS, a.Error, a.Err)
	assert.LessOrEqual(t, len(a.Err.Error()), bus.MaxReason)
	assert.ErrorContains(t, a.Err, "certificate is valid for a-name-of-others-0.xxx")
	var long x509.HostnameError
	require.ErrorAs(t, a.Err, &long, "the error is there for programs")
	assert.Greater(t, len(long.Error()), 18_000)
}
