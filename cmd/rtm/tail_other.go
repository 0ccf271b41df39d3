//go:build !unix

package main

import (
	"context"
	"io"
	"os/exec"
)

// inOwnGroup does nothing here: only the command itself is killed.
func inOwnGroup(*exec.Cmd) {}

// awaitUnread does nothing here: the next write says it.
func awaitUnread(context.Context, io.Writer) error { return nil }
