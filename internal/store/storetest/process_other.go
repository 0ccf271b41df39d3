//go:build !linux

package storetest

import "os/exec"

// dieWithParent has no equivalent here.
func dieWithParent(*exec.Cmd) {}
