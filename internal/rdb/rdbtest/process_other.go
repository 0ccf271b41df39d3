//go:build !linux

package rdbtest

import "os/exec"

// dieWithParent has no equivalent here.
func dieWithParent(*exec.Cmd) {}
