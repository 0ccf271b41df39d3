package rdbtest

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Limit returns a time limit for a measurement of a test. For `make latency` it is the given one,
// which holds on a quiet host. Otherwise it is so long that it holds on any host, and finds only
// hangs.
func Limit(quiet time.Duration) time.Duration {
	const slack = 20
	if os.Getenv("LATENCY") != "" {
		return quiet
	}
	return slack * quiet
}

// Promptly requires that one of several tries takes less than a [Limit]: slow code is slow each
// time, a host that is busy or stalls for a moment is not. A try returns its duration.
func Promptly(t testing.TB, quiet time.Duration, try func() time.Duration) {
	t.Helper()
	const minTries, timeout = 5, time.Minute // more tries if they are short
	limit := Limit(quiet)
	began, fastest := time.Now(), try()
	for tries := 1; fastest >= limit && (tries < minTries || time.Since(began) < timeout); tries++ {
		fastest = min(fastest, try())
	}
	require.Less(t, fastest, limit, "the fastest try")
}

// Took is how long a function takes, for [Promptly].
func Took(f func()) time.Duration {
	began := time.Now()
	f()
	return time.Since(began)
}
