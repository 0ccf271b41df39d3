package maintenance_test

import (
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/maintenance"
	"routemaster/internal/store"
	"routemaster/internal/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

func TestScrub(t *testing.T) {
	storetest.Each(t, func(t *testing.T, server *storetest.Server) {
		ctx := t.Context()
		st := server.Open(t)
		died := time.UnixMilli(1_700_000_000_000)
		_, err := st.Enqueue(ctx, bus.QueueMain, bus.Job{Name: "x"})
		require.NoError(t, err)
		lost, err := st.Acquire(ctx, bus.QueueMain, "dead", died)
		require.NoError(t, err)
		require.NotNil(t, lost)

		now := died
		keeper := maintenance.New(st, slog.New(slog.DiscardHandler), func() time.Time { return now })
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
		storetest.RequireSound(t, st)
	})
}

func TestScrubIsTriedAgainWhenRedisIsAway(t *testing.T) {
	server := storetest.Real(t)
	st := server.Open(t)
	server.Kill(t)
	now := time.UnixMilli(1_700_000_000_000)
	keeper := maintenance.New(st, slog.New(slog.DiscardHandler), func() time.Time { return now })
	assert.True(t, keeper.ScrubQueues(t.Context(), nil).RetryAt.After(now))
	assert.True(t, keeper.ScrubWorkers(t.Context(), nil).RetryAt.After(now))
}
