package maintenance_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/maintenance"
	"routemaster/internal/queue"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store"
	"routemaster/internal/store/storetest"
)

func TestScrubQueues(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		ctx, st := t.Context(), storetest.Open(t, server)
		died := time.Now().Truncate(time.Millisecond)
		dieWithJobs(t, st, died)
		now := died
		var log bytes.Buffer
		recorder := newRecorder(st)
		keeper := maintenance.New(store.NewBus(st), st, storetest.NewQueue(st, 1), bus.MemoryLimits{}, recorder, slog.New(slog.NewTextHandler(&log, nil)), func() time.Time { return now })
		requireQueued := func(main, jobs, aux int64) {
			t.Helper()
			require.Equal(t, jobs, server.Raw.LLen(ctx, "jobs:instant:jobs").Val())
			require.Equal(t, jobs, server.Raw.LLen(ctx, "jobs:instant:machines").Val())
			require.Equal(t, main, server.Raw.LLen(ctx, "jobs:instant:main").Val())
			require.Equal(t, aux, server.Raw.LLen(ctx, "jobs:instant:aux").Val())
		}

		now = died.Add(30*time.Second - time.Millisecond)
		require.Equal(t, queue.Done, keeper.ScrubQueues(ctx, nil))
		require.NoError(t, keeper.ScrubAux(ctx))
		requireQueued(0, 0, 0)
		require.Empty(t, log.String())

		now = died.Add(30 * time.Second)
		require.Equal(t, queue.Done, keeper.ScrubQueues(ctx, nil))
		requireQueued(1, 1, 0)
		require.NoError(t, keeper.ScrubAux(ctx))
		requireQueued(1, 1, 1)
		const message = `level=WARN msg="requeued jobs of dead workers" jobs=`
		require.Equal(t, 1, strings.Count(log.String(), message+"3"), log.String())
		require.Equal(t, 1, strings.Count(log.String(), message+"1"), log.String())
		assert.Equal(t, int64(4), flushed(t, st, recorder)[bus.NewCounter("jobs.scrubbed")])
		storetest.RequireSound(t, st)
	})
}

// dieWithJobs has a worker of each queue take a job, and be silent from then on.
func dieWithJobs(t *testing.T, st *store.Store, died time.Time) {
	t.Helper()
	for _, q := range bus.Queues {
		_, err := storetest.NewQueue(st, 1).Enqueue(t.Context(), q, bus.Job{Name: bus.JobScrubQueues})
		require.NoError(t, err)
		taken, err := storetest.NewQueue(st, 1).Acquire(t.Context(), q, bus.WorkerID(q), bus.Failing, died)
		require.NoError(t, err)
		require.NotNil(t, taken.Task)
	}
}

func TestScrubWorkers(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		ctx, st := t.Context(), storetest.Open(t, server)
		died := time.Now().Truncate(time.Millisecond)
		dieWithJobs(t, st, died)
		now := died
		var log bytes.Buffer
		recorder := newRecorder(st)
		keeper := maintenance.New(store.NewBus(st), st, storetest.NewQueue(st, 1), bus.MemoryLimits{}, recorder, slog.New(slog.NewTextHandler(&log, nil)), func() time.Time { return now })

		now = died.Add(120*time.Second - time.Millisecond)
		assert.Equal(t, queue.Done, keeper.ScrubWorkers(ctx, nil))
		assert.Equal(t, int64(len(bus.Queues)), server.Raw.HLen(ctx, "workers").Val(), "silent for less than 120 s")
		now = died.Add(120 * time.Second)
		assert.Equal(t, queue.Done, keeper.ScrubWorkers(ctx, nil))
		assert.Zero(t, server.Raw.HLen(ctx, "workers").Val())
		assert.Contains(t, log.String(), `level=WARN msg="requeued jobs of removed workers" jobs=4`)
		counters := flushed(t, st, recorder)
		assert.Equal(t, int64(4), counters[bus.NewCounter("jobs.scrubbed")])
		assert.Equal(t, int64(4), counters[bus.NewCounter("workers.scrubbed")])
		storetest.RequireSound(t, st)
	})
}

