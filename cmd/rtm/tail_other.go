//go:build !unix

package main

import (
	"context"
	"io"
	"os/exec"
)

// inOwnGroup does nothing: only the command itself is killed.
func inOwnGroup(*exec.Cmd) {}

// awaitClosed does nothing: the next write fails.
func awaitClosed(context.Context, io.Writer) error { return nil }
