//go:build !linux

package bench

import (
	"os/exec"
	"time"
)

// sleepUntil waits for a time, as well as the runtime's timers can.
func sleepUntil(due time.Time) { time.Sleep(time.Until(due)) }

// dieWithParent has no equivalent here.
func dieWithParent(*exec.Cmd) {}
