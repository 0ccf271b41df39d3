package main

import (
	"bytes"
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/app"
	"routemaster/internal/bench"
)

func TestTheBenchmarksProgramsAreFound(t *testing.T) {
	_, err := launch(bench.Web)
	require.ErrorContains(t, err, "web must be beside rtm", "it is not beside the test")
	require.ErrorContains(t, err, "make build puts it there")
	command, err := launch(bench.Receiver, ":8443")
	require.NoError(t, err)
	assert.Equal(t, []string{"bench-helper", "receiver", ":8443"}, command.Args[1:])

	stopped, stop := context.WithCancel(t.Context())
	stop()
	for _, helper := range [][]string{{"receiver", "127.0.0.1:0"}, {"noop"}} {
		var stdout, stderr bytes.Buffer
		assert.Equal(t, app.ExitOK, run(stopped, append([]string{helperCommand}, helper...), &stdout, &stderr), stderr.String())
		assert.Contains(t, stdout.String(), `"Service":"http`)
	}
}