// TestAHeartbeatOfTheFuture has a heartbeat of a worker whose clock, or Redis's, was an hour ahead:
// it counts as a present one, so that the worker is dead 30 s later, and not in an hour.
func TestAHeartbeatOfTheFuture(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		ctx, st := t.Context(), storetest.Open(t, server)
		now := time.Now().Truncate(time.Millisecond).Add(time.Minute)
		dieWithJobs(t, st, now.Add(time.Hour))
		agrees := false
		keeper := maintenance.New(store.NewBus(st), st, storetest.NewQueue(st, 1), bus.MemoryLimits{}, nil, slog.New(slog.DiscardHandler), func() time.Time { return now })
		keeper.ScrubWhile(func() bool { return agrees })
		scrubbed := func() int64 {
			require.Equal(t, queue.Done, keeper.ScrubQueues(ctx, nil))
			return server.Raw.LLen(ctx, "jobs:instant:main").Val()
		}
		require.Zero(t, scrubbed())
		agrees = true
		require.Zero(t, scrubbed())
		now = now.Add(30*time.Second - time.Millisecond)
		require.Zero(t, scrubbed())
		now = now.Add(time.Millisecond)
		agrees = false
		require.Zero(t, scrubbed(), "whose clock is off takes none for dead")
		agrees = true
		require.Equal(t, int64(1), scrubbed())
		storetest.RequireSound(t, st)
	})
}

// TestAScrubOfThePastLeavesHeartbeats has jobs scrubbed as of long ago, when the heartbeats of
// today were of the future.
func TestAScrubOfThePastLeavesHeartbeats(t *testing.T) {
	server := rdbtest.Real(t)
	st, now := storetest.Open(t, server), time.Now()
	dieWithJobs(t, st, now)
	before := server.Raw.HGetAll(t.Context(), "workers").Val()
	require.NotEmpty(t, before)
	_, err := storetest.NewQueue(st, 1).Scrub(t.Context(), now.Add(-time.Hour), bus.QueueMain)
	require.NoError(t, err)
	assert.Equal(t, before, server.Raw.HGetAll(t.Context(), "workers").Val())
}

// TestNoWorkerIsDeadRightAfterAnOutage has Redis come back after all workers have been silent for
// long, since they could not reach it.
func TestNoWorkerIsDeadRightAfterAnOutage(t *testing.T) {
	server := rdbtest.Real(t)
	st := storetest.Open(t, server)
	ctx, q := t.Context(), storetest.NewQueue(st, 1)
	now := time.Now()
	keeper := maintenance.New(store.NewBus(st), st, q, bus.MemoryLimits{}, nil, slog.New(slog.DiscardHandler), func() time.Time { return now })
	server.Kill(t)
	away := time.Now().Truncate(time.Millisecond)
	require.Error(t, st.Partition().Client().Ping(ctx))
	server.Restart(t)
	_, err := q.Enqueue(ctx, bus.QueueMain, bus.Job{Name: "x"})
	for err != nil { // until the client has noticed
		_, err = q.Enqueue(ctx, bus.QueueMain, bus.Job{Name: "x"})
	}
	_, err = q.Acquire(ctx, bus.QueueMain, "silent", bus.Failing, now.Add(-time.Hour))
	require.NoError(t, err)

	assert.False(t, q.SteadySince().Before(away))
	now = q.SteadySince().Add(10*time.Second - time.Millisecond)
	assert.Equal(t, queue.Done, keeper.ScrubQueues(ctx, nil))
	assert.Equal(t, queue.Done, keeper.ScrubWorkers(ctx, nil))
	assert.Zero(t, server.Raw.LLen(ctx, "jobs:instant:main").Val(), "its heartbeats may not have arrived")
	now = q.SteadySince().Add(10 * time.Second)
	assert.Equal(t, queue.Done, keeper.ScrubQueues(ctx, nil))
	assert.Equal(t, int64(1), server.Raw.LLen(ctx, "jobs:instant:main").Val())
}

func TestScrubIsTriedAgainWhenRedisIsUnavailable(t *testing.T) {
	server := rdbtest.Real(t)
	st := storetest.Open(t, server)
	server.Kill(t)
	now := time.Now().Add(time.Minute)
	keeper := maintenance.New(store.NewBus(st), st, storetest.NewQueue(st, 1), bus.MemoryLimits{}, nil, slog.New(slog.DiscardHandler), func() time.Time { return now })
	assert.True(t, keeper.ScrubQueues(t.Context(), nil).RetryAt.After(now))
	assert.True(t, keeper.ScrubWorkers(t.Context(), nil).RetryAt.After(now))
	assert.ErrorIs(t, keeper.ScrubAux(t.Context()), bus.ErrUnavailable)
}
