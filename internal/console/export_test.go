package console

import (
	"testing"
	"time"
)

// CheckSessionsEvery sets how often a live tail checks its session, for a test.
func CheckSessionsEvery(t *testing.T, d time.Duration) {
	before := sessionCheck
	sessionCheck = d
	t.Cleanup(func() { sessionCheck = before })
}
