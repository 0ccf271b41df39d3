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

// inOwnGroup runs a command in a process group: it is killed with everything it has started, and
// Ctrl-C reaches the tail alone.
func inOwnGroup(command *exec.Cmd) {
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }
}

// pollInterval is how long one poll of the output lasts. A closed output ends it at once, the end
// of the context does not.
const pollInterval = 200 * time.Millisecond

// awaitClosed waits until the reader of an output has closed it, and returns [syscall.EPIPE]. A
// write would fail too, but without events there is none. It returns nil once the context is done,
// or if the output cannot be polled.
func awaitClosed(ctx context.Context, out io.Writer) error {
	file, ok := out.(*os.File)
	if !ok {
		return nil
	}
	for ctx.Err() == nil {
		polled := []unix.PollFd{{Fd: int32(file.Fd())}} // errors and hang-ups are always polled
		n, err := unix.Poll(polled, int(pollInterval.Milliseconds()))
		switch {
		case err != nil && !errors.Is(err, unix.EINTR), n > 0 && polled[0].Revents&unix.POLLNVAL != 0:
			return nil
		case n > 0:
			return syscall.EPIPE
		}
	}
	return nil
}
