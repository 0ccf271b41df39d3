package jobs

import (
	"context"
	"time"

	"routemaster/internal/rdb"
)

// PullWaiter waits until there may be something to fetch. It is not safe for concurrent use, but
// for Close.
type PullWaiter struct{ *rdb.StreamWaiter }

// NewPullWaiter prepares to wait. Nothing is said of a limit that was raised and of the like: who
// waits looks again once in a while. No wait takes longer than longest.
func (s *Store) NewPullWaiter(longest time.Duration) PullWaiter {
	return PullWaiter{s.redis.NewStreamWaiter(s.keys.JobPulls(), longest)}
}

// maxNotices is how many notices are kept, as in announce of lua/lib/types.lua: who reads as many
// may have missed others.
const maxNotices = 100

// Wait returns the types of which there may be something to fetch, some more than once, as soon as
// there are any, at the latest after a time. It returns none if all types may be meant.
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
