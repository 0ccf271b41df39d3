package metrics

import (
	"context"
	"sync"
	"time"
)

// A scrape waits for Redis for as long as scrapeTimeout. What it has read serves other scrapes
// for as long as scrapeTTL. Of a bus with partitions one that does not answer within
// snapshotTimeout is left out, so that there is time for the rest.
const (
	scrapeTimeout   = 500 * time.Millisecond
	snapshotTimeout = 400 * time.Millisecond
	scrapeTTL       = time.Second
)

// shared makes scrapes share what one of them has read from Redis.
type shared[T any] struct {
	mu     sync.Mutex // guards the fields below
	readAt time.Time
	last   T
	err    error
}

// read calls a function that reads from Redis, unless another scrape has just done that.
func (s *shared[T]) read(fromRedis func(context.Context) (T, error)) (T, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.readAt.IsZero() && time.Since(s.readAt) < scrapeTTL {
		return s.last, s.err
	}
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()
	s.last, s.err = fromRedis(ctx)
	s.readAt = time.Now()
	return s.last, s.err
}
