package rdb_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/rdb"
	"routemaster/internal/rdb/rdbtest"
)

// done is a script that finds its work done, and does not write.
var done = rdb.NewScript(nil, `return {1}`)

// TestWhatWasDoneBeforeIsConfirmedToo has a change find its work done on a connection without
// writes, while the replica does not have it yet. WAIT alone would take it for confirmed in engines
// that are newer than Redis 7.0.
func TestWhatWasDoneBeforeIsConfirmedToo(t *testing.T) {
	master, replica := rdbtest.Real(t, "--repl-diskless-sync-delay", "0"), rdbtest.Real(t)
	replica.Follow(t, master)
	ctx := t.Context()
	open := func() (alone, partition *rdb.Partition) {
		client := master.Open(t, func(o *rdb.Options) { o.MinReplicas = 1 })
		return client.Partition(""), client.Partitions("", 3)[1]
	}
	alone, partition := open()
	require.NoError(t, partition.Release(ctx))
	requireConfirmed := func() {
		t.Helper()
		for _, p := range []*rdb.Partition{alone, partition} {
			require.Eventually(t, func() bool { return p.Change(ctx, done).Changed }, time.Minute, time.Millisecond)
		}
	}
	requireConfirmed()
	require.NoError(t, master.Raw.ConfigSet(ctx, "maxmemory-policy", "volatile-lru").Err())
	require.NoError(t, master.Raw.ConfigSet(ctx, "maxmemory", "1").Err())
	require.ErrorContains(t, alone.Change(ctx, change).Err, "OOM")
	requireConfirmed() // or no command that frees memory would be
	for range 2 {
		replicas, err := partition.Hold(ctx, 1)
		require.NoError(t, err)
		assert.Equal(t, 1, replicas)
	}
	assert.Empty(t, master.Raw.Keys(ctx, "*").Val(), "nothing is left of it")
	require.NoError(t, master.Raw.ConfigSet(ctx, "maxmemory", "0").Err())
	require.NoError(t, partition.Release(ctx))

	replica.Freeze(t)
	defer replica.Thaw(t)
	alone, partition = open()
	assert.ErrorContains(t, alone.Change(ctx, done).Err, "too few replicas")
	assert.ErrorContains(t, partition.NewGroup().Change(ctx, done).Err, "too few replicas")
	for range 2 { // the second finds it held
		_, partition = open()
		replicas, err := partition.Hold(ctx, 1)
		require.NoError(t, err)
		assert.Zero(t, replicas)
	}
}
