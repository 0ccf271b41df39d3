package load

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestRatesBetweenSamples(t *testing.T) {
	at := func(seconds float64) time.Time {
		return time.UnixMilli(0).Add(time.Duration(seconds * float64(time.Second)))
	}
	s := Samples{{at(0), 0}, {at(1), 0}, {at(2), 100}, {at(4), 100}, {at(5), 300}}
	assert.Equal(t, at(1.5), s.Reached(50))
	assert.Equal(t, at(2), s.Reached(100))
	assert.Equal(t, at(4.5), s.Reached(200))
	assert.InDelta(t, 199/3.5, s.Rate(1, 200), 1, "what came before the first does not count, a stall does")
}
