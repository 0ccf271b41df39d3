package client

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Client calls a bus's HTTP interface for one client of the bus. It is safe for concurrent use.
type Client struct {
	// base is the bus's URL, without a slash at the end.
	base, token, userAgent string
	http                   *http.Client
	retries                int
	firstPause, maxPause   time.Duration
}

// Option changes how a [Client] works.
type Option func(*Client)

// WithHTTPClient sends requests with c, for example because c trusts a private CA. Its
// CheckRedirect is not used: see [New].
func WithHTTPClient(c *http.Client) Option { return func(into *Client) { into.http = c } }

// WithUserAgent sets the User-Agent header. The default is routemaster-go-client.
func WithUserAgent(agent string) Option { return func(into *Client) { into.userAgent = agent } }

// WithRetries sets how often a request is sent again after a temporary failure. The default is 5;
// with 0 every request is sent once.
func WithRetries(n int) Option { return func(into *Client) { into.retries = max(n, 0) } }

// WithBackoff sets the pause before the first retry and the longest pause. The defaults are 100 ms
// and 5 s. Each pause is twice the one before it, changed at random by up to half. If the bus asks
// for a longer pause (Retry-After), that is added.
func WithBackoff(first, longest time.Duration) Option {
	return func(into *Client) { into.firstPause, into.maxPause = first, max(first, longest) }
}

// attemptTimeout bounds one request and its response, unless the caller brings an HTTP client.
const attemptTimeout = 30 * time.Second

// New returns a client of the bus at a URL, such as "https://bus.example". The token (or the
// operator's root key) is sent with every request, and never to another host: a redirect is
// followed only to the same host, or from http to https on it.
func New(busURL, token string, options ...Option) (*Client, error) {
	base, err := url.Parse(busURL)
	switch {
	case err != nil: // the error may contain a secret
		return nil, errors.New("the bus's URL cannot be read; it must be like https://bus.example")
	case base.User != nil:
		return nil, errors.New("the bus's URL must not have a user name; give the token by itself")
	case base.Scheme != "https" && base.Scheme != "http", base.Hostname() == "":
		return nil, errors.New("the bus's URL must begin with https:// (or http://) and a host")
	case base.RawQuery != "" || base.Fragment != "":
		return nil, errors.New("the bus's URL must not have a query string or a fragment")
	case token == "":
		return nil, errors.New("there is no token; ask the bus's operator for one")
	}
	c := &Client{
		base: strings.TrimRight(base.String(), "/"), token: token, userAgent: "routemaster-go-client",
		retries: 5, firstPause: 100 * time.Millisecond, maxPause: 5 * time.Second,
	}
	for _, option := range options {
		option(c)
	}
	if c.http == nil {
		transport := http.DefaultTransport.(*http.Transport).Clone()
		transport.MaxIdleConnsPerHost = 32
		c.http = &http.Client{Transport: transport, Timeout: attemptTimeout}
	}
	own := *c.http
	own.CheckRedirect = checkRedirect
	c.http = &own
	return c, nil
}

// CloseIdleConnections closes the connections that no request uses. The client can still be used.
func (c *Client) CloseIdleConnections() { c.http.CloseIdleConnections() }

// maxRedirects is how many redirects in a row are followed.
const maxRedirects = 5

// checkRedirect follows a redirect to the same origin, or from http to https on the same host, with
// the same method. Any other redirect becomes an [Error].
func checkRedirect(next *http.Request, via []*http.Request) error {
	last := via[len(via)-1]
	sameOrigin := next.URL.Scheme == last.URL.Scheme && next.URL.Host == last.URL.Host
	secured := last.URL.Scheme == "http" && next.URL.Scheme == "https" && next.URL.Hostname() == last.URL.Hostname()
	if next.Method != last.Method || !sameOrigin && !secured || len(via) > maxRedirects {
		return http.ErrUseLastResponse
	}
	if followed, ok := next.Context().Value(redirectKey{}).(*redirect); ok && next.Response != nil {
		*followed = redirect{next.Response.StatusCode, next.URL.Scheme + "://" + next.URL.Host}
	}
	return nil
}

// redirect is the last one that a request has followed. [Client.attempt] puts an empty one into the
// request's context, under redirectKey, for checkRedirect to fill in.
type redirect struct {
	status int
	to     string
}

type redirectKey struct{}

// request is a request to the bus.
type request struct {
	// operation names the request in errors, instead of the path, which may contain a secret.
	method, path, operation string
	// body is JSON, or nil; kind is its media type, if it is another.
	body []byte
	kind string
	// key is an idempotency key, or empty; keyTTL is for how long the bus is to remember it, or 0.
	key    string
	keyTTL time.Duration
	// response, if given, is set.
	response *Response
	// noRetry is set if a second request could have a second effect.
	noRetry bool
}

// call sends a request, with retries, and decodes the JSON of the response into a value; bytes get
// the response as it is. A nil value or an empty response is fine.
func (c *Client) call(ctx context.Context, r request, into any) error {
	body, err := c.send(ctx, r)
	if err != nil {
		return err
	}
	defer body.Close()
	text, err := io.ReadAll(io.LimitReader(body, maxResponse+1))
	switch {
	case err != nil:
		return fmt.Errorf("%s: the response is incomplete: %w", r.operation, &connectionError{bare(err)})
	case len(text) > maxResponse:
		return fmt.Errorf("%s: the response has more than %d bytes", r.operation, maxResponse)
	case into == nil || len(bytes.TrimSpace(text)) == 0:
		return nil
	}
	if plain, ok := into.(*[]byte); ok {
		*plain = text
		return nil
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("%s: the response is not from a bus: %w", r.operation, err)
	}
	return nil
}

// maxResponse is how many bytes of a response are read at most.
const maxResponse = 256 << 20

// attempt sends a request once, and returns the body of a 2xx response, which the caller closes.
func (c *Client) attempt(ctx context.Context, r request) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, r.method, c.base+r.path, bytes.NewReader(r.body))
	if err != nil {
		return nil, bare(err)
	}
	req.SetBasicAuth(c.token, "")
	req.Header.Set("User-Agent", c.userAgent)
	if r.body != nil {
		req.Header.Set("Content-Type", cmp.Or(r.kind, "application/json"))
	}
	if r.key != "" {
		req.Header.Set("Idempotency-Key", r.key)
	}
	if r.keyTTL > 0 {
		req.Header.Set("Idempotency-Expires-In", strconv.FormatInt(int64(r.keyTTL/time.Second), 10))
	}
	var followed redirect
	resp, err := c.http.Do(req.WithContext(context.WithValue(ctx, redirectKey{}, &followed)))
	if err != nil && followed.status != 0 && ctx.Err() == nil {
		return nil, &connectionError{&RedirectError{followed.status, followed.to, bare(err)}}
	}
	if err != nil {
		return nil, &connectionError{bare(err)}
	}
	if resp.StatusCode == http.StatusSwitchingProtocols { // the body is the connection, without a timeout
		_ = resp.Body.Close()
		resp.Body = http.NoBody
	}
	if resp.StatusCode/100 != 2 {
		defer resp.Body.Close()
		return nil, readError(resp)
	}
	if r.response != nil {
		*r.response = Response{resp.StatusCode, resp.Header}
	}
	return resp.Body, nil
}

// bare removes the URL, which may contain a token, from an error.
func bare(err error) error {
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		return wrapped.Err
	}
	return err
}
