package store_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store/storetest"
)

func TestAScrubbedWorkerDoesNoHarm(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		ctx := t.Context()
		f.AddSubscriber(storetest.Alice, 0, 1, "widgets")
		f.PublishEvents("widgets", 1, 2, 0)
		slow := f.Take("slow", 0)

		jobs, err := f.Scrub(ctx, storetest.After(-1), bus.Queues[:]...)
		require.NoError(t, err)
		assert.Zero(t, jobs, "it has been active since")
		jobs, err = f.Scrub(ctx, storetest.After(0), bus.Queues[:]...)
		require.NoError(t, err)
		assert.Equal(t, 1, jobs)
		f.RequireSound()

		again := f.Take("fast", 1)
		assert.Equal(t, slow.Delivery.Batch, again.Delivery.Batch, "what was put back is next, before its successor")
		before := rdbtest.Dump(t, f.Redis)
		assert.False(t, f.Complete(slow, storetest.Done), "the slow worker's completion is void")
		assert.False(t, f.Complete(slow, storetest.Result{RetryAt: storetest.After(9)}))
		assert.Equal(t, before, rdbtest.Dump(t, f.Redis))
		assert.True(t, f.Complete(again, storetest.Done))
		f.RequireSound()
	})
}

func TestScrubWorkersForgetsThem(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		ctx := t.Context()
		f.AddSubscriber(storetest.Alice, 0, 1, "widgets")
		f.PublishEvents("widgets", 1, 1, 0)
		f.Take("dead", 0)
		require.NoError(t, f.Heartbeat(ctx, storetest.After(10), "alive"))
		jobs, workers, err := f.ForgetWorkers(ctx, storetest.After(5))
		require.NoError(t, err)
		assert.Equal(t, 1, jobs)
		assert.Equal(t, 1, workers)
		assert.Equal(t, map[string]string{"alive": "1700000000010"}, f.Redis.HGetAll(ctx, "workers").Val())
		f.RequireSound()
	})
}

func TestAWorkerThatRetiresLeavesNothing(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		f.AddSubscriber(storetest.Alice, 0, 1, "widgets")
		f.PublishEvents("widgets", 1, 1, 0)
		task := f.Take("w1", 0)
		jobs, err := f.Retire(t.Context(), "w1")
		require.NoError(t, err)
		assert.Equal(t, 1, jobs)
		keys := keysOf(rdbtest.Dump(t, f.Redis))
		assert.NotContains(t, keys, "workers")
		assert.NotContains(t, keys, "jobs:pending:index:main")
		f.RequireSound()
		assert.Equal(t, task.Delivery.Batch, f.Take("w2", 0).Delivery.Batch)
	})
}

func TestHousekeepingOfDeadWorkersIsPutBackWithoutAJob(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		ctx := t.Context()
		for _, name := range []bus.JobName{bus.JobScrubQueues, bus.JobScrubWorkers} {
			_, err := f.Enqueue(ctx, bus.QueueAux, bus.Job{Name: name})
			require.NoError(t, err)
			_, err = f.Acquire(ctx, bus.QueueAux, bus.WorkerID("dead with "+name), bus.Failing, storetest.Start)
			require.NoError(t, err)
		}
		jobs, err := f.Scrub(ctx, storetest.After(0), bus.QueueAux)
		require.NoError(t, err)
		assert.Equal(t, 2, jobs)
		f.RequireSound()
	})
}
