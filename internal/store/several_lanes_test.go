package store_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store"
	"routemaster/internal/store/storetest"
	"routemaster/internal/wire"
	"routemaster/internal/wire/wiretest"
)

// keyedEvent is an event of a number, with a key in its data.
func keyedEvent(t *testing.T, key string, i int) wire.PackedEvent {
	return wiretest.Pack(t, "widgets", fmt.Sprintf(`{"type":"update","url":"https://x.example/%d","data":{"key":%q}}`, i, key))
}

// publishKeyed publishes events of some keys, numbered from a number on.
func (f *fixture) publishKeyed(t *testing.T, first int, keys ...string) {
	t.Helper()
	f.publishKeyedAt(t, first, 0, keys...)
}

// publishKeyedAt is publishKeyed at a time in ms after the start.
func (f *fixture) publishKeyedAt(t *testing.T, first, ms int, keys ...string) {
	t.Helper()
	p := store.Publication{Topic: "widgets", Publisher: storetest.Publisher, ReceivedAt: storetest.After(ms).UnixMilli()}
	for i, key := range keys {
		p.Events = append(p.Events, keyedEvent(t, key, first+i))
	}
	require.NoError(t, f.Publish(t.Context(), p))
}

// setLanes divides a subscriber's events into lanes by their key.
func (f *fixture) setLanes(lanes int) {
	f.patch(storetest.Alice, map[string]string{"lanes": fmt.Sprint(lanes), "order_key": `"/data/key"`})
}

// refuse has the endpoint refuse a batch; the batch keeps its turn if the order is strict.
func (f *fixture) refuse(t *testing.T, task *storetest.Task, strict bool) {
	t.Helper()
	require.True(t, f.Complete(task, storetest.Result{
		RetryAt: storetest.After(60_000), Failure: bus.BatchFailure, Slice: &store.SliceResult{KeepTurn: strict},
	}))
	f.RequireSound()
}

// keysInLanes returns keys of as many lanes, a key of each.
func (f *fixture) keysInLanes(t *testing.T, n int) []string {
	t.Helper()
	lanes, err := f.Lanes(t.Context(), storetest.Alice)
	require.NoError(t, err)
	keys := make([]string, n)
	for i, left := 0, n; left > 0; i++ {
		key := fmt.Sprint("key-", i)
		if lane := lanes.Of(keyedEvent(t, key, 0)); lane < n && keys[lane] == "" {
			keys[lane], left = key, left-1
		}
	}
	return keys
}

// takeAll takes all that may be in flight.
func (f *fixture) takeAll(t *testing.T, prefix string, ms int) (tasks []*storetest.Task) {
	t.Helper()
	f.MakeInstant(ms)
	for {
		task := f.Take(bus.WorkerID(fmt.Sprint(prefix, len(tasks))), ms)
		if task == nil {
			return tasks
		}
		tasks = append(tasks, task)
	}
}

func numbersOf(t *testing.T, tasks []*storetest.Task) (all [][]int) {
	for _, task := range tasks {
		all = append(all, storetest.Numbers(t, task))
	}
	return all
}

func TestEachLaneIsDeliveredInOrder(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		f.AddSubscriber(storetest.Alice, 0, 2, "widgets")
		f.setLanes(4)
		keys := f.keysInLanes(t, 2)
		f.publishKeyed(t, 1, keys[0], keys[1], keys[0], keys[0], keys[1], keys[0])
		f.publishKeyed(t, 7, keys[0], keys[1])
		f.RequireSound()

		first := f.takeAll(t, "a", 0)
		assert.ElementsMatch(t, [][]int{{1, 3}, {2, 5}}, numbersOf(t, first), "one of each lane")
		f.RequireSound()
		var rest [][]int
		for len(first) > 0 {
			require.True(t, f.Complete(first[0], storetest.Result{Delivered: 2}))
			next := f.takeAll(t, fmt.Sprint("b", len(rest)), 0)
			rest = append(rest, numbersOf(t, next)...)
			first = append(first[1:], next...)
		}
		assert.ElementsMatch(t, [][]int{{4, 6}, {7}, {8}}, rest)
		assert.Less(t, indexOf(rest, 4), indexOf(rest, 7))
		f.requireNothingQueued(t)
	})
}

// indexOf finds the batch that begins with a number.
func indexOf(batches [][]int, first int) int {
	for i, batch := range batches {
		if batch[0] == first {
			return i
		}
	}
	return -1
}

// requireNothingQueued requires that nothing is left of batches and of lanes that were there.
func (f *fixture) requireNothingQueued(t *testing.T) {
	t.Helper()
	for _, pattern := range []string{"batch*", "jobs:lane:*"} {
		assert.Empty(t, f.Redis.Keys(t.Context(), pattern).Val())
	}
	assert.Empty(t, f.Redis.HGet(t.Context(), "options:alice--1", "past_lanes").Val())
	f.RequireSound()
}

