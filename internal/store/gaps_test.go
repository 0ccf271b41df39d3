package store_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/inspect"
	"routemaster/internal/queue"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store"
	"routemaster/internal/store/storetest"
)

// waitingGap returns the content of alice's waiting gap notice; nil if none waits.
func (f *fixture) waitingGap(ms int) *inspect.Gap {
	f.T.Helper()
	holder, err := f.Inspector.Holder(f.T.Context(), storetest.Alice)
	require.NoError(f.T, err)
	detail, err := f.Detail(f.T.Context(), holder, storetest.After(ms))
	require.NoError(f.T, err)
	return detail.Gap
}

// dropOldest drops all that one call drops, at a time in ms after [storetest.Start].
func (f *fixture) dropOldest(ms int) (events int) {
	f.T.Helper()
	dropped, err := f.OldestBatches().Drop(f.T.Context(), storetest.After(ms), nil)
	require.NoError(f.T, err)
	for _, batch := range dropped {
		events += batch.Events
	}
	f.RequireSound()
	return events
}

// TestOneNoticeTellsOfAllLossesUntilItIsTaken drops batches in several runs, while one batch is in
// flight all the time.
func TestOneNoticeTellsOfAllLossesUntilItIsTaken(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		f.AddSubscriber(storetest.Alice, 0, 2, "widgets")
		f.SetOption(storetest.Alice, "gap_notices", "true")
		f.PublishEvents("widgets", 1, 2, 0)
		inFlight := f.Take("w1", 0)
		for run := range 3 {
			f.PublishEvents("widgets", 10, 14, 10+run)
			assert.Equal(t, 5, f.dropOldest(100+run))
			assert.Zero(t, f.dropOldest(100+run), "the notice stays")
		}
		assert.Equal(t, &inspect.Gap{
			Events: 15, Batches: 9, Since: storetest.After(10), Until: storetest.After(12), Reason: bus.LostToAutodrop,
		}, f.waitingGap(200))
		f.PublishEvents("widgets", 3, 4, 200)
		require.Nil(t, f.Take("w2", 200), "one is in flight")
		f.Complete(inFlight, storetest.Result{Delivered: 2})

		notice := f.Take("w1", 300)
		gap, at := storetest.GapIn(t, notice)
		assert.Equal(t, "15 events in 9 batches, 10 to 12: autodrop", gap)
		assert.Equal(t, int64(102), at)
		assert.Nil(t, f.waitingGap(300), "it is taken")
		f.PublishEvents("widgets", 20, 20, 301)
		assert.Equal(t, 3, f.dropOldest(301))
		assert.Equal(t, 0, notice.Delivery.Removed(queue.Result{}))
		f.Complete(notice, storetest.Result{Delivered: 1})
		another := f.Take("w1", 302)
		gap, _ = storetest.GapIn(t, another)
		assert.Equal(t, "3 events in 2 batches, 200 to 301: autodrop", gap)
		f.Complete(another, storetest.Result{Delivered: 1})
		assert.Nil(t, f.Take("w1", 303))
		assert.Empty(t, f.Redis.Keys(t.Context(), "batch*").Val())
		assert.Empty(t, f.Redis.Keys(t.Context(), "gaps:*").Val())
	})
}

// TestANoticeThatIsDroppedIsToldAgain fails a notice, so that autodrop drops it.
func TestANoticeThatIsDroppedIsToldAgain(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		f.AddSubscriber(storetest.Alice, 0, 10, "widgets")
		f.SetOption(storetest.Alice, "gap_notices", "true")
		f.PublishEvents("widgets", 1, 7, 5)
		f.dropOldest(6)
		f.Complete(f.Take("w1", 7), storetest.Result{RetryAt: storetest.After(1000), Failure: bus.BatchFailure})
		assert.Zero(t, f.dropOldest(8), "nothing more is lost")
		f.PublishEvents("widgets", 8, 8, 9)
		assert.Equal(t, 1, f.dropOldest(10))
		gap, _ := storetest.GapIn(t, f.Take("w1", 11))
		assert.Equal(t, "8 events in 2 batches, 5 to 9: autodrop", gap)
		require.Nil(t, f.Take("w2", 11))
	})
}

// TestWhoWantsNoNoticesGetsNone: bob loses the same events without the option, and alice's option
// is switched off while a notice waits.
func TestWhoWantsNoNoticesGetsNone(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		f.AddSubscriber(storetest.Alice, 0, 10, "widgets")
		f.AddSubscriber(storetest.Bob, 0, 10, "widgets")
		f.SetOption(storetest.Alice, "gap_notices", "true")
		f.PublishEvents("widgets", 1, 2, 0)
		assert.Equal(t, 4, f.dropOldest(1))
		assert.Equal(t, map[string]string{"alice--1": "1"}, f.Redis.HGetAll(t.Context(), "batches:gauges:batch").Val())
		f.SetOption(storetest.Alice, "gap_notices", "false")
		assert.Nil(t, f.waitingGap(2))
		assert.Empty(t, f.Redis.Keys(t.Context(), "gaps:*").Val())
		f.RequireSound()
		assert.Len(t, f.Take("w1", 3).Delivery.Events, 1, "it is delivered all the same")
	})
}

// TestRejectedEventsAreAGap rejects two of three events, and the notice that tells of them.
func TestRejectedEventsAreAGap(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		f.AddSubscriber(storetest.Alice, 0, 10, "widgets")
		f.SetOption(storetest.Alice, "gap_notices", "true")
		f.PublishEvents("widgets", 1, 3, 4)
		f.Complete(f.Take("w1", 5), storetest.Result{
			RetryAt: storetest.After(6), Works: true,
			Slice: &store.SliceResult{Removed: store.Ranges{{First: 0, Last: 1}}, Lost: 2},
		})
		f.RequireSound()
		gap, _ := storetest.GapIn(t, f.Take("w1", 7))
		assert.Equal(t, "2 events in 1 batches, 4 to 4: rejected", gap)
	})
}

// TestANoticeFollowsItsSubscriber changes the token while a notice waits, and then unsubscribes.
func TestANoticeFollowsItsSubscriber(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		ctx := t.Context()
		f.AddSubscriber(storetest.Alice, time.Hour, 10, "widgets")
		f.SetOption(storetest.Alice, "gap_notices", "true")
		f.SetOption(storetest.Alice, "keep_events", "5")
		f.PublishEvents("widgets", 1, 2, 0)
		f.dropOldest(1)
		rotation, _, err := f.RotateToken(ctx, storetest.Alice, "alice--2")
		require.NoError(t, err)
		f.RequireSound()
		assert.Equal(t, []string{"gaps:" + string(rotation)}, f.Redis.Keys(ctx, "gaps:*").Val())
		assert.Equal(t, []string{string(rotation)}, f.Redis.SMembers(ctx, "retention").Val())
		f.PublishEvents("widgets", 3, 3, 2)
		f.dropOldest(3)
		assert.Equal(t, int64(3), f.waitingGap(4).Events)
		require.NoError(t, f.DeleteSubscriber(ctx, rotation))
		assert.Empty(t, f.Redis.Keys(ctx, "gaps:*").Val())
		assert.Empty(t, f.Redis.SMembers(ctx, "retention").Val())
	})
}
