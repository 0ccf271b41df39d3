package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/app"
)

// TestThatNoWorkerHasThreadsIsSaid has a job and a label wait, and the only worker of the bus have
// no threads for either.
func TestThatNoWorkerHasThreadsIsSaid(t *testing.T) {
	b := startBus(t, func(c *app.Config) { c.JobThreads, c.MachineThreads = 0, 0 })
	do := func(args ...string) (out, said string) {
		t.Helper()
		status, out, said := b.rtm(t, rootKey, args...)
		require.Equal(t, app.ExitOK, status, said)
		return out, said
	}
	do("job", "type", "add", "ship", "--strategy", "at_least_once", "--attempts", "3", "--concurrency", "1", "--url", "https://ship.example/")
	do("job", "put", "ship")
	do("machine", "apply", welcome, "--yes")
	do("label", "add", "welcome", "ann", "--wait", "0s")
	require.Eventually(t, func() bool {
		out, _ := do("job", "type", "show", "ship")
		return strings.Contains(out, "\nwhy\tno worker runs jobs, since all have ROUTEMASTER_JOB_THREADS=0: ")
	}, soon, 10*time.Millisecond)
	require.Eventually(t, func() bool {
		_, said := do("label", "show", "welcome", "ann")
		return strings.HasPrefix(said, "rtm: no label moves now: No worker runs state machines. No label moves. ")
	}, soon, 100*time.Millisecond)
	out, _ := do("top", "--once", "--json")
	assert.Contains(t, out, `"no-job-threads"`)
	assert.Contains(t, out, `"no-machine-threads"`)
}
