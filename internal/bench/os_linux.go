package bench

import (
	"os/exec"
	"syscall"
	"time"
)

// sleepUntil waits for a time within some 0.1 ms. The runtime's own timers are up to 1 ms late on Linux when nothing
// else happens, which would count as the bus's latency.
func sleepUntil(due time.Time) {
	for {
		left := time.Until(due)
		if left <= 0 {
			return
		}
		request := syscall.NsecToTimespec(left.Nanoseconds())
		_ = syscall.Nanosleep(&request, nil) // interrupted: the loop goes on
	}
}

// dieWithParent ends a program with this process, should that be ended without clean-up.
func dieWithParent(command *exec.Cmd) {
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
