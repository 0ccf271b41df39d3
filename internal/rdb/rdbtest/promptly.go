package rdbtest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Promptly requires that one of some tries takes less than a limit: what is slow by itself is
// slow each time, a machine that is busy or stalls for a moment is not. A try returns what it
// took.
func Promptly(t testing.TB, limit time.Duration, try func() time.Duration) {
	t.Helper()
	const least, within = 5, 10 * time.Second // so many tries, or more, if they are short
	began, fastest := time.Now(), try()
	for tries := 1; fastest >= limit && (tries < least || time.Since(began) < within); tries++ {
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
