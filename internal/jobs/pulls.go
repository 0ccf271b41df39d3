package jobs

import (
	"context"
	"time"

	"routemaster/internal/rdb"
)

// PullWaiter waits until there may be something to fetch. It is not safe for concurrent use, but
// for Close.
type PullWaiter struct{ *rdb.StreamWaiter }

// NewPullWaiter prepares to wait. Some changes, such as a raised limit, are not announced: callers
// look again once in a while. No wait takes longer than longest.
func (s *Store) NewPullWaiter(longest time.Duration) PullWaiter {
	return PullWaiter{s.redis.NewStreamWaiter(s.keys.JobPulls(), longest)}
}

// maxNotices is how many notices are kept, as in announce of lua/lib/types.lua: a caller that reads
// as many may have missed others.
const maxNotices = 100

// Wait waits for types with jobs to fetch, at most a time, and returns them, some more than once.
// It returns none if any type may have jobs.
func (w PullWaiter) Wait(ctx context.Context, longest time.Duration) ([]TypeName, error) {
	notices, err := w.StreamWaiter.Wait(ctx, longest)
	if err != nil || len(notices) >= maxNotices {
		return nil, err
	}
	names := make([]TypeName, len(notices))
	for i, notice := range notices {
		names[i] = TypeName(notice)
	}
	return names, nil
}
