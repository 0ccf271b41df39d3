package client

import (
	"bytes"
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
	firstPause, mostPause  time.Duration
}

// Option changes how a [Client] works.
type Option func(*Client)

// WithHTTPClient has requests sent by a client of yours, for example one that trusts a CA of your own. Its CheckRedirect
// is not used: see [New].
func WithHTTPClient(c *http.Client) Option { return func(into *Client) { into.http = c } }

// WithUserAgent sets the User-Agent header, routemaster-go-client if this is not used.
func WithUserAgent(agent string) Option { return func(into *Client) { into.userAgent = agent } }

// WithRetries sets how often a request is sent again after a failure that may pass: 5 times if this is not used.
// 0 sends every request once.
func WithRetries(n int) Option { return func(into *Client) { into.retries = max(n, 0) } }

// WithBackoff sets the pause before the first retry, and the longest one: 100 ms and 5 s if this is not used. A pause is
// twice the one before it, less or more up to half of that by chance. A bus that asks for a longer one gets it.
func WithBackoff(first, most time.Duration) Option {
	return func(into *Client) { into.firstPause, into.mostPause = first, max(first, most) }
}

// attemptTimeout bounds one request and its answer, unless the caller brings an HTTP client.
const attemptTimeout = 30 * time.Second

// New returns a client of the bus at a URL, such as "https://bus.example". The token (or the operator's root key) is
// sent with every request. It is never sent to another host: a redirect is followed only to the same host, and from http
// to https.
func New(busURL, token string, options ...Option) (*Client, error) {
	base, err := url.Parse(busURL)
	switch {
	case err != nil: // it may have a secret in it
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
		retries: 5, firstPause: 100 * time.Millisecond, mostPause: 5 * time.Second,
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

// mostRedirects is how many redirects in a row are followed.
const mostRedirects = 5

// checkRedirect follows a redirect to the same origin, or from http to https on the same host, with the same method. Any
// other is an answer like the rest: an [Error].
func checkRedirect(next *http.Request, via []*http.Request) error {
	last := via[len(via)-1]
	sameOrigin := next.URL.Scheme == last.URL.Scheme && next.URL.Host == last.URL.Host
	secured := last.URL.Scheme == "http" && next.URL.Scheme == "https" && next.URL.Hostname() == last.URL.Hostname()
	if next.Method != last.Method || !sameOrigin && !secured || len(via) > mostRedirects {
		return http.ErrUseLastResponse
	}
	if followed, ok := next.Context().Value(redirectKey{}).(*redirect); ok && next.Response != nil {
		*followed = redirect{next.Response.StatusCode, next.URL.Scheme + "://" + next.URL.Host}
	}
	return nil
}

// redirect is the last one that a request has followed; a request's context has one, to be filled in, under redirectKey.
type redirect struct {
	status int
	to     string
}

type redirectKey struct{}

// request is what is asked of the bus.
type request struct {
	// what names it in errors: its path may have a secret in it.
	method, path, what string
	// body is JSON, or nil.
	body []byte
	// key is an idempotency key, or empty; keyTTL is how long it is to be remembered, or 0.
	key    string
	keyTTL time.Duration
	// once forbids to send it again: it is not known whether it has had an effect.
	once bool
}

// call sends a request, again if need be, and reads the JSON of its answer into a value, if one is given and the answer
// has any.
func (c *Client) call(ctx context.Context, r request, into any) error {
	body, err := c.send(ctx, r)
	if err != nil {
		return err
	}
	defer body.Close()
	text, err := io.ReadAll(io.LimitReader(body, mostAnswer+1))
	switch {
	case err != nil:
		return fmt.Errorf("%s: the answer did not arrive whole: %w", r.what, &connectionError{bare(err)})
	case len(text) > mostAnswer:
		return fmt.Errorf("%s: the answer has more than %d bytes", r.what, mostAnswer)
	case into == nil || len(bytes.TrimSpace(text)) == 0:
		return nil
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("%s: the answer is not that of a bus: %w", r.what, err)
	}
	return nil
}

// mostAnswer is the most bytes of an answer that are read.
const mostAnswer = 256 << 20

// attempt sends a request once. What it returns, if there is no error, is the body of a 2xx, to be closed.
func (c *Client) attempt(ctx context.Context, r request) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, r.method, c.base+r.path, bytes.NewReader(r.body))
	if err != nil {
		return nil, bare(err)
	}
	req.SetBasicAuth(c.token, "")
	req.Header.Set("User-Agent", c.userAgent)
	if r.body != nil {
		req.Header.Set("Content-Type", "application/json")
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
	if resp.StatusCode == http.StatusSwitchingProtocols { // the body is the connection, which no time-out bounds
		_ = resp.Body.Close()
		resp.Body = http.NoBody
	}
	if resp.StatusCode/100 != 2 {
		defer resp.Body.Close()
		return nil, readError(resp)
	}
	return resp.Body, nil
}

// bare takes the URL off an error: it may have a token in it.
func bare(err error) error {
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		return wrapped.Err
	}
	return err
}
