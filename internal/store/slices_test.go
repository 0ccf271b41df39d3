package store_test

import (
	"fmt"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/queue"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store"
	"routemaster/internal/store/storetest"
)

// setOptions sets options of a client, given by name (JSON).
func (f *fixture) setOptions(token bus.Token, options map[string]string) {
	f.T.Helper()
	require.NoError(f.T, f.PatchSubscriber(f.T.Context(), token, bus.Subscription{Options: options}, storetest.Start))
}

// newSliced returns a bus with a subscriber with options and events 1 to n published to it as one
// batch.
func newSliced(t *testing.T, server *rdbtest.Server, n int, options map[string]string) *fixture {
	f := newFixture(t, server)
	f.AddSubscriber(storetest.Alice, 0, n, "widgets")
	f.setOptions(storetest.Alice, options)
	f.PublishEvents("widgets", 1, n, 0)
	return f
}

// complete completes a task at a time in ms after the start.
func (f *fixture) complete(task *storetest.Task, r storetest.Result, ms int) {
	f.T.Helper()
	owned, err := f.CompleteAt(f.T.Context(), task, r, storetest.After(ms))
	require.NoError(f.T, err)
	require.True(f.T, owned)
	f.RequireSound()
}

func (f *fixture) queued(token bus.Token) int {
	f.T.Helper()
	n, _ := f.Redis.HGet(f.T.Context(), "batches:gauges:event", string(token)).Int()
	return n
}

func numbersTo(first, last int) (all []int) {
	for i := first; i <= last; i++ {
		all = append(all, i)
	}
	return all
}

func TestASliceLeavesItsBatch(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newSliced(t, server, 5, map[string]string{"partial": "true"})
		f.PublishEvents("widgets", 6, 10, 1) // another batch, behind it
		task := f.Take("w1", 2)
		assert.Equal(t, numbersTo(1, 5), storetest.Numbers(t, task))
		assert.Equal(t, 5, task.Delivery.Total())
		assert.Equal(t, &store.Basis{Version: task.Delivery.Basis.Version, Total: 5, Count: 5}, task.Delivery.Basis)
		id := task.Delivery.Batch

		f.complete(task, storetest.Result{
			RetryAt: storetest.After(2), Delivered: 2, Health: 1,
			Slice: &store.SliceResult{KeepTurn: true, Removed: store.Ranges{{First: 0, Last: 1}}},
		}, 2)
		assert.Equal(t, 8, f.queued(storetest.Alice))
		f.MakeInstant(2)
		task = f.Take("w1", 2)
		require.Equal(t, id, task.Delivery.Batch, "it has kept its turn")
		assert.Equal(t, numbersTo(3, 5), storetest.Numbers(t, task))
		assert.Equal(t, 2, task.Delivery.Attempts, "it never looks untried")
		assert.Equal(t, 1, task.Delivery.Basis.Revision)

		f.complete(task, storetest.Result{
			RetryAt: storetest.After(9), Delivered: 2, Health: 1,
			Slice: &store.SliceResult{
				Removed:  store.Ranges{{First: 0, Last: 0}, {First: 2, Last: 2}},
				Findings: &store.Findings{Refusals: 1},
			},
		}, 3)
		task = f.Take("w1", 3)
		require.NotEqual(t, id, task.Delivery.Batch, "it has given up its turn")
		f.complete(task, storetest.Result{Delivered: 5}, 3)
		f.MakeInstant(9)
		task = f.Take("w1", 9)
		assert.Equal(t, []int{4}, storetest.Numbers(t, task))
		assert.Equal(t, 2, task.Delivery.Basis.Revision)
		assert.Equal(t, 1, task.Delivery.Basis.Refusals)
		f.complete(task, storetest.Result{Delivered: 1}, 9)
		assert.Zero(t, f.queued(storetest.Alice))
		assert.Equal(t, "10", f.Redis.HGet(t.Context(), "delivery:"+string(storetest.Alice), "events_sent").Val())
		assert.Empty(t, f.Redis.Keys(t.Context(), "batch*").Val())
	})
}

