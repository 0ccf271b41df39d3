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

// patience is the longest pause that a bus may ask for; when it asks for more the caller gets the error.
const patience = time.Minute

// send sends a request until it is answered 2xx, fails for good, or has been sent often enough. A try that could not
// end before the context is not waited for.
func (c *Client) send(ctx context.Context, r request) (io.ReadCloser, error) {
	pauses := &backoff.ExponentialBackOff{
		InitialInterval: c.firstPause, MaxInterval: c.mostPause, Multiplier: 2, RandomizationFactor: 0.5,
	}
	for tries := 0; ; tries++ {
		body, err := c.attempt(ctx, r)
		if err == nil {
			return body, nil
		}
		answered, _ := errors.AsType[*Error](err)
		if tries > 0 && r.method == http.MethodDelete && answered != nil && answered.Status == http.StatusNotFound {
			return http.NoBody, nil // the try before did it, and its answer was lost
		}
		err = fmt.Errorf("%s: %w", r.what, err)
		if tries == c.retries || r.once || ctx.Err() != nil || !IsTemporary(err) {
			return nil, err
		}
		pause := pauses.NextBackOff()
		if answered != nil {
			if answered.RetryAfter > patience {
				return nil, err
			}
			pause += answered.RetryAfter
		}
		if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < pause {
			return nil, err
		}
		if !sleep(ctx, pause) {
			return nil, err
		}
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
