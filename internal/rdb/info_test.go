package rdb_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/rdb"
	"routemaster/internal/rdb/rdbtest"
)

func TestMain(m *testing.M) { rdbtest.Main(m) }

func TestMemory(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		client := server.Open(t)
		if server.IsEmbedded() {
			_, err := client.Memory(t.Context())
			assert.ErrorIs(t, err, rdb.ErrMemoryUnknown)
			return
		}
		memory, err := client.Memory(t.Context())
		require.NoError(t, err)
		assert.Greater(t, memory.Used, int64(100_000))
		assert.Zero(t, memory.Max)
		assert.False(t, memory.Evicts)
		require.NoError(t, server.Raw.ConfigSet(t.Context(), "maxmemory", "12345678").Err())
		require.NoError(t, server.Raw.ConfigSet(t.Context(), "maxmemory-policy", "allkeys-lru").Err())
		memory, err = client.Memory(t.Context())
		require.NoError(t, err)
		assert.Equal(t, int64(12_345_678), memory.Max)
		assert.True(t, memory.Evicts)
		server.Kill(t)
		_, err = client.Memory(t.Context())
		assert.ErrorIs(t, err, bus.ErrUnavailable)
	})
}
