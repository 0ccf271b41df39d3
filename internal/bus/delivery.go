package bus

import "time"

// Health points of a subscriber: it starts with the most there are.
const (
	MinHealth = 0
	MaxHealth = 100
)

// firstBackoff is the wait after the first failed attempt, before jitter.
const firstBackoff = 200 * time.Millisecond

// Backoff is how long a batch waits after its attempts-th attempt failed:
// min(most, 100 ms · 2^attempts), less up to half of it by chance, so that
// batches that failed together do not come back together. Chance is in [0, 1).
func Backoff(attempts int, most time.Duration, chance float64) time.Duration {
	wait := firstBackoff
	for ; attempts > 1 && wait < most; attempts-- {
		wait *= 2
	}
	wait = min(wait, most)
	return wait - time.Duration(chance*float64(wait)/2)
}
