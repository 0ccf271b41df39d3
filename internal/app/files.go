//go:build unix

package app

import (
	"log/slog"
	"syscall"
)

// openFiles is how many files and connections this process may have open, for the log; nothing if that is not known.
//
// Nothing here raises the soft limit: Go's runtime has, before main (package syscall, since Go 1.19), to one below the hard limit.
// It leaves the hard limit, which only an administrator raises, and what was lowered from outside since then.
func openFiles() slog.Attr {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return slog.Attr{}
	}
	return slog.Uint64("open_files", uint64(limit.Cur))
}
