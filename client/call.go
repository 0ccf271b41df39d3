package client

import (
	"context"
	"net/http"
)

// Request is a request for [Client.Call].
type Request struct {
	// Operation names the request in errors, instead of the path, which may contain a secret.
	Operation    string
	Method, Path string
	// Body, unless nil, is sent as JSON.
	Body any
	// NoRetry is set if a second request could have a second effect.
	NoRetry bool
}

// Call sends a request that this package has no function for, with retries, and decodes the JSON of
// the response into a value. A nil value or an empty response is fine. It returns the response: its
// body has been read.
func (c *Client) Call(ctx context.Context, r Request, into any) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = marshal(r.Body); err != nil {
			return nil, err
		}
	}
	var got http.Response
	err := c.call(ctx, request{
		method: r.Method, path: r.Path, operation: r.Operation, body: body, noRetry: r.NoRetry, response: &got,
	}, into)
	return &got, err
}