func TestWithoutLanesNothingIsLeftOfThem(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		f.AddSubscriber(storetest.Alice, time.Hour, 100, "widgets")
		f.publishKeyed(t, 1, "x")
		require.True(t, f.Complete(f.takeAll(t, "a", 3_600_000)[0], storetest.Done))
		untouched := rdbtest.Dump(t, f.Redis)

		f.setLanes(64)
		assert.NotEmpty(t, f.Redis.HGet(t.Context(), "plans", "alice--1").Val())
		f.publishKeyed(t, 2, "x", "y", "z")
		f.patch(storetest.Alice, map[string]string{"lanes": "", "order_key": ""})
		f.publishKeyed(t, 5, "x", "y", "z")
		f.RequireSound()
		var got []int
		for tasks := f.takeAll(t, "b", 3_600_000); len(tasks) > 0; tasks = f.takeAll(t, "b", 3_600_000) {
			for _, task := range tasks {
				got = append(got, storetest.Numbers(t, task)...)
				require.True(t, f.Complete(task, storetest.Done))
			}
		}
		assert.ElementsMatch(t, []int{2, 3, 4, 5, 6, 7}, got)
		after := rdbtest.Dump(t, f.Redis)
		for _, changes := range []string{"topic:widgets", "subscriber:alice--1", "workers", "jobs:pending:index:main"} {
			delete(after, changes)
			delete(untouched, changes)
		}
		assert.Equal(t, untouched, after)
	})
}

// requireDelivered delivers all waiting events, and requires the given numbers to come in order.
func (f *fixture) requireDelivered(t *testing.T, all []int, ordered ...[]int) {
	t.Helper()
	var got []int
	for tasks := f.takeAll(t, "w", 0); len(tasks) > 0; tasks = f.takeAll(t, "w", 0) {
		f.RequireSound()
		for _, task := range tasks {
			got = append(got, storetest.Numbers(t, task)...)
			require.True(t, f.Complete(task, storetest.Done))
		}
	}
	assert.ElementsMatch(t, all, got)
	for _, numbers := range ordered {
		of := slices.DeleteFunc(slices.Clone(got), func(n int) bool { return !slices.Contains(numbers, n) })
		assert.Equal(t, numbers, of)
	}
	f.requireNothingQueued(t)
}

// TestAChangeOfLanesHoldsForWhatIsPublishedFromThenOn changes lanes while batches of the ones
// before wait: these stay where they are, and hold nothing up.
func TestAChangeOfLanesHoldsForWhatIsPublishedFromThenOn(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		f.AddSubscriber(storetest.Alice, 0, 1, "widgets")
		f.setLanes(4)
		keys := f.keysInLanes(t, 4)
		f.publishKeyed(t, 1, keys[3], keys[3], keys[2])
		f.setLanes(2)
		f.RequireSound()
		x, y := f.keysInLanes(t, 2)[0], f.keysInLanes(t, 2)[1]
		f.publishKeyed(t, 11, x, y, x, y)
		held := f.takeAll(t, "a", 0)
		assert.ElementsMatch(t, [][]int{{1}, {3}, {11}, {12}}, numbersOf(t, held), "one of each lane, of now and of before")
		f.RequireSound()
		for _, task := range held {
			require.True(t, f.Complete(task, storetest.Done))
		}
		f.patch(storetest.Alice, map[string]string{"lanes": ""})
		f.publishKeyed(t, 21, x, y, x)
		f.requireDelivered(t, []int{2, 13, 14, 21, 22, 23}, []int{21, 22, 23})
		assert.Empty(t, f.Redis.Exists(t.Context(), "plans").Val())
	})
}

// TestAChangeOfLanesKeepsTheOrderIfNothingIsQueued publishes events of one key across changes. Each
// change comes when all events published before are done.
func TestAChangeOfLanesKeepsTheOrderIfNothingIsQueued(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		f.AddSubscriber(storetest.Alice, 0, 1, "widgets")
		for i, lanes := range []int{1, 4, 3, 64, 1, 2} {
			f.setLanes(lanes)
			first := 1 + 3*i
			f.publishKeyed(t, first, "x", "x", "x")
			numbers := []int{first, first + 1, first + 2}
			f.requireDelivered(t, numbers, numbers)
		}
	})
}

