package replay

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/history"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store/stores"
	"routemaster/internal/store/storetest"
)

// eachRunning runs a test with a replay to alice of so many events, and the options that she has.
func eachRunning(t *testing.T, events int, options map[string]string, test func(t *testing.T, b *storetest.Bus, c *copier)) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		b, ctx := storetest.NewBus(t, server), t.Context()
		r := New(stores.New(b.Store), b.Store)
		b.AddSubscriber(storetest.Bob, time.Hour, 100_000, "widgets")
		require.NoError(t, r.historyOf("widgets").Put(ctx, "widgets", "", history.Limits{Events: 100_000}, storetest.Start))
		b.PublishEvents("widgets", 1, events, 0)
		b.AddSubscriber(storetest.Alice, time.Hour, 100, "widgets")
		for name, value := range options {
			b.SetOption(storetest.Alice, name, value)
		}
		started, err := r.Start(ctx, storetest.Alice, "widgets", Range{From: 1}, storetest.Start)
		require.NoError(t, err)
		test(t, b, newCopier(r, started, storetest.Start, &Copied{Events: map[bus.Token]int{}, Lost: map[bus.Token]int{}}))
		b.RequireSound()
	})
}

// TestASliceIsCopiedOnce takes a step that another worker has taken, or the same worker without
// learning of it.
func TestASliceIsCopiedOnce(t *testing.T) {
	eachRunning(t, 1500, nil, func(t *testing.T, b *storetest.Bus, c *copier) {
		late := newCopier(c.Replays, c.Replay, c.now, &Copied{Events: map[bus.Token]int{}, Lost: map[bus.Token]int{}})
		require.NoError(t, late.readSubscriber(t.Context()))
		progress, err := c.step(t.Context())
		require.NoError(t, err)
		require.Equal(t, copied, progress)

		before := rdbtest.Dump(t, b.Redis)
		progress, err = late.copy(t.Context(), maxSlice)
		require.NoError(t, err)
		assert.Equal(t, stopped, progress)
		assert.Equal(t, before, rdbtest.Dump(t, b.Redis))
		assert.Empty(t, late.done.Events)

		progress, err = c.step(t.Context())
		require.NoError(t, err)
		assert.Equal(t, copied, progress)
		assert.EqualValues(t, 1500, c.Copied)
	})
}

// TestLanesChangeInTheMiddle takes a step with the lanes of before.
func TestLanesChangeInTheMiddle(t *testing.T) {
	eachRunning(t, 200, map[string]string{"lanes": "4"}, func(t *testing.T, b *storetest.Bus, c *copier) {
		ctx := t.Context()
		require.NoError(t, c.readSubscriber(ctx))
		old := c.lanes
		b.SetOption(storetest.Alice, "lanes", "7")
		progress, err := c.step(ctx)
		require.NoError(t, err)
		assert.Equal(t, waits, progress)
		assert.Zero(t, c.Copied)
		progress, err = c.step(ctx)
		require.NoError(t, err)
		assert.Equal(t, copied, progress)
		assert.NotEqual(t, old.Version, c.lanes.Version)

		lanes := map[string]bool{}
		for _, bid := range b.Redis.SMembers(ctx, c.keys.ReplayBatches(c.ID)).Val() {
			state := b.Redis.HGetAll(ctx, c.keys.BatchState(bus.BatchID(bid))).Val()
			assert.Equal(t, string(c.ID), state["replay"])
			assert.Equal(t, c.lanes.Version, state["generation"])
			assert.False(t, lanes[state["lane"]], "some 29 events of a lane are in one batch")
			lanes[state["lane"]] = true
		}
		assert.Len(t, lanes, 7)
	})
}

func TestCut(t *testing.T) {
	var entries []history.Entry
	for i := range 25 {
		entries = append(entries, history.Entry{Position: int64(i), Event: storetest.Packed(t, "widgets", i)})
	}
	c := copier{}
	c.lanes.Count = 1
	var sizes []int
	for _, b := range cut(entries, c.lanes, 10) {
		sizes = append(sizes, len(b.events))
	}
	assert.Equal(t, []int{10, 10, 5}, sizes)
	assert.Empty(t, cut(nil, c.lanes, 10))
}
