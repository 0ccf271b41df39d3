package outbound_test

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/outbound"
)

// freePort is an address without a listener.
func freePort(t *testing.T) string {
	t.Helper()
	nobody, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, nobody.Close())
	return nobody.Addr().String()
}

// TestWhatFails has endpoints fail in each way, and asks for the class of the error.
func TestWhatFails(t *testing.T) {
	aborts := func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
	aborts1, aborts2 := newEndpoint(t, false, aborts), newEndpoint(t, true, aborts)
	resets := rawReceiver(t, func(_ int64, conn net.Conn, r *bufio.Reader) { _ = readRequest(r) })
	chats := rawReceiver(t, func(_ int64, conn net.Conn, r *bufio.Reader) {
		if readRequest(r) == nil {
			_, _ = io.WriteString(conn, "220 mail.example ESMTP\r\n\r\n")
		}
	})
	fine := newEndpoint(t, true, func(http.ResponseWriter, *http.Request) {})
	mute, err := net.Listen("tcp", "127.0.0.1:0") // takes connections, and never says a word
	require.NoError(t, err)
	defer mute.Close()
	plain := &http.Server{}
	plainListener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	go func() { _ = plain.Serve(plainListener) }()
	defer plain.Close()
	loopback, err := bus.ParseDenyList("loopback")
	require.NoError(t, err)

	const brief = 50 * time.Millisecond
	asIs := func(*outbound.Config) {}
	for name, test := range map[string]struct {
		url        string
		adjust     func(*outbound.Config)
		class, why string
	}{
		"aborts, HTTP/1.1": {aborts1.url, asIs, bus.ErrorReset, "EOF"},
		"aborts, HTTP/2":   {aborts2.url, asIs, bus.ErrorReset, "stream"},
		"closes":           {resets, asIs, bus.ErrorReset, "EOF"},
		"not HTTP":         {chats, asIs, bus.ErrorProtocol, "malformed HTTP"},
		"nobody listens":   {"https://" + freePort(t), asIs, bus.ErrorRefused, "connection refused"},
		"no TLS handshake": {
			"https://" + mute.Addr().String(), func(c *outbound.Config) { c.ConnectTimeout = brief }, bus.ErrorConnectTimeout, "timeout",
		},
		"not connected in time": {
			"https://" + mute.Addr().String(), func(c *outbound.Config) { c.Timeout = brief }, bus.ErrorConnectTimeout, "no answer within 50ms",
		},
		"plain HTTP":        {"https://" + plainListener.Addr().String(), asIs, bus.ErrorTLS, "TLS"},
		"no such host":      {"https://" + strings.Repeat("x", 64) + ".example", asIs, bus.ErrorDNS, "no such host"},
		"no such address":   {"https://255.255.255.255", asIs, bus.ErrorUnreachable, "255.255.255.255"},
		"wrong URL":         {"https://%zz", asIs, bus.ErrorProtocol, "invalid URL escape"},
		"wrong certificate": {fine.url, func(c *outbound.Config) { c.VerifyTLS = true }, bus.ErrorTLS, "certificate"},
		"denied address":    {fine.url, func(c *outbound.Config) { c.Deny = loopback }, bus.ErrorDenied, "127.0.0.1 is denied"},
	} {
		t.Run(name, func(t *testing.T) {
			requireFailed(t, post(t, newClient(t, test.adjust), test.url), test.class, test.why)
		})
	}
}

// requireFailed wants an attempt to have failed for its endpoint, without a response.
func requireFailed(t *testing.T, a outbound.Attempt, class, why string) {
	t.Helper()
	require.Equal(t, class, a.Error)
	assert.ErrorContains(t, a.Err, why)
	assert.Zero(t, a.Status)
	assert.False(t, a.Public)
	assert.Equal(t, bus.EndpointFailure, a.Failure())
	assert.NotContains(t, a.Err.Error(), "https://", "a URL may hold a secret")
}

// hang answers nothing until its client has gone.
func hang(_ http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body) // only then does a server notice that its client has gone
	<-r.Context().Done()
	panic(http.ErrAbortHandler) // to return would answer 200, which may be read all the same
}

