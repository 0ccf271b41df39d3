package worker

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"routemaster/internal/bus"
)

func TestSlots(t *testing.T) {
	for _, c := range []struct{ threads, failing, untried int }{
		{1, 1, 0}, {2, 1, 0}, {3, 1, 1}, {4, 2, 1}, {5, 2, 1}, {8, 4, 2}, {32, 16, 8},
	} {
		s := newSlots(c.threads)
		for range c.failing {
			assert.Equal(t, bus.Failing, s.reserve(), "%d threads", c.threads)
		}
		for range c.untried {
			assert.Equal(t, bus.Untried, s.reserve(), "%d threads", c.threads)
		}
		for range 2 * c.threads { // these cost no slot
			assert.Equal(t, bus.Proven, s.reserve(), "%d threads", c.threads)
		}
		if c.threads > 1 {
			assert.GreaterOrEqual(t, 4*(c.threads-c.failing-c.untried), c.threads, "a quarter is left to the others")
		}
		s.release(bus.Failing)
		assert.Equal(t, bus.Failing, s.reserve(), "%d threads", c.threads)
		s.swap(bus.Failing, bus.Proven) // the job was another's
		assert.Equal(t, bus.Failing, s.reserve(), "%d threads", c.threads)
	}
}
