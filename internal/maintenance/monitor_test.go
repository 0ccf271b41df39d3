package maintenance

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"routemaster/internal/bus"
)

func TestWhatCountersHaveGrownBy(t *testing.T) {
	a, b, c, d := bus.NewCounter("a"), bus.NewCounter("b"), bus.NewCounter("c"), bus.NewCounter("d")
	now := map[bus.Counter]int64{a: 5, b: 5, c: 3, d: 2}
	assert.Empty(t, growth(nil, now), "the first time nothing is known")
	assert.Equal(t, map[bus.Counter]int64{a: 2, c: 3, d: 2}, growth(map[bus.Counter]int64{a: 3, b: 5, c: 9}, now),
		"it has grown; it has not; it began anew; it is new")
}
