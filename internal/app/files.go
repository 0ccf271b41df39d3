//go:build unix

package app

import (
	"math"
	"syscall"
)

// openFileLimit is how many files and connections this process may have open; 0 if that is not
// known, or not limited.
//
// The soft limit need not be raised here: the Go runtime raises it to the hard limit before main
// (package syscall, since Go 1.19). Only an administrator can raise the hard limit.
func openFileLimit() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0
	}
	if limit.Cur >= math.MaxInt32 {
		return 0
	}
	return int(limit.Cur)
}
