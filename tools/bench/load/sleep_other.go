//go:build !linux

package load

import "time"

// sleepUntil waits for a time, as precisely as the timers of the runtime can.
func sleepUntil(due time.Time) { time.Sleep(time.Until(due)) }
