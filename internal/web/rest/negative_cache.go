package rest

import (
	"sync"
	"time"
)

const (
	// negativeCacheTTL is how long credentials that Redis did not know are refused without asking
	// again.
	negativeCacheTTL = 500 * time.Millisecond
	// maxNegative bounds the memory for them. At 80 bytes each they take 700 KB at most.
	maxNegative = 8192
)

// negativeCache has the digests of credentials that Redis did not know a moment ago.
type negativeCache struct {
	now func() time.Time

	mu        sync.Mutex
	refusedAt map[secretDigest]time.Time
	// generation counts how often the cache was cleared.
	generation int
}

func newNegativeCache(now func() time.Time) *negativeCache {
	return &negativeCache{now: now, refusedAt: map[secretDigest]time.Time{}}
}

// look reports whether credentials were unknown a moment ago. If not, remember notes that they are
// unknown now; it does nothing if a token was added meanwhile.
func (c *negativeCache) look(credentials secretDigest) (unknown bool, remember func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now, generation := c.now(), c.generation
	refusedAt, ok := c.refusedAt[credentials]
	if age := now.Sub(refusedAt); ok && age >= 0 && age < negativeCacheTTL {
		return true, nil
	}
	return false, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.generation != generation {
			return
		}
		if len(c.refusedAt) >= maxNegative {
			clear(c.refusedAt) // most have expired; each of the others costs one look-up more
		}
		c.refusedAt[credentials] = now
	}
}

// clear empties the cache, because a token was added.
func (c *negativeCache) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.refusedAt)
	c.generation++
}
