package stack

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheBenchmarksProgramsAreFound(t *testing.T) {
	s := newStack(Options{Programs: t.TempDir()})
	_, err := s.command(Web)
	require.ErrorContains(t, err, filepath.Join(s.options.Programs, Web))
	require.ErrorContains(t, err, "make build puts it there")
	command, err := s.command(Receiver, ":8443", ":8444")
	require.NoError(t, err)
	program, args, ok := IsProgram(command.Args[1:])
	require.True(t, ok)
	assert.Equal(t, Receiver, program)
	assert.Equal(t, []string{":8443", ":8444"}, args)
	_, _, ok = IsProgram([]string{"--scenario", "ingest"})
	assert.False(t, ok)

	stopped, stop := context.WithCancel(t.Context())
	stop()
	require.NoError(t, RunProgram(stopped, Receiver, "127.0.0.1:0", "127.0.0.1:0"))
	require.NoError(t, RunProgram(stopped, Noop, "127.0.0.1:0"))
	require.EqualError(t, RunProgram(stopped, Receiver, "127.0.0.1:0"), `no program "receiver" with 1 arguments`)
}
