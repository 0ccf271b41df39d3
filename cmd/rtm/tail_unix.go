//go:build unix

package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// inOwnGroup has a command killed with all that it has started, and keeps Ctrl-C from it, which is for the tail alone.
func inOwnGroup(command *exec.Cmd) {
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }
}

// unreadInterval is how long one look at the output takes, if nothing happens: the end is seen at once, the context's
// after that.
const unreadInterval = 200 * time.Millisecond

// awaitUnread waits until nobody reads an output any more, and then returns [syscall.EPIPE]: a write would say so too, but
// without events there is none. It returns nil once the context is done, or if the output is not of that kind.
func awaitUnread(ctx context.Context, out io.Writer) error {
	file, ok := out.(*os.File)
	if !ok {
		return nil
	}
	for ctx.Err() == nil {
		look := []unix.PollFd{{Fd: int32(file.Fd())}} // of itself it tells errors and hang-ups
		n, err := unix.Poll(look, int(unreadInterval.Milliseconds()))
		switch {
		case err != nil && !errors.Is(err, unix.EINTR), n > 0 && look[0].Revents&unix.POLLNVAL != 0:
			return nil
		case n > 0:
			return syscall.EPIPE
		}
	}
	return nil
}
