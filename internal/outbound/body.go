package outbound

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"routemaster/internal/bus"
)

// Bounds on a response's body. The status alone decides; the body is read to keep a part of it, and
// so that the connection can be used again.
const (
	// maxBody bounds how much of a body is kept, in bytes.
	maxBody = 256 << 10
	// maxDrain bounds how much is read of the rest, which is not kept, in bytes.
	maxDrain = 64 << 10
	// bodyTimeout bounds how long reading the body may take. A body that the caller wants, or a 207's,
	// which says which events were acknowledged, has all of the attempt's time instead.
	bodyTimeout = time.Second
)

// readBody keeps the wanted part of a response's body, and reports whether the connection can be
// used again. For that it reads the rest too, unless the endpoint failed: another connection may
// reach another server. An endpoint that refused a batch works.
func (a *Attempt) readBody(
	ctx context.Context, resp *http.Response, r *Request, cancel context.CancelFunc,
) (reusable bool) {
	reusable = a.Failure() != bus.EndpointFailure
	limit := 0
	if r.KeepBody != nil && resp.StatusCode >= http.StatusOK { // the body of 101 is the connection
		limit = min(r.KeepBody(resp.StatusCode), maxBody)
	}
	if limit <= 0 && !reusable {
		return false
	}
	if resp.ContentLength == 0 {
		a.BodyComplete = limit > 0
		return reusable
	}
	if limit <= 0 || resp.StatusCode != http.StatusMultiStatus && !r.AwaitBody {
		timer := time.AfterFunc(bodyTimeout, cancel)
		defer timer.Stop()
	}
	if limit > 0 {
		a.keepBody(ctx, resp, limit)
	}
	return reusable && (a.BodyComplete || drain(resp))
}

// keepBody reads the part of a body to keep, in bytes. A body that ends after the time is up is not
// complete: the server may have ended it because the connection was closed.
func (a *Attempt) keepBody(ctx context.Context, resp *http.Response, limit int) {
	decoded, err := decode(resp)
	if err != nil {
		a.BodyErr = err
		return
	}
	body, err := io.ReadAll(io.LimitReader(decoded, int64(limit)+1))
	a.Body = body[:min(len(body), limit)]
	switch {
	case len(body) > limit:
		a.BodyErr = fmt.Errorf("is longer than %d bytes", limit)
	case ctx.Err() != nil:
		a.BodyErr = fmt.Errorf("did not come to its end in time, but breaks off after %d bytes", len(body))
	case err != nil:
		a.BodyErr = fmt.Errorf("breaks off after %d bytes: %w", len(body), err)
	}
	a.BodyComplete = a.BodyErr == nil
}

// decode returns a reader of the body without its content coding (RFC 9110, section 8.4). Requests
// ask for none, but some servers, or proxies before them, send gzip to all.
func decode(resp *http.Response) (io.Reader, error) {
	switch coding := strings.Join(resp.Header.Values("Content-Encoding"), ", "); strings.ToLower(coding) {
	case "", "identity":
		return resp.Body, nil
	case "gzip", "x-gzip":
		decoded, err := gzip.NewReader(resp.Body)
		switch {
		case errors.Is(err, io.EOF): // there is no body
			return resp.Body, nil
		case err != nil:
			return nil, fmt.Errorf("cannot be decoded from gzip: %w", err)
		}
		return decoded, nil
	default:
		return nil, fmt.Errorf("has the Content-Encoding %q, though identity was asked for", bus.Reason(coding))
	}
}

// drain reads the rest of a response, and reports whether it came to its end.
func drain(resp *http.Response) bool {
	if resp.ContentLength > maxDrain {
		return false
	}
	_, err := io.CopyN(io.Discard, resp.Body, maxDrain+1)
	return errors.Is(err, io.EOF)
}
