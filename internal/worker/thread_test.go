package worker

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"routemaster/internal/bus"
)

// TestAThreadThatIsReusedWasNotedAsAlive requires that a thread that ended and is started again was
// in the last heartbeat: or it might be taken for dead before the next.
func TestAThreadThatIsReusedWasNotedAsAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reused := 0
		for age := time.Duration(0); age < bus.DeadAfter; age += time.Second {
			var ts threads
			first := ts.begin()
			heartbeat := time.Now()
			ts.end(first)
			for ended := time.Now(); time.Since(ended) < age; time.Sleep(time.Second) {
				if time.Since(heartbeat) == heartbeatInterval && slices.Contains(ts.alive(), first.id) {
					heartbeat = time.Now()
				}
			}
			if ts.begin() == first {
				reused++
				assert.LessOrEqual(t, time.Since(heartbeat), heartbeatInterval, "%v after it ended", age)
			}
		}
		assert.NotZero(t, reused)
	})
}

func TestAThreadIsNotReusedOnceItIsSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ts threads
		first := ts.begin()
		ts.end(first)
		time.Sleep(reuseTimeout)
		assert.Empty(t, ts.alive())
		second := ts.begin()
		assert.NotSame(t, first, second)
		assert.Equal(t, []bus.WorkerID{second.id}, ts.alive())
	})
}
