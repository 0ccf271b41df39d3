package jobs

import (
	"math"
	"time"
)

// maxBackoff bounds the wait before a job is tried again, in s.
const maxBackoff = 3600

// Backoff is how long a job waits after a failed attempt: 2 s after the first, twice as long after
// each other, at most an hour, less up to a fifth by chance, from 0 to below 1. Left is how many of
// its type's attempts are left. It is as backoff of lua/lib/steps.lua.
func Backoff(attempts, left int, chance float64) time.Duration {
	failures := max(attempts-left, 1)
	seconds := math.Min(math.Pow(2, float64(failures)), maxBackoff)
	return time.Duration(seconds * (1 - chance/5) * float64(time.Second))
}

// Hold is how long the jobs of a type are held back when its service asks for time, but not for how
// much: 0.5 s at first, twice as long each time in a row, at most a minute. Times counts this one.
func Hold(times int) time.Duration {
	return min(time.Minute, 500*time.Millisecond<<min(max(times-1, 0), 10))
}
