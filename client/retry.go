package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// maxRetryAfter is the longest pause that the bus may ask for. When it asks for more, the caller
// gets the error.
const maxRetryAfter = time.Minute

// send sends a request until the response is 2xx, the failure is permanent, or there are no retries
// left. It returns the last error at once if the next pause would outlast the context's deadline.
func (c *Client) send(ctx context.Context, r request) (io.ReadCloser, error) {
	pauses := c.pauses()
	for tries := 0; ; tries++ {
		body, err := c.attempt(ctx, r)
		if err == nil {
			return body, nil
		}
		refused, _ := errors.AsType[*Error](err)
		if tries > 0 && r.method == http.MethodDelete && refused != nil && refused.Status == http.StatusNotFound {
			return http.NoBody, nil // an earlier try succeeded, and its response was lost
		}
		err = fmt.Errorf("%s: %w", r.operation, err)
		if tries == c.retries || r.noRetry || ctx.Err() != nil || !IsTemporary(err) {
			return nil, err
		}
		pause := pauses.NextBackOff()
		if refused != nil {
			if refused.RetryAfter > maxRetryAfter {
				return nil, err
			}
			pause += refused.RetryAfter
		}
		if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < pause {
			return nil, err
		}
		if !sleep(ctx, pause) {
			return nil, err
		}
	}
}

// pauses returns the pauses between tries.
func (c *Client) pauses() *backoff.ExponentialBackOff {
	return &backoff.ExponentialBackOff{
		InitialInterval: c.firstPause, MaxInterval: c.maxPause, Multiplier: 2, RandomizationFactor: 0.5,
	}
}

// sleep waits, and reports false if the context was done first.
func sleep(ctx context.Context, pause time.Duration) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
