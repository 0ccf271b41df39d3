package telemetry

import "sync"

// maxChildren bounds the values of a label, because clients choose the names of topics. Further
// values are counted together, as other.
const (
	maxChildren = 2000
	other       = "(other)"
)

// children caches what a metric has for each value of a label, because Prometheus' own look-up is
// slower. It is safe for concurrent use.
type children[T any] struct {
	make  func(value string) T
	mu    sync.RWMutex
	known map[string]T
}

func (c *children[T]) of(value string) T {
	c.mu.RLock()
	child, ok := c.known[value]
	c.mu.RUnlock()
	if ok {
		return child
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.known) >= maxChildren {
		value = other
	}
	if child, ok = c.known[value]; !ok {
		if c.known == nil {
			c.known = map[string]T{}
		}
		child = c.make(value)
		c.known[value] = child
	}
	return child
}
