package runner

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestLimiter(t *testing.T) {
	now := time.UnixMilli(1_700_000_000_000)
	for threads, limit := range map[int]int{1: 1, 2: 1, 3: 1, 4: 2, 32: 16} {
		l, slow, other := newLimiter(threads), stateID{"m", "slow"}, stateID{"m", "other"}
		begins := func(id stateID) bool {
			_, ok := l.begin(id, now)
			return ok
		}
		for range limit {
			assert.True(t, begins(slow), "%d threads", threads)
		}
		assert.False(t, begins(slow), "%d threads", threads)
		assert.True(t, begins(other), "%d threads", threads)
		l.end(slow)
		assert.True(t, begins(slow), "%d threads", threads)
		assert.False(t, begins(slow), "%d threads", threads)
	}
}

func TestLabelsThatArePutOffComeOneByOne(t *testing.T) {
	l, now, id := newLimiter(1), time.UnixMilli(1_700_000_000_000), stateID{"m", "slow"}
	l.begin(id, now)
	wait := func() time.Duration {
		retryAt, _ := l.begin(id, now)
		return retryAt.Sub(now)
	}
	assert.Equal(t, time.Second, wait())
	assert.Equal(t, time.Second+time.Millisecond, wait())
	for range 60_000 {
		wait()
	}
	assert.Equal(t, time.Minute, wait())
	now = now.Add(time.Hour)
	assert.Equal(t, time.Second, wait())
}
