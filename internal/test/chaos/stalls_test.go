package chaos

import (
	"encoding/json"
	"strings"
	"sync"
	"time"
)

// A busy host stalls now and then, so that timeouts come late or too early. A stall is a fault that
// is not planned, but it explains as much as the planned ones.
const (
	clockInterval = 10 * time.Millisecond
	minStall      = faultMargin // shorter ones explain nothing
)

// watch measures stalls until the function that it returns is called, which returns them.
func watch() (stop func() faults) {
	var stalls faults
	ended := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		ticker := time.NewTicker(clockInterval)
		defer ticker.Stop()
		for looked := time.Now(); ; {
			select {
			case <-ticker.C:
			case <-ended:
				return
			}
			now := time.Now()
			if now.Sub(looked) > minStall {
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

// stalled reports whether the host stalled between two times.
func (all faults) stalled(from, until time.Time) bool {
	for _, f := range all {
		if f.kind == stalled && f.began.Before(until) && f.ended.After(from) {
			return true
		}
	}
	return false
}

// lateResponses returns the responses that came too late for a worker, as the workers log them: on
// a busy host also some that the subscriber sent in time. They are as good as lost on their way.
func (c *chaos) lateResponses() (responses faults) {
	c.eachLogged(func(_, line string) {
		var e logEntry
		if err := json.Unmarshal([]byte(line), &e); err == nil && e.Msg == "failed to deliver" && strings.HasPrefix(e.Error, "no answer within ") {
			began := e.Time.Add(-time.Duration(e.Duration * float64(time.Second)))
			responses = append(responses, &fault{kind: tooLate, victim: proxyName("workers", e.Subscriber), began: began, ended: e.Time})
		}
	})
	return responses
}

// stalls is how often the host stalled, and for how long.
func (all faults) stalls() (times int, lasted time.Duration) {
	for _, f := range all {
		if f.kind == stalled {
			times++
			lasted += f.ended.Sub(f.began)
		}
	}
	return times, lasted
}
