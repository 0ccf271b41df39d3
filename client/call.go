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
	// Text, unless nil, is sent instead of a Body, as it is; Kind is its media type.
	Text []byte
	Kind string
	// IdempotencyKey, unless empty, makes the bus act only once on repeated requests with the same
	// key.
	IdempotencyKey string
	// NoRetry is set if a second request could have a second effect.
	NoRetry bool
}

// Response is a response of the bus, without its body. It is the zero one if an earlier try of a
// DELETE has succeeded, and its response was lost.
type Response struct {
	// Status is the HTTP status.
	Status int
	Header http.Header
}

// Call sends a request that this package has no function for, with retries, and decodes the JSON of
// the response into a value; bytes get the response as it is. A nil value or an empty response is
// fine.
func (c *Client) Call(ctx context.Context, r Request, into any) (got Response, err error) {
	body := r.Text
	if r.Body != nil {
		if body, err = marshal(r.Body); err != nil {
			return got, err
		}
	}
	err = c.call(ctx, request{
		method: r.Method, path: r.Path, operation: r.Operation, body: body, kind: r.Kind, key: r.IdempotencyKey, noRetry: r.NoRetry, response: &got,
	}, into)
	return got, err
}