// TestLanesThatAreNoMoreAreWoken pauses a subscriber that had more lanes: as it goes on, so do all.
func TestLanesThatAreNoMoreAreWoken(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		f.AddSubscriber(storetest.Alice, 0, 1, "widgets")
		f.setLanes(3)
		keys := f.keysInLanes(t, 3)
		f.publishKeyed(t, 1, keys[0], keys[1], keys[2])
		f.patch(storetest.Alice, map[string]string{"lanes": ""})
		require.NoError(t, f.Pause(t.Context(), storetest.Alice, bus.Forever))
		require.Empty(t, f.takeAll(t, "a", 0))
		require.NoError(t, f.Resume(t.Context(), storetest.Alice))
		f.requireDelivered(t, []int{1, 2, 3})
	})
}

// TestLanesOfAnEarlierReleaseAreTakenOver has a subscriber's queue stand in lanes that were named
// by generations, with a batch that waits for earlier ones: all are delivered, in order within each
// lane, and events published meanwhile come behind them.
func TestLanesOfAnEarlierReleaseAreTakenOver(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f, ctx := newFixture(t, server), t.Context()
		f.AddSubscriber(storetest.Alice, 0, 1, "widgets")
		f.setLanes(2)
		keys := f.keysInLanes(t, 2)
		f.publishKeyed(t, 1, keys[1], keys[1], keys[0], keys[1])
		held := f.takeAll(t, "a", 0) // all stand in their lanes
		require.Len(t, held, 2)
		const first, second = "jobs:lane:batch:alice--1", "jobs:lane:batch:alice--1/1"
		require.NoError(t, f.Redis.Rename(ctx, second, "jobs:lane:batch:alice--1/before--/4").Err())
		require.NoError(t, f.Redis.Rename(ctx, first, "jobs:lane:batch:alice--1/version1/0").Err())
		for _, bid := range f.Redis.ZRange(ctx, "batches:index", 0, -1).Val() {
			if f.Redis.HGet(ctx, "batches:state:"+bid, "lane").Val() == "1" {
				f.Redis.HSet(ctx, "batches:state:"+bid, "generation", "before--", "lane", 4)
			} else {
				f.Redis.HSet(ctx, "batches:state:"+bid, "generation", "version1", "lane", 0)
			}
		}
		f.Redis.HSet(ctx, "options:alice--1", "generation", "version1", "older", "/1/0 before--/5/3", "passing", "7")
		f.publishKeyed(t, 5, keys[0])
		for _, task := range held { // their worker has died
			f.Redis.Del(ctx, "jobs:pending:main:"+string(task.Worker))
			f.Redis.LPush(ctx, "jobs:instant:main", storetest.Job(string(task.Delivery.Batch)))
		}
		f.requireDelivered(t, []int{1, 2, 3, 4, 5}, []int{1, 2, 4}, []int{3, 5})
		assert.Equal(t, []any{nil, nil, nil}, f.Redis.HMGet(ctx, "options:alice--1", "generation", "older", "passing").Val())
	})
}

func TestABatchThatFailsHoldsALaneOnlyIfTheOrderIsStrict(t *testing.T) {
	for _, strict := range []bool{false, true} {
		t.Run(fmt.Sprint("strict ", strict), func(t *testing.T) {
			rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
				f := newFixture(t, server)
				f.AddSubscriber(storetest.Alice, 0, 1, "widgets")
				f.patch(storetest.Alice, map[string]string{"strict_order": fmt.Sprint(strict)})
				f.setLanes(2)
				keys := f.keysInLanes(t, 2)
				f.publishKeyed(t, 2, keys[0], keys[1], keys[0])

				first := f.takeAll(t, "a", 0)
				require.ElementsMatch(t, [][]int{{2}, {3}}, numbersOf(t, first))
				f.refuse(t, first[indexOf(numbersOf(t, first), 2)], strict)
				second := f.takeAll(t, "b", 60_000)
				if strict {
					require.Equal(t, [][]int{{2}}, numbersOf(t, second), "in the lane's order")
				} else {
					require.Contains(t, numbersOf(t, second), []int{4}, "others of the lane pass")
				}
			})
		})
	}
}

func TestALanedSubscriberIsRenamedAndRemoved(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		f.AddSubscriber(storetest.Alice, 0, 1, "widgets")
		f.setLanes(3)
		keys := f.keysInLanes(t, 3)
		f.publishKeyed(t, 1, keys[0], keys[1], keys[0], keys[2])
		held := f.takeAll(t, "a", 0)
		require.Len(t, held, 3)
		_, _, err := f.RotateToken(t.Context(), storetest.Alice, "alice--2")
		require.NoError(t, err)
		f.publishKeyed(t, 5, keys[1])
		f.RequireSound()
		for _, task := range held {
			require.True(t, f.Complete(task, storetest.Done))
		}
		held = f.takeAll(t, "b", 0)
		assert.ElementsMatch(t, [][]int{{3}, {5}}, numbersOf(t, held))
		f.publishKeyed(t, 6, keys[0], keys[1], keys[2])

		require.NoError(t, f.DeleteSubscriber(t.Context(), "alice--2"))
		f.RequireSound()
		for _, task := range held {
			require.True(t, f.Complete(task, storetest.Done))
		}
		require.Empty(t, f.takeAll(t, "c", 600_000))
		f.requireNothingQueued(t)
		assert.Empty(t, f.Redis.Exists(t.Context(), "plans", "options:alice--2").Val())
	})
}

