package bustest

import (
	"sync"
	"sync/atomic"
	"testing"
)

// Load is requests that clients repeat beside a test.
type Load struct {
	isOver  atomic.Bool
	running sync.WaitGroup
}

// NewLoad returns a load that ends with the test, if not before.
func NewLoad(t testing.TB) *Load {
	l := &Load{}
	t.Cleanup(l.End)
	return l
}

// Repeat calls a function, one time after the other, until the load ends.
func (l *Load) Repeat(do func()) {
	l.running.Go(func() {
		for !l.isOver.Load() {
			do()
		}
	})
}

// End ends the load, and waits for requests under way.
func (l *Load) End() {
	l.isOver.Store(true)
	l.running.Wait()
}
