package test

import (
	"sync"
	"sync/atomic"
	"testing"
)

// traffic is what clients do beside a test, again and again.
type traffic struct {
	isOver  atomic.Bool
	running sync.WaitGroup
}

// newTraffic returns traffic that ends with the test, if not before.
func newTraffic(t *testing.T) *traffic {
	x := &traffic{}
	t.Cleanup(x.end)
	return x
}

// repeat calls a function, one time after the other, until the traffic ends.
func (x *traffic) repeat(do func()) {
	x.running.Go(func() {
		for !x.isOver.Load() {
			do()
		}
	})
}

// end ends the traffic, and waits for what goes on.
func (x *traffic) end() {
	x.isOver.Store(true)
	x.running.Wait()
}