// deleteLaned deletes a subscriber with batches in three lanes; the first of each lane is in
// flight.
func (f *fixture) deleteLaned(t *testing.T) (held []*storetest.Task) {
	f.AddSubscriber(storetest.Alice, 0, 1, "widgets")
	f.setLanes(3)
	keys := f.keysInLanes(t, 3)
	f.publishKeyed(t, 1, keys[2], keys[2], keys[2], keys[1], keys[1], keys[0])
	held = f.takeAll(t, "a", 0)
	require.Len(t, held, 3)
	require.NoError(t, f.DeleteSubscriber(t.Context(), storetest.Alice))
	return held
}

// TestWhatALanedSubscriberLeavesIsDropped fails the batches in flight: the others are dropped
// before these come up again.
func TestWhatALanedSubscriberLeavesIsDropped(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		held := f.deleteLaned(t)
		for _, task := range held {
			require.True(t, f.Complete(task, storetest.Result{RetryAt: storetest.After(60_000), Failure: bus.BatchFailure, Slice: &store.SliceResult{}}))
			f.RequireSound()
		}
		require.Empty(t, f.takeAll(t, "b", 0))
		require.EqualValues(t, len(held), f.Redis.ZCard(t.Context(), "batches:index").Val())
		require.Empty(t, f.takeAll(t, "b", 60_000))
		f.requireNothingQueued(t)
	})
}

// TestWhatALanedSubscriberLeavesIsRenamed changes the token of a client whose subscriber is gone.
func TestWhatALanedSubscriberLeavesIsRenamed(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		held := f.deleteLaned(t)
		_, _, err := f.RotateToken(t.Context(), storetest.Alice, "alice--2")
		require.NoError(t, err)
		f.RequireSound()
		for _, task := range held {
			require.True(t, f.Complete(task, storetest.Done))
		}
		require.Empty(t, f.takeAll(t, "b", 0))
		f.requireNothingQueued(t)
	})
}

// TestALanedSubscriberSubscribesAnew while batches of its earlier subscription are in flight.
func TestALanedSubscriberSubscribesAnew(t *testing.T) {
	for _, lanes := range []int{1, 2, 5} {
		for _, end := range []storetest.Result{storetest.Done, {RetryAt: storetest.After(60_000), Failure: bus.EndpointFailure}} {
			t.Run(fmt.Sprint(lanes, " lanes, fails ", end.Failure != 0), func(t *testing.T) {
				rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
					f := newFixture(t, server)
					held := f.deleteLaned(t)
					f.AddSubscriber(storetest.Alice, 0, 1, "widgets")
					f.setLanes(lanes)
					f.publishKeyed(t, 11, "x", "x", "y", "z")
					f.RequireSound()
					for _, task := range held {
						require.True(t, f.Complete(task, end))
						f.RequireSound()
					}
					f.requireDelivered(t, []int{11, 12, 13, 14}, []int{11, 12})
				})
			})
		}
	}
}

// TestALaneGoesByTheOrderKey compares the lanes of events with the same key, and without one.
func TestALaneGoesByTheOrderKey(t *testing.T) {
	event := func(number, data string) wire.PackedEvent {
		return wiretest.Pack(t, "widgets", fmt.Sprintf(`{"type":"update","url":"https://x.example/%s","data":%s}`, number, data))
	}
	byAccount := store.Lanes{Count: 64, OrderKey: "/data/account"}
	byURL := store.Lanes{Count: 64, OrderKey: bus.DefaultOrderKey}
	byTopic := store.Lanes{Count: 64, OrderKey: "/topic"}
	used := map[int]bool{}
	for i := range 20 {
		number := fmt.Sprint(i)
		with, without := event(number, `{"account":7}`), event(number, `{"amount":7}`)
		assert.Equal(t, byAccount.Of(event("x", `{"account":7}`)), byAccount.Of(with))
		assert.Equal(t, byURL.Of(with), byAccount.Of(without))
		assert.Equal(t, byTopic.Of(with), byTopic.Of(without))
		used[byURL.Of(with)] = true
	}
	assert.Greater(t, len(used), 10)
}
