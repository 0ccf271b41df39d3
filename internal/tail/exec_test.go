package tail

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/client"
	"routemaster/client/receipt"
)

// commands is a tail that runs a command with a bound of its time, and what it prints.
func commands(command string, retries bool, timeout time.Duration) (*tail, *bytes.Buffer) {
	out := &bytes.Buffer{}
	return &tail{Options: Options{
		Out: out, Errors: out, Exec: Exec{Command: command, Retry: retries, Timeout: timeout},
	}}, out
}

var fourEvents = []client.Event{{URL: "0"}, {URL: "1"}, {URL: "2"}, {URL: "3"}}

func TestOnlyEventsWhoseCommandsFailAreDeliveredAgain(t *testing.T) {
	runs, _ := commands(`[ $RTM_URL = 0 -o $RTM_URL = 3 ]`, true, time.Minute)
	answer, ok := receipt.Of(runs.execute(t.Context(), fourEvents))
	require.True(t, ok)
	assert.JSONEq(t, `{"retry":[1,2]}`, string(answer))
	assert.Equal(t, []int64{2, 2}, []int64{runs.handled.Load(), runs.failed.Load()})

	runs, _ = commands("true", true, time.Minute)
	require.NoError(t, runs.execute(t.Context(), fourEvents))

	runs, said := commands("false", false, time.Minute)
	require.NoError(t, runs.execute(t.Context(), fourEvents[:1]), "without --exec-retry a failure is reported only")
	assert.Equal(t, "rtm: the command failed for  of 0: exit status 1\n", said.String())

	ended, end := context.WithCancel(t.Context())
	end()
	assert.ErrorIs(t, runs.execute(ended, fourEvents), context.Canceled)
}

func TestACommandMayTakeLongerThanTheBusWaits(t *testing.T) {
	for _, timeout := range []time.Duration{20 * time.Second, time.Minute} {
		runs, said := commands("true", true, timeout)
		runs.warnOfTimeout()
		assert.Equal(t, timeout == time.Minute, strings.HasPrefix(said.String(), "rtm: --exec-timeout is longer"), timeout)
	}
}

func TestCommandsThatWouldEndTooLateArePutOff(t *testing.T) {
	runs, said := commands("echo ran $RTM_URL; sleep 0.6; [ $RTM_URL != 0 ]", true, time.Second)
	answer, ok := receipt.Of(runs.execute(t.Context(), fourEvents))
	require.True(t, ok)
	assert.JSONEq(t, `{"retry":[0],"retry_from":1}`, string(answer))
	assert.NotContains(t, said.String(), "ran 1")
	assert.Contains(t, said.String(), "rtm: 3 of the 4 events of a delivery are put off: ")
}