// TestAnEndpointThatHangs gives it more time where the host does not even connect in it.
func TestAnEndpointThatHangs(t *testing.T) {
	hangs := newEndpoint(t, true, hang)
	timeout := 50 * time.Millisecond
	fail := func() outbound.Attempt {
		return post(t, newClient(t, func(c *outbound.Config) { c.Timeout = timeout }), hangs.url)
	}
	a := fail()
	for a.Error == bus.ErrorConnectTimeout && timeout < soon/4 {
		timeout *= 4
		a = fail()
	}
	requireFailed(t, a, bus.ErrorTimeout, "no answer within "+timeout.String())
}

// TestResets has a host reset the TCP connection, before and after the TLS handshake.
func TestResets(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_ = conn.(*net.TCPConn).SetLinger(0)
			_ = conn.Close()
		}
	}()
	defer func() { _ = listener.Close(); <-ended }()
	for _, scheme := range []string{"https", "http"} {
		a := post(t, newClient(t), scheme+"://"+listener.Addr().String())
		assert.Equal(t, bus.ErrorReset, a.Error, "%s: %v", scheme, a.Err)
	}
}

// TestWhatIsWrongWithACertificate has an endpoint's be too old, for another host, or of an unknown
// authority.
func TestWhatIsWrongWithACertificate(t *testing.T) {
	e := newEndpoint(t, false, func(http.ResponseWriter, *http.Request) {})
	verify := func(c *outbound.Config) { c.VerifyTLS = true }
	a := post(t, newClient(t, verify), e.url)
	assert.Equal(t, bus.ErrorTLS, a.Error)
	assert.Equal(t, bus.CertificateUnknownAuthority, bus.CertificateFault(a.Err.Error()), "%v", a.Err)
	for fault, err := range map[string]error{
		bus.CertificateExpired:   x509.CertificateInvalidError{Reason: x509.Expired},
		bus.CertificateWrongHost: x509.HostnameError{Certificate: &x509.Certificate{DNSNames: []string{"of-others.example"}}, Host: "mine.example"},
		"":                       x509.CertificateInvalidError{Reason: x509.TooManyIntermediates},
	} {
		explained := outbound.Explained(&tls.CertificateVerificationError{Err: err})
		assert.Equal(t, fault, bus.CertificateFault(explained.Error()), "%v", explained)
	}
}

// TestAResolverIsNotNamed has look-ups fail in each way: no text has its address.
func TestAResolverIsNotNamed(t *testing.T) {
	for text, err := range map[string]*net.DNSError{
		"lookup x.example: no such host": {Err: "no such host", Name: "x.example", Server: "10.0.0.2:53", IsNotFound: true},
		"lookup x.example: the name server did not answer in time": {
			Err: "read udp 10.1.1.1:40000->10.0.0.2:53: i/o timeout", Name: "x.example", Server: "10.0.0.2:53", IsTimeout: true,
		},
		"lookup x.example: the name server cannot be reached": {
			Err: "dial udp 10.0.0.2:53: connect: network is unreachable", Name: "x.example", Server: "10.0.0.2:53",
		},
		"lookup x.example: server misbehaving": {Err: "server misbehaving", Name: "x.example", Server: "10.0.0.2:53", IsTemporary: true},
	} {
		assert.EqualError(t, outbound.Explained(&net.OpError{Op: "dial", Net: "tcp", Err: err}), text)
	}
}

// TestTrustedNetworksCountAsPublic connects to loopback, or does not, with and without trust.
func TestTrustedNetworksCountAsPublic(t *testing.T) {
	e := newEndpoint(t, false, func(http.ResponseWriter, *http.Request) {})
	list, err := bus.ParseDenyList("127.0.0.0/8")
	require.NoError(t, err)
	for _, trusted := range []bool{true, false} {
		c := newClient(t, func(c *outbound.Config) {
			if trusted {
				c.Trusted = list
			}
		})
		for _, url := range []string{e.url, e.url, "https://" + freePort(t)} {
			assert.Equal(t, trusted, post(t, c, url).Public, url)
		}
	}
}
