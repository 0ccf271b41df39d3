package store_test

import (
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store"
	"routemaster/internal/store/storetest"
)

// retentionFixture is a bus for tests that drop batches.
type retentionFixture struct{ *storetest.Bus }

func newRetentionFixture(t *testing.T, server *rdbtest.Server) *retentionFixture {
	t.Helper()
	return &retentionFixture{storetest.NewBus(t, server)}
}

// dropExpired drops alice's expired batches, at a time in ms after [storetest.Start].
func (f *retentionFixture) dropExpired(ms int) store.DroppedBatches {
	f.T.Helper()
	dropped, err := store.NewRetention(f.Store).Drop(f.T.Context(), storetest.After(ms), func() bool { return true })
	require.NoError(f.T, err)
	f.RequireSound()
	return dropped[storetest.Alice]
}

// pausedWith is a bus whose subscriber alice is paused, with an option.
func pausedWith(t *testing.T, server *rdbtest.Server, maxEvents int, name, value string) *retentionFixture {
	t.Helper()
	f := newRetentionFixture(t, server)
	f.AddSubscriber(storetest.Alice, time.Second, maxEvents, "widgets")
	f.AddSubscriber(storetest.Bob, time.Second, maxEvents, "widgets")
	f.SetOption(storetest.Alice, name, value)
	require.NoError(t, f.Pause(t.Context(), storetest.Alice, bus.Forever))
	return f
}

// queue lets workers see all batches, including bob's, which are delivered.
func (f *retentionFixture) queue(ms int) {
	f.T.Helper()
	f.MakeInstant(ms)
	for task := f.Take("w1", ms); task != nil; task = f.Take("w1", ms) {
		f.Complete(task, storetest.Result{Delivered: len(task.Delivery.Events)})
	}
}

func TestOnlyTheNewestEventsAreKept(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := pausedWith(t, server, 4, "keep_events", "7")
		f.PublishEvents("widgets", 1, 18, 0)
		f.queue(2000)
		assert.Equal(t, store.DroppedBatches{Batches: 3, Events: 11}, f.dropExpired(2001), "the third in part")
		assert.Equal(t, store.DroppedBatches{}, f.dropExpired(2002))
		f.PublishEvents("widgets", 19, 19, 2003) // into the batch that still takes in events
		f.queue(5000)
		assert.Equal(t, store.DroppedBatches{Batches: 1, Events: 1}, f.dropExpired(5001))
		require.NoError(t, f.Resume(t.Context(), storetest.Alice))
		var left []int
		for task := f.Take("w1", 6000); task != nil; task = f.Take("w1", 6000) {
			left = append(left, storetest.Numbers(t, task)...)
			f.Complete(task, storetest.Result{Delivered: len(task.Delivery.Events)})
		}
		assert.Equal(t, []int{13, 14, 15, 16, 17, 18, 19}, left)
		f.SetOption(storetest.Alice, "keep_events", "null")
		assert.Empty(t, f.Redis.Keys(t.Context(), "retention").Val())
	})
}

// TestMoreIsDroppedThanOneStepTakes has more batches than one step looks at, some of them in flight
// or failed.
func TestMoreIsDroppedThanOneStepTakes(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newRetentionFixture(t, server)
		f.AddSubscriber(storetest.Alice, 0, 1, "widgets")
		f.SetOption(storetest.Alice, "keep_events", "10")
		f.PublishEvents("widgets", 1, 150, 0)
		first := f.Take("w1", 0)
		require.Nil(t, f.Take("w2", 0))
		require.Nil(t, f.Take("w2", 0), "as many as one step skips")
		f.Complete(first, storetest.Result{RetryAt: storetest.After(100), Failure: bus.BatchFailure})
		held := f.Take("w1", 1)
		assert.Equal(t, []int{2}, storetest.Numbers(t, held))
		assert.Equal(t, store.DroppedBatches{Batches: 140, Events: 140}, f.dropExpired(2))
		assert.True(t, f.Complete(held, storetest.Result{Delivered: 1}), "what is in flight stays")
		assert.Equal(t, []int{142}, storetest.Numbers(t, f.Take("w1", 3)))
	})
}

