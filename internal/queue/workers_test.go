package queue_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/rdb/rdbtest"
)

// TestOnlyKnownWorkersAreScrubbedAsTheyStop because a process has hundreds of spares.
func TestOnlyKnownWorkersAreScrubbedAsTheyStop(t *testing.T) {
	server := rdbtest.Real(t)
	d, ctx := newDepot(t, server, 1), t.Context()
	d.post("home", "1")
	d.take(ann, "1")
	require.NoError(t, d.Heartbeat(ctx, start, ben))
	stopping := []bus.WorkerID{ann, ben}
	for range 98 {
		stopping = append(stopping, bus.NewWorkerID())
	}
	require.NoError(t, server.Raw.ConfigResetStat(ctx).Err())
	requeued, err := d.Retire(ctx, stopping...)
	require.NoError(t, err)
	assert.Equal(t, 1, requeued)
	assert.Zero(t, server.Raw.Exists(ctx, d.keys.Workers(), d.keys.PendingIndex(bus.QueueMain)).Val())
	stats, err := server.Raw.Info(ctx, "commandstats").Result()
	require.NoError(t, err)
	assert.Regexp(t, `cmdstat_hmget:calls=1,`, stats)
	assert.Regexp(t, `cmdstat_hget:calls=2,`, stats, "of each script")
	_, err = d.Retire(ctx)
	require.NoError(t, err, "of a worker without threads")
}
