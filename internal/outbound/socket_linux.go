package outbound

import "golang.org/x/sys/unix"

// hungUp reports whether the other side has closed a socket.
func hungUp(fd uintptr) bool {
	ask := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
	n, err := unix.Poll(ask, 0)
	return err == nil && n > 0 && ask[0].Revents != 0
}

// unacknowledged reports whether the other side's system has not acknowledged all bytes written to
// a socket. Each packet from the other side acknowledges the bytes that had arrived when it was
// sent.
func unacknowledged(fd uintptr) bool {
	n, err := unix.IoctlGetInt(int(fd), unix.TIOCOUTQ)
	return err == nil && n > 0
}