// TestManyEventsLeaveABatchInOneStep removes every second of 10,000 events. That takes Redis some
// 12 ms. The limit is for slow hosts; a search for each event would exceed it by far.
func TestManyEventsLeaveABatchInOneStep(t *testing.T) {
	const events = 10_000
	var acknowledged, left []int
	for i := range events {
		if i%2 == 0 {
			acknowledged = append(acknowledged, i)
		} else {
			left = append(left, i+1)
		}
	}
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		settle := func() (took time.Duration) {
			require.NoError(t, server.Raw.FlushAll(t.Context()).Err())
			f := newFixture(t, server)
			f.AddSubscriber(storetest.Alice, time.Hour, events, "widgets")
			f.setOptions(storetest.Alice, map[string]string{"partial": "true"})
			for first := 1; first <= events; first += 1000 {
				f.PublishEvents("widgets", first, first+999, 0)
			}
			task := f.Take("w1", 0)
			require.Len(t, task.Delivery.Events, events)
			if !server.IsEmbedded() {
				require.NoError(t, f.Redis.ConfigResetStat(t.Context()).Err())
			}
			require.True(t, f.Complete(task, storetest.Result{
				RetryAt: storetest.After(1), Delivered: len(acknowledged),
				Slice: &store.SliceResult{Removed: store.RangesOf(acknowledged)},
			}))
			if !server.IsEmbedded() {
				took = f.tookScripts(t)
			}
			f.RequireSound()
			f.MakeInstant(1)
			assert.Equal(t, left, storetest.Numbers(t, f.Take("w1", 1)))
			return took
		}
		if server.IsEmbedded() {
			settle()
			return
		}
		rdbtest.Promptly(t, 200*time.Millisecond, settle)
	})
}

// tookScripts returns how long a real Redis has run scripts since its statistics were reset.
func (f *fixture) tookScripts(t *testing.T) (took time.Duration) {
	stats, err := f.Redis.Info(t.Context(), "commandstats").Result()
	require.NoError(t, err)
	found := regexp.MustCompile(`cmdstat_evalsha:calls=\d+,usec=(\d+)`).FindStringSubmatch(stats)
	require.NotNil(t, found, stats)
	took, err = time.ParseDuration(found[1] + "us")
	require.NoError(t, err)
	t.Logf("the step took Redis %v", took)
	return took
}

func TestASliceIsNoLongerThanItCanBe(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newSliced(t, server, 100, map[string]string{"max_bytes": "2000"})
		task := f.Take("w1", 0)
		assert.Equal(t, 100, task.Delivery.Basis.Total)
		assert.Equal(t, 50, task.Delivery.Basis.Count)
		assert.Len(t, task.Delivery.Events, 50)
		f.complete(task, storetest.Result{
			RetryAt: storetest.After(1), Slice: &store.SliceResult{Findings: &store.Findings{Refusals: 2, Suspect: 81}},
		}, 0)
		f.MakeInstant(1)
		task = f.Take("w1", 1)
		assert.Equal(t, 41, task.Delivery.Basis.Count)
		assert.Equal(t, 81, task.Delivery.Basis.Suspect)
		f.complete(task, storetest.Result{
			RetryAt: storetest.After(2), Slice: &store.SliceResult{Findings: &store.Findings{Suspect: 1}},
		}, 1)
		f.MakeInstant(2)
		task = f.Take("w1", 2)
		assert.Equal(t, 1, task.Delivery.Basis.Count)
		assert.Equal(t, 1, task.Delivery.Basis.Suspect)
		f.complete(task, storetest.Result{RetryAt: storetest.After(3), Slice: &store.SliceResult{Findings: &store.Findings{}}}, 2)
		f.MakeInstant(3)
		assert.Zero(t, f.Take("w1", 3).Delivery.Basis.Suspect)
	})
}