// TestOldBatchesAreDropped lets old batches wait for the end of a pause, and one come up.
func TestOldBatchesAreDropped(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := pausedWith(t, server, 4, "keep_age", "60000")
		f.SetOption(storetest.Alice, "gap_notices", "true")
		f.PublishEvents("widgets", 1, 6, 0)
		f.PublishEvents("widgets", 7, 10, 50_000)
		f.queue(60_000)
		assert.Equal(t, store.DroppedBatches{}, f.dropExpired(60_000))
		assert.Equal(t, store.DroppedBatches{Batches: 2, Events: 8}, f.dropExpired(60_001), "7 and 8 are in the second")
		f.PublishEvents("widgets", 11, 14, 105_000)
		f.queue(110_000)
		require.NoError(t, f.Resume(t.Context(), storetest.Alice))

		const later = 164_000 // the batch with 9 to 12 is old by now
		notice := f.Take("w1", later)
		gap, _ := storetest.GapIn(t, notice)
		assert.Equal(t, "8 events in 2 batches, 0 to 0: retention", gap, "it does not grow old")
		f.Complete(notice, storetest.Result{Delivered: 1})
		taken, err := f.Queue.Acquire(t.Context(), bus.QueueMain, "w1", bus.Failing, storetest.After(later))
		require.NoError(t, err)
		require.Equal(t, []any{store.ExpiredBatch{Client: "alice", Events: 4}}, taken.Discarded)
		f.RequireSound()
		notice = &storetest.Task{Task: taken.Task, Delivery: taken.Task.Payload.(*store.Delivery)}
		gap, _ = storetest.GapIn(t, notice)
		assert.Equal(t, "4 events in 1 batches, 50000 to 50000: retention", gap)
		f.Complete(notice, storetest.Result{Delivered: 1})
		assert.Equal(t, []int{13, 14}, storetest.Numbers(t, f.Take("w1", later)))
	})
}

// TestANoticeComesBeforeWhatWaitsForAThrottle: a throttled subscriber loses two of three batches.
func TestANoticeComesBeforeWhatWaitsForAThrottle(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newRetentionFixture(t, server)
		f.AddSubscriber(storetest.Alice, 0, 1, "widgets")
		f.SetOption(storetest.Alice, "gap_notices", "true")
		f.SetOption(storetest.Alice, "keep_events", "1")
		f.PublishEvents("widgets", 1, 3, 0)
		first := f.Take("w1", 0)
		require.Nil(t, f.Take("w2", 0))
		f.Complete(first, storetest.Result{
			RetryAt: storetest.After(5000), ThrottledUntil: storetest.After(1000), Failure: bus.EndpointFailure,
		})
		require.Nil(t, f.Take("w1", 1), "throttled")
		assert.Equal(t, store.DroppedBatches{Batches: 2, Events: 2}, f.dropExpired(2))
		for ms := range 3 {
			require.Nil(t, f.Take("w1", 2+ms), "throttled")
		}
		f.MakeInstant(1000)
		notice := f.Take("w1", 1000)
		gap, _ := storetest.GapIn(t, notice)
		assert.Equal(t, "2 events in 2 batches, 0 to 0: retention", gap)
		f.Complete(notice, storetest.Result{Delivered: 1})
		assert.Equal(t, []int{3}, storetest.Numbers(t, f.Take("w1", 1001)))
	})
}

