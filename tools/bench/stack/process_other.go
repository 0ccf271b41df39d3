//go:build !linux

package stack

import "os/exec"

// dieWithParent does nothing: only Linux can do that.
func dieWithParent(*exec.Cmd) {}
