package delivery

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"golang.org/x/net/idna"

	"routemaster/internal/bus"
	"routemaster/internal/telemetry"
	"routemaster/internal/telemetry/logs"
)

// Bounds on an answer. Its status decides; its body is read only so that the connection can be used again.
const (
	// maxResponseHeader bounds the header, informational answers before it included, in bytes.
	maxResponseHeader = 64 << 10
	// maxDrain bounds how much of the body is read, in bytes.
	maxDrain = 64 << 10
	// drainTimeout bounds how long the body may keep a thread.
	drainTimeout = time.Second
)

// Bounds on the connections that no delivery uses, besides [Config].MaxIdle.
const (
	maxIdlePerHost = 4
	idleGrace      = time.Second
	idleTTL        = 30 * time.Second
)

// transport sends requests over connections of its own, one request at a time on each.
//
// It keeps them itself, not by [http.Transport]: that bounds idle connections of HTTP/1 only. It keeps those of
// HTTP/2 in a list of their own until they have been idle for their time, however many there are,
// and does not close one whose delivery failed.
type transport struct {
	dialer   *http.Transport
	idle     *idlePool
	recorder *telemetry.Recorder
	files    *logs.FileWarner
}

func newTransport(config Config, log *slog.Logger) *transport {
	dialer := &net.Dialer{
		Timeout: config.ConnectTimeout,
		// Here, and not where names are resolved, so that a name that changes its address does not get through.
		Control: func(_, address string, _ syscall.RawConn) error { return checkAddress(config.Deny, address) },
	}
	return &transport{
		dialer: &http.Transport{
			DialContext:            dialer.DialContext,
			TLSHandshakeTimeout:    config.ConnectTimeout,
			TLSClientConfig:        &tls.Config{InsecureSkipVerify: !config.VerifyTLS}, // an operator's explicit choice
			ForceAttemptHTTP2:      true,
			DisableCompression:     true, // bodies are thrown away
			MaxResponseHeaderBytes: maxResponseHeader,
		},
		idle:     newIdlePool(config.MaxIdle, maxIdlePerHost, idleGrace, idleTTL),
		recorder: config.Recorder,
		files:    logs.NewFileWarner(log),
	}
}

// checkAddress refuses an address that deliveries must not connect to, as it is about to be dialled.
func checkAddress(deny bus.DenyList, address string) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	if deny.Denies(to.Addr()) {
		return fmt.Errorf("the callback's address %s is denied by ROUTEMASTER_CALLBACK_DENY", to.Addr())
	}
	return nil
}

// send sends a request, and returns the answer's status and header. The timeout bounds all of it.
func (t *transport) send(req *http.Request, timeout time.Duration) (*http.Response, error) {
	ctx, cancel := context.WithTimeoutCause(req.Context(), timeout, fmt.Errorf("no answer within %v", timeout))
	defer cancel()
	conn, resp, err := t.roundTrip(req.WithContext(ctx))
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return nil, err
	}
	acknowledged := resp.StatusCode/100 == 2
	if acknowledged && drain(resp, cancel) && conn.Available() > 0 {
		t.idle.put(conn)
	} else { // of 101, only the body can close it
		_ = conn.Close()
		_ = resp.Body.Close()
	}
	return resp, nil
}

// roundTrip sends a request over an idle connection, or a new one. An idle connection may have been closed by its other
// side: then the request is sent again over a new one. A batch may arrive twice, so it does not matter how far the first got.
func (t *transport) roundTrip(req *http.Request) (*connection, *http.Response, error) {
	host, err := addressOf(req.URL)
	if err != nil {
		return nil, nil, err
	}
	if conn := t.idle.take(req.URL.Scheme, host); conn != nil {
		t.recorder.Connected(true)
		resp, err := conn.RoundTrip(req)
		if err == nil {
			return conn, resp, nil
		}
		_ = conn.Close()
		if req.Context().Err() != nil {
			return nil, nil, err
		}
		if req.Body, err = req.GetBody(); err != nil {
			return nil, nil, err
		}
	}
	conn, err := t.connect(req.Context(), req.URL.Scheme, host)
	if err != nil {
		return nil, nil, err
	}
	t.recorder.Connected(false)
	resp, err := conn.RoundTrip(req)
	if err != nil {
		_ = conn.Close()
		return nil, nil, err
	}
	return conn, resp, nil
}

// connect makes a connection. Out of file descriptors it gives up the idle connections, and tries once more.
func (t *transport) connect(ctx context.Context, scheme, host string) (*connection, error) {
	conn, err := t.dialer.NewClientConn(ctx, scheme, host)
	if t.files.Check(err, "connecting to a callback") {
		t.idle.clear()
		conn, err = t.dialer.NewClientConn(ctx, scheme, host)
	}
	if err != nil {
		return nil, err
	}
	return &connection{ClientConn: conn, scheme: scheme, host: host}, nil
}

func (t *transport) close() { t.idle.close() }

// addressOf returns the host and port of a URL, as they are dialled.
func addressOf(u *url.URL) (string, error) {
	host := strings.ToLower(u.Hostname())
	if strings.ContainsFunc(host, func(r rune) bool { return r >= utf8.RuneSelf }) { // it was percent-encoded
		var err error
		if host, err = idna.Lookup.ToASCII(host); err != nil {
			return "", err
		}
	}
	ports := map[string]string{"https": "443", "http": "80"}
	return net.JoinHostPort(host, cmp.Or(u.Port(), ports[u.Scheme])), nil
}

// drain reads what is left of an answer, and reports whether that was all of it.
func drain(resp *http.Response, cancel context.CancelFunc) bool {
	if resp.ContentLength == 0 {
		return true
	}
	if resp.ContentLength > maxDrain {
		return false
	}
	timer := time.AfterFunc(drainTimeout, cancel)
	defer timer.Stop()
	_, err := io.CopyN(io.Discard, resp.Body, maxDrain+1)
	return errors.Is(err, io.EOF)
}