// TestNoticesTakeTheRoomOfNoEvent: an endpoint refuses everything, notices too, while events are
// published and dropped again and again, once while a notice is in flight.
func TestNoticesTakeTheRoomOfNoEvent(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newRetentionFixture(t, server)
		f.AddSubscriber(storetest.Alice, 0, 5, "widgets")
		f.SetOption(storetest.Alice, "gap_notices", "true")
		f.SetOption(storetest.Alice, "keep_events", "20")
		f.SetOption(storetest.Alice, "keep_age", "3600000")
		queued := func() string { return f.Redis.HGet(t.Context(), "batches:gauges:event", "alice--1").Val() }
		ms := 0
		refuse := func(task *storetest.Task) { // only notices are tried again before all are too old
			retryAt := storetest.After(5_000_000)
			if task.Delivery.Basis.Gap {
				retryAt = storetest.After(ms + 100)
			}
			f.Complete(task, storetest.Result{RetryAt: retryAt, Failure: bus.BatchFailure})
		}
		refuseAll := func() {
			for task := f.Take("w1", ms); task != nil; task = f.Take("w1", ms) {
				refuse(task)
			}
		}
		takeNotice := func() *storetest.Task { // refuses all others that come up before
			for range 100 {
				ms += 1000
				f.MakeInstant(ms)
				for task := f.Take("w1", ms); task != nil; task = f.Take("w1", ms) {
					if task.Delivery.Basis.Gap {
						return task
					}
					refuse(task)
				}
			}
			require.Fail(t, "there is no notice")
			return nil
		}
		f.PublishEvents("widgets", 1, 30, 0)
		refuseAll()
		assert.Equal(t, store.DroppedBatches{Batches: 2, Events: 10}, f.dropExpired(ms))
		for range 4 {
			notice := takeNotice()
			assert.Zero(t, notice.Delivery.Basis.Revision)
			refuse(notice)
			assert.Equal(t, store.DroppedBatches{}, f.dropExpired(ms), "nothing more was published")
			assert.Equal(t, "21", queued())
		}
		publish := func(first int) store.DroppedBatches { // five events, one batch
			f.PublishEvents("widgets", first, first+4, ms)
			return f.dropExpired(ms)
		}
		assert.Equal(t, store.DroppedBatches{Batches: 1, Events: 5}, publish(31))
		assert.Equal(t, "21", queued(), "added to the notice that was tried")
		notice := takeNotice()
		assert.Equal(t, 1, notice.Delivery.Basis.Revision, "its content is another")
		gap, _ := storetest.GapIn(t, notice)
		assert.Equal(t, "15 events in 3 batches, 0 to 0: retention", gap)
		publish(36)
		assert.Equal(t, "22", queued(), "another notice, as the first is in flight")
		f.Complete(notice, storetest.Result{Delivered: 1})
		publish(41)
		assert.Equal(t, "21", queued(), "added to the other")

		refuse(takeNotice())
		refuseAll()
		ms = 4_000_000
		f.dropExpired(ms)
		assert.Equal(t, "1", queued(), "the events are too old, the notice is not")
		notice = takeNotice()
		gap, _ = storetest.GapIn(t, notice)
		assert.Regexp(t, `^30 events in 6 batches, 0 to \d+: retention$`, gap)
		f.Complete(notice, storetest.Result{Delivered: 1})
		assert.Empty(t, f.Redis.Keys(t.Context(), "batch*").Val())
		assert.Empty(t, f.Redis.Keys(t.Context(), "gaps:*").Val())
	})
}

// TestAStepLooksAtTheOldestLanesAlone changes the lanes again and again while batches wait in them:
// a step looks no further than at the oldest lanes that have enough to drop.
func TestAStepLooksAtTheOldestLanesAlone(t *testing.T) {
	f := newRetentionFixture(t, rdbtest.Real(t))
	f.AddSubscriber(storetest.Alice, 0, 1, "widgets")
	const changes, events = 5, 320
	for i := range changes {
		f.SetOption(storetest.Alice, "lanes", strconv.Itoa(64-i%2))
		f.PublishEvents("widgets", i*events+1, (i+1)*events, i)
	}
	require.NoError(t, f.Pause(t.Context(), storetest.Alice, bus.Forever))
	f.MakeInstant(1000)
	for range changes * events / 100 { // one call passes over a hundred at most
		require.Nil(t, f.Take("w1", 1000))
	}
	f.SetOption(storetest.Alice, "keep_events", strconv.Itoa((changes-2)*events))
	require.NoError(t, f.Redis.ConfigResetStat(t.Context()).Err())
	steps := 0
	dropped, err := store.NewRetention(f.Store).Drop(t.Context(), storetest.After(1000), func() bool {
		steps++
		return true
	})
	require.NoError(t, err)
	assert.Equal(t, store.DroppedBatches{Batches: 2 * events, Events: 2 * events}, dropped[storetest.Alice])
	stats, err := f.Redis.Info(t.Context(), "commandstats").Result()
	require.NoError(t, err)
	calls := regexp.MustCompile(`cmdstat_lrange:calls=(\d+)`).FindStringSubmatch(stats)
	require.NotNil(t, calls)
	reads, err := strconv.Atoi(calls[1])
	require.NoError(t, err)
	assert.LessOrEqual(t, reads/steps, 2*64*5, "of two changes at most")
	f.RequireSound()
	require.NoError(t, f.Resume(t.Context(), storetest.Alice))
	first := storetest.Numbers(t, f.Take("w1", 1000))[0]
	assert.Greater(t, first, 2*events, "the oldest went")
	assert.LessOrEqual(t, first, 3*events)
}
