package stack

import (
	"os/exec"
	"syscall"
)

// dieWithParent has a program killed with this process, should this process be killed.
func dieWithParent(command *exec.Cmd) {
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