func TestDeadLetters(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newSliced(t, server, 4, map[string]string{"dead_letters": `{"attempts":1}`})
		task := f.Take("w1", 0)
		batch, one := task.Delivery.Batch, bus.NewBatchID()
		packed := func(i int) string { return string(storetest.Packed(t, "widgets", i)) }
		f.complete(task, storetest.Result{
			RetryAt: storetest.After(1), Delivered: 1,
			Slice: &store.SliceResult{
				Removed: store.Ranges{{First: 0, Last: 1}},
				Letters: []store.DeadLetter{{
					ID: one, Reason: bus.DiedRejected, Status: 207, Note: "no such account",
					Events: store.Ranges{{First: 1, Last: 1}},
				}},
			},
		}, 1)
		ctx, created := t.Context(), fmt.Sprint(storetest.Start.UnixMilli())
		assert.Equal(t, []string{"alice--1", created, "1", packed(2)}, f.Redis.LRange(ctx, "deadletter:"+string(one), 0, -1).Val())
		assert.Equal(t, map[string]string{
			"reason": "rejected", "status": "207", "error": "", "note": "no such account", "webhook_id": "", "revision": "0",
			"bytes": fmt.Sprint(len(packed(2))), "died_at": fmt.Sprint(storetest.After(1).UnixMilli()),
		}, f.Redis.HGetAll(ctx, "deadletter:why:"+string(one)).Val())
		assert.Equal(t, 2, f.queued(storetest.Alice))

		f.MakeInstant(1)
		task = f.Take("w1", 2)
		f.complete(task, storetest.Result{
			Failure: bus.EndpointFailure, Health: -2, ThrottledUntil: storetest.After(500),
			Slice: &store.SliceResult{Letters: []store.DeadLetter{{ID: batch, Reason: bus.DiedOfAge, Error: bus.ErrorRefused, WebhookID: "x"}}},
		}, 2)
		assert.Equal(t, []string{"alice--1", created, "2", packed(3), packed(4)}, f.Redis.LRange(ctx, "deadletter:"+string(batch), 0, -1).Val())
		assert.Equal(t, "1", f.Redis.HGet(ctx, "deadletter:why:"+string(batch), "revision").Val())
		assert.Equal(t, []string{string(one), string(batch)}, f.Redis.ZRange(ctx, "deadletters:index:alice--1", 0, -1).Val())
		assert.Equal(t, "3", f.Redis.HGet(ctx, "deadletters:events", "alice--1").Val())
		assert.Equal(t, fmt.Sprint(len(packed(2)+packed(3)+packed(4))), f.Redis.HGet(ctx, "deadletters:bytes", "alice--1").Val())
		assert.Empty(t, f.Redis.Keys(ctx, "batch*").Val(), "nothing is left of the batch")
		assert.Equal(t, "98", f.Redis.HGet(ctx, "subscriber:alice--1", "health_points").Val(), "the endpoint has failed all the same")
		assert.Equal(t, fmt.Sprint(storetest.After(500).UnixMilli()), f.Redis.HGet(ctx, "delivery:alice--1", "throttled_until").Val())
	})
}

func TestWhatIsVoidKillsNothing(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newSliced(t, server, 2, map[string]string{"dead_letters": `{}`})
		task := f.Take("w1", 0)
		_, err := f.Scrub(t.Context(), storetest.After(1), bus.QueueMain)
		require.NoError(t, err)
		owned, err := f.CompleteAt(t.Context(), task, storetest.Result{
			Attempt: []byte("x"), AttemptsKept: 5,
			Slice: &store.SliceResult{Letters: []store.DeadLetter{{ID: task.Delivery.Batch, Reason: bus.DiedOfAge}}},
		}, storetest.After(2))
		require.NoError(t, err)
		assert.False(t, owned)
		assert.Empty(t, f.Redis.Keys(t.Context(), "deadletter*").Val())
		assert.Empty(t, f.Redis.Keys(t.Context(), "attempts*").Val())
		again := f.Take("w2", 3)
		assert.Equal(t, []int{1, 2}, storetest.Numbers(t, again))
		f.complete(again, storetest.Result{RetryAt: storetest.After(9), Attempt: []byte("y"), AttemptsKept: 5}, 4)
		assert.Equal(t, []string{"y"}, f.Redis.LRange(t.Context(), "attempts:alice--1", 0, -1).Val())
	})
}

