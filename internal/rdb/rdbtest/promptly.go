package rdbtest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Promptly requires that one of several tries takes less than a limit: slow code is slow each time,
// a host that is busy or stalls for a moment is not. A try returns its duration.
func Promptly(t testing.TB, limit time.Duration, try func() time.Duration) {
	t.Helper()
	const minTries, timeout = 5, time.Minute // more tries if they are short
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
