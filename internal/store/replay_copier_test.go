package store_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/layout"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store"
	"routemaster/internal/store/storetest"
)

// eachRunning runs a test with a replay of a number of events to alice, who has the given options.
func eachRunning(t *testing.T, events int, options map[string]string, test func(t *testing.T, b *storetest.Bus, c store.ReplayCopier)) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		b, ctx := storetest.NewBus(t, server), t.Context()
		r := store.NewReplays(store.NewBus(b.Store), b.Store)
		b.AddSubscriber(storetest.Bob, time.Hour, 100_000, "widgets")
		require.NoError(t, store.NewHistory(b.Store).Put(ctx, "widgets", "", store.HistoryLimits{Events: 100_000}, storetest.Start))
		b.PublishEvents("widgets", 1, events, 0)
		b.AddSubscriber(storetest.Alice, time.Hour, 100, "widgets")
		for name, value := range options {
			b.SetOption(storetest.Alice, name, value)
		}
		started, err := r.Start(ctx, storetest.Alice, "widgets", store.ReplayRange{From: 1}, storetest.Start)
		require.NoError(t, err)
		test(t, b, store.NewReplayCopier(r, started, storetest.Start))
		b.RequireSound()
	})
}

// TestASliceIsCopiedOnce takes a step that another worker has taken, or the same worker without
// learning of it.
func TestASliceIsCopiedOnce(t *testing.T) {
	eachRunning(t, 1500, nil, func(t *testing.T, b *storetest.Bus, c store.ReplayCopier) {
		late := c.Twin()
		require.NoError(t, late.ReadSubscriber(t.Context()))
		progress, err := c.Step(t.Context())
		require.NoError(t, err)
		require.Equal(t, store.ReplayCopied, progress)

		before := rdbtest.Dump(t, b.Redis)
		progress, err = late.Copy(t.Context())
		require.NoError(t, err)
		assert.Equal(t, store.ReplayStopped, progress)
		assert.Equal(t, before, rdbtest.Dump(t, b.Redis))
		assert.Empty(t, late.Done())

		progress, err = c.Step(t.Context())
		require.NoError(t, err)
		assert.Equal(t, store.ReplayCopied, progress)
		assert.EqualValues(t, 1500, c.Copied)
	})
}

// TestLanesChangeInTheMiddle takes a step with the lanes of before.
func TestLanesChangeInTheMiddle(t *testing.T) {
	eachRunning(t, 200, map[string]string{"lanes": "4"}, func(t *testing.T, b *storetest.Bus, c store.ReplayCopier) {
		ctx := t.Context()
		require.NoError(t, c.ReadSubscriber(ctx))
		old := c.Lanes()
		b.SetOption(storetest.Alice, "lanes", "7")
		progress, err := c.Step(ctx)
		require.NoError(t, err)
		assert.Equal(t, store.ReplayWaits, progress)
		assert.Zero(t, c.Copied)
		progress, err = c.Step(ctx)
		require.NoError(t, err)
		assert.Equal(t, store.ReplayCopied, progress)
		assert.NotEqual(t, old.Version, c.Lanes().Version)

		lanes, keys := map[string]bool{}, layout.Keys{Namespace: b.Store.Partition().Namespace()}
		for _, bid := range b.Redis.SMembers(ctx, keys.ReplayBatches(c.ID)).Val() {
			state := b.Redis.HGetAll(ctx, keys.BatchState(bus.BatchID(bid))).Val()
			assert.Equal(t, string(c.ID), state["replay"])
			assert.False(t, lanes[state["lane"]], "some 29 events of a lane are in one batch")
			lanes[state["lane"]] = true
		}
		assert.Len(t, lanes, 7)
	})
}

func TestCut(t *testing.T) {
	var entries []store.HistoryEntry
	for i := range 25 {
		entries = append(entries, store.HistoryEntry{Position: int64(i), Event: storetest.Packed(t, "widgets", i)})
	}
	lanes := store.Lanes{Count: 1}
	assert.Equal(t, []int{10, 10, 5}, store.CutSizes(entries, lanes, 10))
	assert.Empty(t, store.CutSizes(nil, lanes, 10))
}
