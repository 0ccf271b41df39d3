package store_test

import (
	"fmt"
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

// setLanes has a subscriber's events go by their key into lanes.
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

// requireNothingQueued requires that nothing is left of batches, lanes and fences.
func (f *fixture) requireNothingQueued(t *testing.T) {
	t.Helper()
	for _, pattern := range []string{"batch*", "jobs:lane:*"} {
		assert.Empty(t, f.Redis.Keys(t.Context(), pattern).Val())
	}
	assert.Empty(t, f.Redis.HGet(t.Context(), "options:alice--1", "older").Val())
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
		for tasks := f.takeAll(t, "b", 0); len(tasks) > 0; tasks = f.takeAll(t, "b", 3_600_000) {
			for _, task := range tasks {
				got = append(got, storetest.Numbers(t, task)...)
				require.True(t, f.Complete(task, storetest.Done))
			}
		}
		assert.ElementsMatch(t, []int{2, 3, 4}, got[:3], "first those of the lanes, at once")
		assert.Equal(t, []int{5, 6, 7}, got[3:])
		after := rdbtest.Dump(t, f.Redis)
		for _, changes := range []string{"topic:widgets", "subscriber:alice--1", "workers", "jobs:pending:index:main"} {
			delete(after, changes)
			delete(untouched, changes)
		}
		assert.Equal(t, untouched, after)
	})
}

func TestAChangeOfLanesKeepsTheOrder(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		f.AddSubscriber(storetest.Alice, 0, 1, "widgets")
		f.publishKeyed(t, 1, "x", "x")
		f.setLanes(4)
		f.publishKeyed(t, 3, "x", "y")
		f.setLanes(3)
		f.publishKeyed(t, 5, "x")
		f.patch(storetest.Alice, map[string]string{"lanes": ""})
		f.publishKeyed(t, 6, "x")
		f.RequireSound()

		var got []int
		for tasks := f.takeAll(t, "w", 0); len(tasks) > 0; tasks = f.takeAll(t, "w", 0) {
			for _, task := range tasks {
				got = append(got, storetest.Numbers(t, task)...)
			}
			f.RequireSound()
			for _, task := range tasks {
				require.True(t, f.Complete(task, storetest.Done))
			}
		}
		assert.Equal(t, []int{1, 2}, got[:2])
		assert.ElementsMatch(t, []int{3, 4}, got[2:4])
		assert.Equal(t, []int{5, 6}, got[4:])
		f.requireNothingQueued(t)
	})
}

func TestABatchThatFailsHoldsALaneOnlyIfTheOrderIsStrict(t *testing.T) {
	for _, strict := range []bool{false, true} {
		t.Run(fmt.Sprint("strict ", strict), func(t *testing.T) {
			rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
				f := newFixture(t, server)
				f.AddSubscriber(storetest.Alice, 0, 1, "widgets")
				f.publishKeyed(t, 1, "x")
				f.patch(storetest.Alice, map[string]string{"strict_order": fmt.Sprint(strict)})
				f.setLanes(2)
				keys := f.keysInLanes(t, 2)
				f.publishKeyed(t, 2, keys[0], keys[1], keys[0])

				first := f.takeAll(t, "a", 0)
				require.Equal(t, [][]int{{1}}, numbersOf(t, first), "the change of the lanes waits for it")
				f.refuse(t, first[0], strict)
				second := f.takeAll(t, "b", 0)
				if strict {
					require.Empty(t, second)
					second = f.takeAll(t, "b", 60_000)
					require.Equal(t, [][]int{{1}}, numbersOf(t, second))
					require.True(t, f.Complete(second[0], storetest.Done))
					second = f.takeAll(t, "c", 60_000)
				}
				require.ElementsMatch(t, [][]int{{2}, {3}}, numbersOf(t, second))
				f.refuse(t, second[indexOf(numbersOf(t, second), 2)], strict)
				third := f.takeAll(t, "d", 60_000)
				if strict {
					require.Equal(t, [][]int{{2}}, numbersOf(t, third), "in the lane's order")
				} else {
					require.Contains(t, numbersOf(t, third), []int{4}, "others of the lane pass")
				}
			})
		})
	}
}

// TestABatchThatHasFailedDoesNotHoldUpAChangeOfLanes fails a batch before the lanes change: it has
// left its lane, and comes up again long after.
func TestABatchThatHasFailedDoesNotHoldUpAChangeOfLanes(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		f.AddSubscriber(storetest.Alice, 0, 1, "widgets")
		f.publishKeyed(t, 1, "x")
		f.refuse(t, f.Take("w1", 0), false)
		f.setLanes(4)
		f.RequireSound()
		f.publishKeyed(t, 2, "x")
		require.Equal(t, [][]int{{2}}, numbersOf(t, f.takeAll(t, "a", 0)))
		f.setLanes(3)
		f.publishKeyed(t, 3, "x")
		require.Empty(t, f.takeAll(t, "b", 0), "one is in flight")
		f.RequireSound()
	})
}