func TestAttemptsAreRecorded(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		f.AddSubscriber(storetest.Alice, 0, 1, "widgets")
		f.PublishEvents("widgets", 1, 1, 0)
		ctx, key := t.Context(), "attempts:alice--1"
		require.NoError(t, f.Redis.Set(ctx, key, "of another type", 0).Err())
		for i := range 5 {
			f.MakeInstant(i)
			task := f.Take("w1", i)
			require.Nil(t, task.Delivery.Basis)
			f.complete(task, storetest.Result{
				RetryAt: storetest.After(i), Failure: bus.BatchFailure, Attempt: []byte(fmt.Sprint(i)), AttemptsKept: 3,
			}, i)
		}
		assert.Equal(t, []string{"4", "3", "2"}, f.Redis.LRange(ctx, key, 0, -1).Val())
		assert.InDelta(t, 7*24*time.Hour, f.Redis.PTTL(ctx, key).Val(), float64(time.Minute))

		f.MakeInstant(5)
		task := f.Take("w1", 5)
		require.NoError(t, f.DeleteSubscriber(ctx, storetest.Alice))
		f.complete(task, storetest.Result{RetryAt: storetest.After(6), Attempt: []byte("late"), AttemptsKept: 3}, 5)
		assert.Zero(t, f.Redis.Exists(ctx, key).Val(), "nobody is left who could read it")
	})
}

func TestAPausedSubscriberKeepsItsQueue(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		f.AddSubscriber(storetest.Alice, 0, 1, "widgets")
		f.PublishEvents("widgets", 1, 2, 0)
		task := f.Take("w1", 0)
		require.NoError(t, f.Pause(t.Context(), storetest.Alice, bus.Forever))
		f.complete(task, storetest.Result{Delivered: 1, Health: 1}, 0)
		assert.Nil(t, f.Take("w1", 1))
		f.PublishEvents("widgets", 3, 3, 1)
		for _, ms := range []int{10, 600_000, 1_200_000} { // it is looked at now and then
			f.MakeInstant(ms)
			assert.Nil(t, f.Take("w1", ms))
			f.RequireSound()
		}
		f.AddSubscriber(storetest.Alice, 0, 1, "widgets")
		assert.Nil(t, f.Take("w1", 1_200_001), "subscribing again does not resume")
		require.NoError(t, f.Resume(t.Context(), storetest.Alice))
		task = f.Take("w1", 1_200_002)
		assert.Equal(t, []int{2}, storetest.Numbers(t, task), "at once, and in order")

		require.NoError(t, f.Pause(t.Context(), storetest.Alice, bus.Forever))
		f.complete(task, storetest.Result{Delivered: 1}, 1_200_002)
		assert.Nil(t, f.Take("w1", 1_200_003))
		require.NoError(t, f.Pause(t.Context(), storetest.Alice, storetest.After(1_300_000)), "for a shorter time")
		assert.Nil(t, f.Take("w1", 1_200_004))
		f.MakeInstant(1_299_999)
		assert.Nil(t, f.Take("w1", 1_299_999))
		f.RequireSound()
		f.MakeInstant(1_300_000)
		assert.Equal(t, []int{3}, storetest.Numbers(t, f.Take("w1", 1_300_000)), "it has ended by itself")
	})
}

