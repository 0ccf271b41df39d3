package rdbtest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestRestartDropsATransactionHalfWritten kills a server that has written a part of a script's
// effects.
func TestRestartDropsATransactionHalfWritten(t *testing.T) {
	server := Real(t, "--appendonly", "yes", "--appendfsync", "always")
	ctx := t.Context()
	require.NoError(t, server.Raw.Set(ctx, "before", "1", 0).Err())
	server.Kill(t)
	files, err := filepath.Glob(filepath.Join(server.processes[0].dir, "appendonlydir", "*.incr.aof"))
	require.NoError(t, err)
	if len(files) == 0 {
		t.Skip("a Redis before 7 has its append-only file elsewhere")
	}
	file, err := os.OpenFile(files[0], os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = file.WriteString("*1\r\n$5\r\nMULTI\r\n*3\r\n$3\r\nSET\r\n$4\r\nhalf\r\n$1\r\n1\r\n*3\r\n$3\r\nSE")
	require.NoError(t, err)
	require.NoError(t, file.Close())

	server.Restart(t)
	require.NoError(t, server.Raw.Set(ctx, "after", "1", 0).Err())
	server.Kill(t)
	server.Restart(t)
	for key, want := range map[string]int64{"before": 1, "after": 1, "half": 0} {
		got, err := server.Raw.Exists(ctx, key).Result()
		require.NoError(t, err)
		assert.Equal(t, want, got, key)
	}
}
