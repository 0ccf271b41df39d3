package outbound

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"syscall"
	"time"

	"routemaster/internal/bus"
)

// maxResponseHeader bounds a response's header, including informational responses before it, in
// bytes.
const maxResponseHeader = 64 << 10

// Bounds on idle connections, besides [Config].MaxIdle.
const (
	maxIdlePerHost = 4
	idleGrace      = time.Second
	idleTTL        = 30 * time.Second
)

// Config says how to send requests.
type Config struct {
	// ConnectTimeout bounds the making of a connection, and then its TLS handshake.
	ConnectTimeout time.Duration
	// Timeout bounds a whole attempt, from the look-up of the name to the status of the response.
	Timeout time.Duration
	// VerifyTLS says whether a server's certificate must be valid.
	VerifyTLS bool
	// Deny lists the addresses that are never connected to.
	Deny bus.DenyList
	// Trusted lists addresses that count as public: see [Attempt].Public.
	Trusted bus.DenyList
	// MaxIdle is how many idle connections are kept in all.
	MaxIdle int
	// UserAgent is sent with every request.
	UserAgent string
}

// Client sends requests over connections of its own, one request at a time on each. It is safe for
// concurrent use.
//
// It keeps the connections itself, because [http.Transport] does not close a connection whose
// request was refused, and does not bound idle connections of HTTP/2.
type Client struct {
	config    Config
	dialer    *dialer
	transport *http.Transport
	idle      *idlePool
	now       func() time.Time
}

// New makes a client.
func New(config Config, now func() time.Time) *Client {
	dialer := &dialer{
		Dialer: net.Dialer{
			Timeout: config.ConnectTimeout,
			// The address is checked when it is dialled, in case a name has changed its address.
			ControlContext: func(ctx context.Context, _, address string, _ syscall.RawConn) error {
				return checkAddress(ctx, config.Deny, address)
			},
		},
		tls: &tls.Config{InsecureSkipVerify: !config.VerifyTLS}, // an operator's explicit choice
	}
	return &Client{
		config: config,
		dialer: dialer,
		transport: &http.Transport{
			DialContext:            dialer.dial,
			DialTLSContext:         dialer.dialTLS,
			ForceAttemptHTTP2:      true,
			DisableCompression:     true, // the kept part is decoded later
			MaxResponseHeaderBytes: maxResponseHeader,
		},
		idle: newIdlePool(config.MaxIdle, maxIdlePerHost, idleGrace, idleTTL),
		now:  now,
	}
}

// Close closes the idle connections. Connections in use are closed when their request ends.
func (c *Client) Close() { c.idle.close() }

// Send sends a request and returns the attempt. Its error is a [bus.ShortError], because the error
// of a certificate lists names. The request does not arrive twice.
func (c *Client) Send(ctx context.Context, r Request) Attempt {
	start := c.now()
	a := c.attempt(ctx, r)
	a.Err = bus.ShortError(a.Err)
	a.Duration = c.now().Sub(start)
	return a
}

func (c *Client) attempt(ctx context.Context, r Request) (a Attempt) {
	timeout := cmp.Or(r.Timeout, c.config.Timeout)
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("no answer within %v", timeout))
	defer cancel()
	req, err := c.request(ctx, r)
	if err != nil {
		a.Err, a.Error = err, bus.ErrorProtocol
		return a
	}
	conn, resp, err := c.roundTrip(req, &r, &a)
	if err != nil {
		a.failed(ctx, err)
		return a
	}
	a.responded(resp, c.now())
	if a.readBody(ctx, resp, &r, cancel) && conn.isFree() {
		c.idle.put(conn)
	} else { // after 101, only the body can close it
		_ = conn.Close()
		_ = resp.Body.Close()
	}
	return a
}

// identity asks for bodies without a content coding. Without it, any coding would be acceptable
// (RFC 9110, section 12.5.3). It is shared by all requests.
var identity = []string{"identity"}