// TestManyFailedBatchesDoNotHoldUpAChangeOfLanes has more of them than one step looks at.
func TestManyFailedBatchesDoNotHoldUpAChangeOfLanes(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		const failed = 300
		f := newFixture(t, server)
		f.refuseFirst(failed, 60_000)
		waiting := func() []any {
			return f.Redis.HMGet(t.Context(), "options:alice--1", "older", "passing").Val()
		}
		f.setLanes(4)
		assert.NotContains(t, waiting(), nil, "one step does not look at all of them")
		f.publishKeyed(t, 1000, f.keysInLanes(t, 2)...)
		var got []*storetest.Task
		for steps := 0; len(got) == 0 && steps < 10; steps++ {
			got = f.takeAll(t, "a", 1)
		}
		assert.ElementsMatch(t, [][]int{{1000}, {1001}}, numbersOf(t, got))
		assert.Equal(t, []any{nil, nil}, waiting())
		f.RequireSound()

		// The change waits for those that are in flight; what waits for it has been looked at before.
		f.setLanes(2)
		f.publishKeyed(t, 2000, f.keysInLanes(t, 2)...)
		for range 10 {
			require.Empty(t, f.takeAll(t, "b", 1))
		}
		left := waiting()
		assert.Regexp(t, "^[^ ]+/4/2$", left[0])
		assert.Nil(t, left[1])
		f.setLanes(3)
		for range 10 {
			require.Empty(t, f.takeAll(t, "b", 1), "nothing new was published")
		}
		assert.Nil(t, waiting()[1])
		f.RequireSound()
	})
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

// TestLanesAreMergedAtOnce removes a subscriber: were its lanes merged one by one, each batch would
// be moved again for each lane, and 10,000 batches would keep Redis busy for a second.
func TestLanesAreMergedAtOnce(t *testing.T) {
	f := newFixture(t, rdbtest.Real(t))
	f.AddSubscriber(storetest.Alice, 0, 1, "widgets")
	f.setLanes(8)
	keys := f.keysInLanes(t, 8)
	f.publishKeyed(t, 1, append(keys, keys...)...)
	require.Len(t, f.takeAll(t, "a", 0), 8)
	require.NoError(t, f.Redis.ConfigResetStat(t.Context()).Err())
	require.NoError(t, f.DeleteSubscriber(t.Context(), storetest.Alice))
	stats, err := f.Redis.Info(t.Context(), "commandstats").Result()
	require.NoError(t, err)
	assert.Contains(t, stats, "cmdstat_zunionstore:calls=1,")
	f.RequireSound()
}

func TestTooManyChangesOfLanesAreRefused(t *testing.T) {
	f := newFixture(t, rdbtest.Embedded(t))
	f.AddSubscriber(storetest.Alice, 0, 1, "widgets")
	var err error
	for changes := 0; err == nil; changes++ {
		require.Less(t, changes, 20)
		f.publishKeyed(t, changes, "x")
		options := map[string]string{"lanes": fmt.Sprint(changes + 2)}
		err = f.PatchSubscriber(t.Context(), storetest.Alice, bus.Subscription{Options: options}, storetest.Start)
	}
	require.ErrorIs(t, err, bus.ErrLanesChange)
	f.RequireSound()
}

// TestRefusedBatchesDoNotWaitForAChangeOfLanes has two refused batches on either side of a change
// of the lanes: neither holds others up, or keeps the other from being retried.
func TestRefusedBatchesDoNotWaitForAChangeOfLanes(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		f.AddSubscriber(storetest.Alice, 0, 1, "widgets")
		f.setLanes(2)
		f.publishKeyed(t, 1, f.keysInLanes(t, 2)...)
		held := f.takeAll(t, "a", 0)
		before, behind := indexOf(numbersOf(t, held), 1), indexOf(numbersOf(t, held), 2)
		f.refuse(t, held[before], false)
		f.setLanes(3)
		require.True(t, f.Complete(held[behind], storetest.Result{
			RetryAt: storetest.After(50_000), Failure: bus.BatchFailure, Slice: &store.SliceResult{},
		}))
		f.publishKeyed(t, 3, f.keysInLanes(t, 3)[1])
		third := f.takeAll(t, "b", 1)
		require.Equal(t, [][]int{{3}}, numbersOf(t, third))
		require.True(t, f.Complete(third[0], storetest.Done))
		second := f.takeAll(t, "c", 50_000)
		require.Equal(t, [][]int{{2}}, numbersOf(t, second))
		require.True(t, f.Complete(second[0], storetest.Done))
		require.Equal(t, [][]int{{1}}, numbersOf(t, f.takeAll(t, "d", 60_000)))
	})
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
