package rdb_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/rdb"
	"routemaster/internal/rdb/rdbtest"
)

func TestMemory(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		p := server.Open(t).Partition("")
		if server.IsEmbedded() {
			_, err := p.Memory(t.Context())
			assert.ErrorIs(t, err, rdb.ErrMemoryUnknown)
			return
		}
		memory, err := p.Memory(t.Context())
		require.NoError(t, err)
		assert.Greater(t, memory.Used, int64(100_000))
		assert.Zero(t, memory.Max)
		assert.False(t, memory.Evicts)
		require.NoError(t, server.Raw.ConfigSet(t.Context(), "maxmemory", "12345678").Err())
		require.NoError(t, server.Raw.ConfigSet(t.Context(), "maxmemory-policy", "allkeys-lru").Err())
		memory, err = p.Memory(t.Context())
		require.NoError(t, err)
		assert.Equal(t, int64(12_345_678), memory.Max)
		assert.True(t, memory.Evicts)
		server.Kill(t)
		_, err = p.Memory(t.Context())
		assert.ErrorIs(t, err, bus.ErrUnavailable)
	})
}

func TestAUserWhoMayNotAskForMemory(t *testing.T) {
	server := rdbtest.Real(t)
	ctx := t.Context()
	require.NoError(t, server.Raw.Do(ctx, "acl", "setuser", "limited", "on", ">pw", "~*", "&*", "+@all", "-info").Err())
	var log rdbtest.Buffer
	client := server.Open(t, log.LogTo, func(o *rdb.Options) { o.URL = strings.Replace(o.URL, "redis://", "redis://limited:pw@", 1) })
	_, err := client.Partition("").Memory(ctx)
	assert.ErrorIs(t, err, rdb.ErrMemoryUnknown)
	assert.ErrorContains(t, err, "NOPERM")
	assert.NoError(t, client.Ping(ctx))
	assert.NotContains(t, log.String(), "redis unavailable")
}