func (c *Client) request(ctx context.Context, r Request) (*http.Request, error) {
	var body io.Reader
	if r.Body != nil {
		body = r.Body()
	}
	req, err := http.NewRequestWithContext(ctx, cmp.Or(r.Method, http.MethodPost), r.URL, body)
	if err != nil {
		if wrapped, ok := errors.AsType[*url.Error](err); ok {
			err = wrapped.Err // without the URL, which may hold a secret
		}
		return nil, err
	}
	if r.Body != nil {
		req.ContentLength = r.Length
		req.GetBody = func() (io.ReadCloser, error) { return r.Body(), nil }
	}
	if r.Header != nil {
		req.Header = r.Header
	}
	if r.User != "" || r.Password != "" {
		req.SetBasicAuth(r.User, r.Password)
	}
	if r.KeepBody != nil {
		req.Header["Accept-Encoding"] = identity
	}
	if req.Header.Get("User-Agent") == "" {
		req.Header.Set("User-Agent", c.config.UserAgent)
	}
	return req, nil
}

// roundTrip sends a request over an idle connection, or a new one. If the server refuses HTTP/1.1,
// its host is offered HTTP/2 from now on, and the request is sent again over that, unless it is to
// be sent once.
func (c *Client) roundTrip(req *http.Request, r *Request, a *Attempt) (*connection, *http.Response, error) {
	host, err := hostPort(req.URL)
	if err != nil {
		return nil, nil, err
	}
	conn, resp, err := c.try(req, host, r.Once || r.Fresh, a)
	if err != nil || !refusesHTTP1(resp) || !c.dialer.wantsHTTP2.add(host) || r.Once {
		return conn, resp, err
	}
	other, err := c.connect(req.Context(), req.URL.Scheme, host, a)
	if err != nil {
		return conn, resp, nil
	}
	if !other.http2 { // it would be refused again
		_ = other.Close()
		return conn, resp, nil
	}
	_ = conn.Close()
	if err := rewind(req); err != nil {
		return nil, nil, err
	}
	return other.send(req)
}

func (c *Client) try(req *http.Request, host string, fresh bool, a *Attempt) (*connection, *http.Response, error) {
	if !fresh {
		if conn, resp, err := c.reuse(req, host, a); conn != nil || err != nil {
			return conn, resp, err
		}
	}
	conn, err := c.connect(req.Context(), req.URL.Scheme, host, a)
	if err != nil {
		return nil, nil, err
	}
	a.Connected = true
	return conn.send(req)
}

// reuse sends a request over an idle connection, and returns none if there is none that works.
//
// The other side may close a connection just when it is used again. The request is sent again, over
// a new one, if nothing of it had left, or the connection was closed before. Otherwise it may have
// arrived: an endpoint that crashes while it handles an event closes the connection too, and must
// not get the event twice at once, for one attempt on record (RFC 9110, section 9.2.2). That counts
// as the attempt's failure, as over a new connection.
//
// Silence is treated alike, but proves less: a middlebox may have forgotten the connection, or the
// other side reads no more from it after an earlier response. So the attempt ends, in doubt: the
// next, a timeout later and on its own record, is sure to use a new connection.
func (c *Client) reuse(req *http.Request, host string, a *Attempt) (*connection, *http.Response, error) {
	conn := c.idle.take(req.URL.Scheme, host)
	if conn == nil {
		return nil, nil, nil
	}
	a.Reused, a.Public = true, conn.public
	sent, resp, err := conn.send(req)
	if err == nil {
		return sent, resp, nil
	}
	expired := req.Context().Err()
	switch {
	case expired == nil && !conn.wire.hasSent(conn.start):
		return nil, nil, rewind(req)
	case errors.Is(expired, context.DeadlineExceeded) && conn.silent:
		c.idle.doubt(conn.scheme, conn.host)
		a.Doubtful = true
	}
	return nil, nil, err
}

// rewind makes a request send its body, if it has one, from the beginning.
func rewind(req *http.Request) (err error) {
	if req.GetBody != nil {
		req.Body, err = req.GetBody()
	}
	return err
}

// connect makes a connection. When no file descriptor is left it closes the idle connections and
// tries once more.
func (c *Client) connect(ctx context.Context, scheme, host string, a *Attempt) (*connection, error) {
	ctx, trail := withTrail(ctx)
	trail.trusted = c.config.Trusted
	conn, err := c.transport.NewClientConn(ctx, scheme, host)
	if a.OutOfFiles = outOfFiles(err); a.OutOfFiles != nil {
		c.idle.clear()
		conn, err = c.transport.NewClientConn(ctx, scheme, host)
	}
	a.Public = trail.public()
	if err != nil {
		return nil, &connectError{err, trail.connected.Load()}
	}
	return &connection{
		ClientConn: conn, scheme: scheme, host: host, public: a.Public, http2: trail.http2.Load(), wire: trail.wire.Load(),
	}, nil
}
