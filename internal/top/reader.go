package top

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"routemaster/client"
	"routemaster/internal/overview"
)

// readTimeout bounds a request. A bus that takes longer counts as unavailable.
const readTimeout = 5 * time.Second

// Reader reads how a bus is, by GET /overview.
type Reader struct {
	bus     *client.Client
	timeout time.Duration
}

// NewReader makes a reader of a bus. The client should not retry, because the next read does.
func NewReader(c *client.Client) *Reader { return &Reader{bus: c, timeout: readTimeout} }

// Close closes the connections of the client.
func (r *Reader) Close() { r.bus.CloseIdleConnections() }

// Read returns the figures of the bus within 5 s, with At in the operator's own zone.
func (r *Reader) Read(ctx context.Context) (f overview.Figures, err error) {
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	_, err = r.bus.Call(ctx, client.Request{Operation: "read the overview", Method: http.MethodGet, Path: "/overview"}, &f)
	answered, ok := errors.AsType[*client.Error](err)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return f, fmt.Errorf("no answer within %v", r.timeout)
	case ok && answered.Status == http.StatusNotFound:
		return f, fmt.Errorf("%w; there is no bus at this address, or it is older than this rtm, and has no GET /overview", err)
	}
	f.At = f.At.Local()
	return f, err
}

// Find returns the worst problem of the bus that is of one of some rules. It is false if there is
// none, or the bus cannot be read.
func (r *Reader) Find(ctx context.Context, rules ...string) (overview.Problem, bool) {
	figures, err := r.Read(ctx)
	i := slices.IndexFunc(figures.Problems, func(p overview.Problem) bool { return slices.Contains(rules, p.Rule) })
	if err != nil || i < 0 {
		return overview.Problem{}, false
	}
	return figures.Problems[i], true
}
