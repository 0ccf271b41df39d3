package store_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/queue"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store/storetest"
)

// TestSparesAreAliveAfterALostReply: a worker that never learnt of its spares, which have been
// silent for long, takes tasks ahead for them.
func TestSparesAreAliveAfterALostReply(t *testing.T) {
	t.Parallel()
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newAheadFixture(t, server, 1)
		f.take(13)
		again := f.Take(worker, 0)
		require.NoError(t, f.Heartbeat(t.Context(), storetest.After(40_000), worker))
		task := f.next(again, acknowledged, 40_000)
		require.Len(t, task.Ahead, queue.MaxAhead)
		requeued, err := f.Scrub(t.Context(), storetest.After(10_000), bus.QueueMain)
		require.NoError(t, err)
		assert.Zero(t, requeued, "they are being delivered")
	})
}

// TestAWorkerThatStopsLeavesNothing stops a worker that never learnt of its spares.
func TestAWorkerThatStopsLeavesNothing(t *testing.T) {
	t.Parallel()
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newAheadFixture(t, server, 1)
		f.take(13)
		requeued, err := f.Retire(t.Context(), append(f.Spares(worker), worker)...)
		require.NoError(t, err)
		assert.Equal(t, 1+queue.MaxAhead, requeued)
		assert.Empty(t, f.Redis.Keys(t.Context(), "jobs:pending:*").Val())
		assert.Empty(t, f.Redis.HKeys(t.Context(), "workers").Val())
		f.RequireSound()
	})
}

// TestAFullRedisTakesWhatWasTakenAhead completes tasks, gives them back and takes them ahead there.
func TestAFullRedisTakesWhatWasTakenAhead(t *testing.T) {
	server := rdbtest.Real(t)
	f := newAheadFixture(t, server, 1)
	task := f.take(24)
	require.NoError(t, f.Redis.ConfigSet(t.Context(), "maxmemory", "1").Err())
	got := numbers(t, task)[:3]
	task = f.next(task, allDone(2), 0)
	for ; task != nil; task = f.next(task, allDone(len(task.Ahead)), 0) {
		got = append(got, numbers(t, task)...)
		if len(got) == 11 {
			require.NotEmpty(t, task.Ahead)
			again := f.Take(worker, 0)
			assert.Empty(t, again.Ahead, "a lost reply")
			got = got[:len(got)-len(task.Ahead)]
			task = again
		}
	}
	assert.IsIncreasing(t, got)
	assert.Len(t, got, 22)
	require.NoError(t, f.Redis.ConfigSet(t.Context(), "maxmemory", "0").Err())
	f.RequireSound()
}
