package main

import (
	"bytes"
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/app"
	"routemaster/internal/bench/stack"
)

func TestTheBenchmarksProgramsAreFound(t *testing.T) {
	_, err := launch(stack.Web)
	require.ErrorContains(t, err, "web must be beside rtm", "it is not beside the test")
	require.ErrorContains(t, err, "make build puts it there")
	command, err := launch(stack.Receiver, ":8443", ":8444")
	require.NoError(t, err)
	assert.Equal(t, []string{"bench-helper", "receiver", ":8443", ":8444"}, command.Args[1:])

	stopped, stop := context.WithCancel(t.Context())
	stop()
	for _, helper := range [][]string{{"receiver", "127.0.0.1:0", "127.0.0.1:0"}, {"noop", "127.0.0.1:0"}} {
		var stdout, stderr bytes.Buffer
		assert.Equal(t, app.ExitOK, run(stopped, append([]string{helperCommand}, helper...), &stdout, &stderr), stderr.String())
	}
	var stdout, stderr bytes.Buffer
	assert.Equal(t, app.ExitFailed, run(t.Context(), []string{helperCommand, "receiver", "127.0.0.1:0"}, &stdout, &stderr))
	assert.Contains(t, stderr.String(), `no program "receiver" with 1 addresses`)
}
