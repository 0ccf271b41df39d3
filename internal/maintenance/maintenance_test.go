package maintenance_test

import (
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/maintenance"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store"
	"routemaster/internal/store/storetest"
	"routemaster/internal/telemetry"
	"routemaster/internal/telemetry/metrics"
)

func TestMain(m *testing.M) { rdbtest.Main(m) }

func TestScrub(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		ctx := t.Context()
		st := storetest.Open(t, server)
		died := time.Now().Truncate(time.Millisecond)
		_, err := st.Enqueue(ctx, bus.QueueMain, bus.Job{Name: "x"})
		require.NoError(t, err)
		lost, err := st.Acquire(ctx, bus.QueueMain, "dead", bus.Failing, died)
		require.NoError(t, err)
		require.NotNil(t, lost)

		now := died
		recorder := newRecorder(st)
		keeper := maintenance.New(st, bus.MemoryLimits{}, recorder, slog.New(slog.DiscardHandler), func() time.Time { return now })
		queued := func() int64 { return server.Raw.LLen(ctx, "jobs:instant:main").Val() }

		now = died.Add(30*time.Second - time.Millisecond)
		assert.Equal(t, store.Done, keeper.ScrubQueues(ctx, nil))
		assert.Zero(t, queued(), "silent for less than 30 s")
		now = died.Add(30 * time.Second)
		assert.Equal(t, store.Done, keeper.ScrubQueues(ctx, nil))
		assert.Equal(t, int64(1), queued())

		now = died.Add(120*time.Second - time.Millisecond)
		assert.Equal(t, store.Done, keeper.ScrubWorkers(ctx, nil))
		assert.True(t, server.Raw.HExists(ctx, "workers", "dead").Val(), "silent for less than 120 s")
		now = died.Add(120 * time.Second)
		assert.Equal(t, store.Done, keeper.ScrubWorkers(ctx, nil))
		assert.False(t, server.Raw.HExists(ctx, "workers", "dead").Val())
		counters := flushed(t, st, recorder)
		assert.Equal(t, int64(1), counters[bus.NewCounter("jobs.scrubbed")])
		assert.Equal(t, int64(1), counters[bus.NewCounter("workers.scrubbed")])
		storetest.RequireSound(t, st)
	})
}

// TestNobodyIsJudgedRightAfterAnOutage has Redis come back when all workers have been silent for long, because of that.
func TestNobodyIsJudgedRightAfterAnOutage(t *testing.T) {
	server := rdbtest.Real(t)
	st := storetest.Open(t, server)
	ctx := t.Context()
	now := time.Now()
	keeper := maintenance.New(st, bus.MemoryLimits{}, nil, slog.New(slog.DiscardHandler), func() time.Time { return now })
	server.Kill(t)
	away := time.Now().Truncate(time.Millisecond)
	require.Error(t, st.Ping(ctx))
	server.Restart(t)
	_, err := st.Enqueue(ctx, bus.QueueMain, bus.Job{Name: "x"})
	for err != nil { // until the client has noticed
		_, err = st.Enqueue(ctx, bus.QueueMain, bus.Job{Name: "x"})
	}
	_, err = st.Acquire(ctx, bus.QueueMain, "silent", bus.Failing, now.Add(-time.Hour))
	require.NoError(t, err)

	assert.False(t, st.SteadySince().Before(away))
	now = st.SteadySince().Add(10*time.Second - time.Millisecond)
	assert.Equal(t, store.Done, keeper.ScrubQueues(ctx, nil))
	assert.Equal(t, store.Done, keeper.ScrubWorkers(ctx, nil))
	assert.Zero(t, server.Raw.LLen(ctx, "jobs:instant:main").Val(), "it may not have been able to say a word")
	now = st.SteadySince().Add(10 * time.Second)
	assert.Equal(t, store.Done, keeper.ScrubQueues(ctx, nil))
	assert.Equal(t, int64(1), server.Raw.LLen(ctx, "jobs:instant:main").Val())
}

func newRecorder(st *store.Store) *telemetry.Recorder {
	return telemetry.NewRecorder(metrics.NewRegistry(), st, slog.New(slog.DiscardHandler))
}

// flushed are the counters in Redis after what was recorded has been flushed there.
func flushed(t *testing.T, st *store.Store, recorder *telemetry.Recorder) map[bus.Counter]int64 {
	t.Helper()
	recorder.Flush(t.Context())
	counters, err := st.Counters(t.Context())
	require.NoError(t, err)
	return counters
}

func TestScrubIsTriedAgainWhenRedisIsAway(t *testing.T) {
	server := rdbtest.Real(t)
	st := storetest.Open(t, server)
	server.Kill(t)
	now := time.Now().Add(time.Minute)
	keeper := maintenance.New(st, bus.MemoryLimits{}, nil, slog.New(slog.DiscardHandler), func() time.Time { return now })
	assert.True(t, keeper.ScrubQueues(t.Context(), nil).RetryAt.After(now))
	assert.True(t, keeper.ScrubWorkers(t.Context(), nil).RetryAt.After(now))
}
