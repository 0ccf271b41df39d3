package rdbtest

import (
	"os/exec"
	"syscall"
)

// dieWithParent ends a child with the test's process, should that be ended without clean-up.
func dieWithParent(command *exec.Cmd) {
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
