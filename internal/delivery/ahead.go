package delivery

import (
	"time"

	"routemaster/internal/queue"
)

// ahead is how many batches of a subscriber may be taken ahead from now on, given how many may now
// and how long a delivery took: as many as fit into [queue.AheadTime]. It is nil if the number
// stays. The number taken together is a power of two. It changes by one step, and shrinks only if
// it was at least twice too large, so it changes seldom.
func ahead(now int, took time.Duration) *int {
	together := now + 1
	switch fit := int(queue.AheadTime / max(took, time.Microsecond)); {
	case fit >= 2*together:
		together *= 2
	case 2*fit < together && together > 1:
		together /= 2
	}
	if then := min(together-1, queue.MaxAhead); then != now {
		return &then
	}
	return nil
}
