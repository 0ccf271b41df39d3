package load

import (
	"syscall"
	"time"
)

// sleepUntil waits for a time, to some 0.1 ms. On Linux the timers of the runtime are up to 1 ms
// late on an idle host, which would count as latency of the bus.
func sleepUntil(due time.Time) {
	for {
		left := time.Until(due)
		if left <= 0 {
			return
		}
		request := syscall.NsecToTimespec(left.Nanoseconds())
		_ = syscall.Nanosleep(&request, nil) // if it is interrupted, the loop goes on
	}
}