func TestATestEventPassesEverything(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		f.AddSubscriber(storetest.Alice, 0, 1, "widgets")
		f.PublishEvents("widgets", 1, 3, 0)
		f.complete(f.Take("w1", 0), storetest.Result{
			RetryAt: storetest.After(1), Failure: bus.EndpointFailure, ThrottledUntil: storetest.After(60_000),
		}, 0)
		ctx := t.Context()
		require.NoError(t, f.Pause(ctx, storetest.Alice, bus.Forever))
		for f.Take("w1", 1) != nil {
			require.Fail(t, "it is paused")
		}
		before := f.Redis.HGetAll(ctx, "subscriber:alice--1").Val()
		id, err := f.TestEvent(ctx, storetest.Alice, storetest.After(1))
		require.NoError(t, err)
		_, err = f.TestEvent(ctx, storetest.Alice, storetest.After(1))
		require.Error(t, err, "one waits")
		f.RequireSound()
		task := f.Take("w1", 2)
		require.NotNil(t, task)
		assert.Equal(t, id, task.Delivery.Batch)
		assert.True(t, task.Delivery.Basis.Test)
		_, err = f.Scrub(ctx, storetest.After(2), bus.QueueMain) // its worker is dead
		require.NoError(t, err)
		task = f.Take("w2", 2)
		require.NotNil(t, task)
		assert.Equal(t, id, task.Delivery.Batch)
		assert.True(t, task.Delivery.Basis.Test)
		f.complete(task, storetest.Result{Attempt: []byte("x"), AttemptsKept: 1, Slice: &store.SliceResult{}}, 3)
		after := f.Redis.HGetAll(ctx, "subscriber:alice--1").Val()
		delete(before, "last_attempted_at")
		delete(after, "last_attempted_at")
		assert.Equal(t, before, after)
		assert.ElementsMatch(t, []string{"name", "throttled_until", "paused_until"}, f.Redis.HKeys(ctx, "delivery:alice--1").Val(),
			"what the test has needed is gone")
		assert.Zero(t, f.Redis.Exists(ctx, "options:alice--1").Val())
		assert.Equal(t, 3, f.queued(storetest.Alice))
		assert.Nil(t, f.Take("w1", 3), "it came once more at most")
		_, err = f.TestEvent(ctx, storetest.Alice, storetest.After(4))
		require.NoError(t, err)
	})
}

func TestStrictOrder(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		for _, failure := range []bus.Failure{bus.BatchFailure, bus.EndpointFailure, 0} {
			require.NoError(t, server.Raw.FlushAll(t.Context()).Err())
			f := newSliced(t, server, 1, map[string]string{"strict_order": "true"})
			f.PublishEvents("widgets", 2, 3, 0)
			for ms := 0; ms < 5000; ms += 1000 {
				f.MakeInstant(ms)
				task := f.Take("w1", ms)
				require.Equal(t, []int{1}, storetest.Numbers(t, task), failure)
				f.complete(task, storetest.Result{
					RetryAt: storetest.After(ms + 500), Failure: failure, Slice: &store.SliceResult{KeepTurn: true},
				}, ms)
				assert.Nil(t, f.Take("w2", ms+100), "those behind it wait")
			}
			f.MakeInstant(6000)
			f.complete(f.Take("w1", 6000), storetest.Result{Delivered: 1, Health: 1}, 6000)
			for want := 2; want <= 3; want++ {
				task := f.Take("w1", 6000)
				require.Equal(t, []int{want}, storetest.Numbers(t, task))
				f.complete(task, storetest.Result{Delivered: 1}, 6000)
			}
		}
	})
}

func TestABatchWithAPlanThatWasNotSentKeepsItsTurn(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newSliced(t, server, 1, map[string]string{"strict_order": "true"})
		f.PublishEvents("widgets", 2, 2, 0)
		task := f.Take("w1", 0)
		_, err := f.Queue.Complete(t.Context(), task.Task, queue.Result{RetryAt: storetest.After(10)}, storetest.After(0))
		require.NoError(t, err)
		assert.Nil(t, f.Take("w1", 1))
		f.MakeInstant(10)
		assert.Equal(t, []int{1}, storetest.Numbers(t, f.Take("w1", 10)))
	})
}
