package chaos

import (
	"sync"
	"time"
)

// A machine that is busy stalls now and then, and all that was to happen in time happens late.
// Nobody plans that; it is a fault like the others for who explains what is odd.
const (
	lookEvery  = 10 * time.Millisecond
	leastStall = faultMargin // what is shorter changes nothing
)

// watch looks at the clock all the time, until the function that it returns is called: that returns
// the stalls.
func watch() (stop func() faults) {
	var stalls faults
	ended := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		ticker := time.NewTicker(lookEvery)
		defer ticker.Stop()
		for looked := time.Now(); ; {
			select {
			case <-ticker.C:
			case <-ended:
				return
			}
			now := time.Now()
			if now.Sub(looked) > leastStall {
				stalls = append(stalls, &fault{kind: stalled, began: looked, ended: now})
			}
			looked = now
		}
	})
	return sync.OnceValue(func() faults {
		close(ended)
		watching.Wait()
		return stalls
	})
}

// stalled reports whether the machine stalled between two times.
func (all faults) stalled(from, until time.Time) bool {
	for _, f := range all {
		if f.kind == stalled && f.began.Before(until) && f.ended.After(from) {
			return true
		}
	}
	return false
}

// stalls is how often the machine stalled, and for how long.
func (all faults) stalls() (times int, lasted time.Duration) {
	for _, f := range all {
		if f.kind == stalled {
			times++
			lasted += f.ended.Sub(f.began)
		}
	}
	return times, lasted
}
