//go:build unix

package app

import (
	"log/slog"
	"syscall"
)

// openFiles is how many files and connections this process may have open, for the log; empty if
// that is not known.
//
// The soft limit need not be raised here: the Go runtime raises it to the hard limit before main
// (package syscall, since Go 1.19). Only an administrator can raise the hard limit.
func openFiles() slog.Attr {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return slog.Attr{}
	}
	return slog.Uint64("open_files", uint64(limit.Cur))
}
