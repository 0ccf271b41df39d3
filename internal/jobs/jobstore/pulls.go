package jobstore

import (
	"time"

	"routemaster/internal/rdb"
)

// NewPullWaiter prepares to wait until there may be something to fetch, of whatever type. Nothing
// is said of a limit that was raised and of the like: who waits looks again once in a while. No
// wait takes longer than longest.
func (s *Store) NewPullWaiter(longest time.Duration) *rdb.StreamWaiter {
	return s.redis.NewStreamWaiter(s.keys.Pulls(), longest)
}
