package store_test

import (
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

func TestAResultOfTooManyValuesLeavesTheBatchToItsWorker(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newSliced(t, server, 2000, map[string]string{"partial": "true", "dead_letters": "{}"})
		task := f.Take("w1", 0)
		var letters []store.DeadLetter
		for i := range 2000 {
			letters = append(letters, store.DeadLetter{ID: bus.NewBatchID(), Events: store.Ranges{{First: i, Last: i}}})
		}
		_, err := f.CompleteAt(t.Context(), task, storetest.Result{Works: true, Slice: &store.SliceResult{Letters: letters}}, storetest.Start)
		require.Error(t, err)
		f.RequireSound()
		f.complete(task, storetest.Result{Delivered: 2000}, 1)
		assert.Zero(t, f.queued(storetest.Alice))
	})
}

func TestATestEventWhosePlanCannotBeReadStaysOne(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		f.AddSubscriber(storetest.Alice, time.Hour, 100, "widgets")
		_, err := f.TestEvent(t.Context(), storetest.Alice, storetest.Start)
		require.NoError(t, err)
		task := f.Take("w1", 0)
		require.True(t, task.Delivery.Basis.Test)
		_, err = f.Queue.Complete(t.Context(), task.Task, queue.Result{RetryAt: storetest.After(1000)}, storetest.After(1))
		require.NoError(t, err)
		f.MakeInstant(1000)
		task = f.Take("w1", 1000)
		require.NotNil(t, task.Delivery.Basis)
		assert.True(t, task.Delivery.Basis.Test)
	})
}

func TestUnusedPaceMakesNoStateOfASubscriberThatIsGone(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newSliced(t, server, 100, map[string]string{"max_bytes": "2000", "max_events_per_minute": "60"})
		task := f.Take("w1", 0)
		require.NoError(t, f.DeleteSubscriber(t.Context(), storetest.Alice))
		_, err := f.CompleteAt(t.Context(), task, storetest.Result{RetryAt: storetest.After(1), Delivered: 20, Slice: &store.SliceResult{KeepTurn: true, UnusedPace: 30 * time.Second, Removed: store.Ranges{{First: 0, Last: 19}}}}, storetest.After(1))
		require.NoError(t, err)
		assert.Zero(t, f.Redis.Exists(t.Context(), "delivery:"+string(storetest.Alice)).Val())
	})
}

// TestStrictOrderHasOneInFlight also where the operator allows more.
func TestStrictOrderHasOneInFlight(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixtureInFlight(t, server, 2)
		f.AddSubscriber(storetest.Alice, 0, 1, "widgets")
		f.setOptions(storetest.Alice, map[string]string{"strict_order": "true"})
		f.PublishEvents("widgets", 1, 4, 0)
		first := f.Take("w1", 0)
		assert.Nil(t, f.Take("w2", 0))
		f.complete(first, storetest.Result{
			RetryAt: storetest.After(30_000), Failure: bus.BatchFailure, Slice: &store.SliceResult{KeepTurn: true},
		}, 1)
		f.PublishEvents("widgets", 5, 5, 2)
		f.MakeInstant(29_999)
		assert.Nil(t, f.Take("w2", 29_999), "it waits for its time, and the others for it")
		f.MakeInstant(30_000)
		for want := 1; want <= 5; want++ {
			task := f.Take("w1", 30_000)
			require.Equal(t, []int{want}, storetest.Numbers(t, task))
			assert.Nil(t, f.Take("w2", 30_000))
			owned, next, err := f.CompleteAndAcquire(
				t.Context(), task, storetest.Result{Delivered: 1}, bus.Failing, storetest.After(30_000))
			require.NoError(t, err)
			require.True(t, owned)
			if want++; want <= 5 {
				require.Equal(t, []int{want}, storetest.Numbers(t, next.Task))
				f.complete(next.Task, storetest.Result{Delivered: 1}, 30_000)
			}
		}
		f.RequireSound()
	})
}

// TestAReceiptEndsAThrottle lets an endpoint that was down take a part of the first batch that is
// tried: the waiting batches follow at once.
func TestAReceiptEndsAThrottle(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newSliced(t, server, 3, map[string]string{"partial": "true"})
		f.PublishEvents("widgets", 4, 6, 0)
		f.complete(f.Take("w1", 0), storetest.Result{
			RetryAt: storetest.After(200), Failure: bus.EndpointFailure, Health: -2, ThrottledUntil: storetest.After(60_000),
		}, 1)
		assert.Nil(t, f.Take("w1", 2))
		f.MakeInstant(60_000)
		task := f.Take("w1", 60_000)
		require.Equal(t, []int{4, 5, 6}, storetest.Numbers(t, task))
		f.complete(task, storetest.Result{
			RetryAt: storetest.After(90_000), Delivered: 2, Works: true, Health: 1,
			Slice: &store.SliceResult{Removed: store.Ranges{{First: 0, Last: 1}}, Findings: &store.Findings{Refusals: 1}},
		}, 60_000)
		assert.Equal(t, []int{1, 2, 3}, storetest.Numbers(t, f.Take("w1", 60_000)))
		assert.Equal(t, "99", f.Redis.HGet(t.Context(), "subscriber:alice--1", "health_points").Val())
	})
}

// TestReceiptsOfTwoLanes answers the batches in flight in two lanes with different receipts.
func TestReceiptsOfTwoLanes(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		f.AddSubscriber(storetest.Alice, 0, 3, "widgets")
		f.setLanes(2)
		f.patch(storetest.Alice, map[string]string{"partial": "true"})
		keys := f.keysInLanes(t, 2)
		f.publishKeyed(t, 1, keys[0], keys[1], keys[0], keys[1], keys[0], keys[1])
		held := f.takeAll(t, "a", 0)
		require.ElementsMatch(t, [][]int{{1, 3, 5}, {2, 4, 6}}, numbersOf(t, held))
		odd := indexOf(numbersOf(t, held), 1)
		keep := func(task *storetest.Task, removed ...int) {
			f.complete(task, storetest.Result{
				RetryAt: storetest.After(100), Delivered: len(removed), Works: true,
				Slice: &store.SliceResult{Removed: store.RangesOf(removed), Findings: &store.Findings{Refusals: 1}},
			}, 1)
		}
		keep(held[odd], 0, 2)
		keep(held[1-odd], 1)
		assert.Equal(t, 3, f.queued(storetest.Alice))
		assert.ElementsMatch(t, [][]int{{3}, {2, 6}}, numbersOf(t, f.takeAll(t, "b", 100)))
	})
}

// TestSlicesLeaveOthersTheirTurn uses one thread to deliver a long batch in slices, and other
// subscribers' batches in between.
func TestSlicesLeaveOthersTheirTurn(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newSliced(t, server, 100, map[string]string{"max_bytes": "1024"})
		f.AddSubscriber(storetest.Bob, 0, 1, "gadgets")
		task := f.Take("w1", 0)
		f.PublishEvents("gadgets", 1, 2, 0)
		var order []bus.Token
		for task != nil {
			order = append(order, task.Delivery.Subscriber)
			result := storetest.Result{Delivered: len(task.Delivery.Events)}
			if task.Delivery.Basis != nil {
				require.Equal(t, storetest.Alice, task.Delivery.Subscriber)
				if n := len(task.Delivery.Events); n < task.Delivery.Total() {
					result.RetryAt = storetest.Start
					result.Slice = &store.SliceResult{KeepTurn: true, Removed: store.Ranges{{First: 0, Last: n - 1}}}
				}
			}
			owned, next, err := f.CompleteAndAcquire(t.Context(), task, result, bus.Failing, storetest.Start)
			require.NoError(t, err)
			require.True(t, owned)
			f.MakeInstant(0)
			if task = next.Task; task == nil {
				task = f.Take("w1", 0)
			}
		}
		alice, bob := storetest.Alice, storetest.Bob
		assert.Equal(t, []bus.Token{alice, bob, bob, alice, alice, alice}, order)
		f.RequireSound()
	})
}

// TestStrictOrderEndsWithRefusedBatches lets refused batches keep their turn, and then ends the
// strict order: neither these batches nor later ones are stuck.
func TestStrictOrderEndsWithRefusedBatches(t *testing.T) {
	strict := func(f *fixture, on string) {
		f.setOptions(storetest.Alice, map[string]string{"strict_order": on})
	}
	for name, refuse := range map[string]func(f *fixture){
		"a worker dies with the first": func(f *fixture) {
			f.succeed(f.dueAt(0), 1)
			strict(f, "true")
			require.NotNil(f.T, f.dueAt(1000))
			f.MakeInstant(2000)
			require.Nil(f.T, f.Take("w2", 2000))
			strict(f, "")
			_, err := f.Retire(f.T.Context(), "w1")
			require.NoError(f.T, err)
		},
		"the first is refused again": func(f *fixture) {
			strict(f, "true")
			first := f.dueAt(3000)
			require.NotNil(f.T, first)
			require.Nil(f.T, f.Take("w2", 3000))
			strict(f, "")
			f.complete(first, storetest.Result{ // as was decided before
				RetryAt: storetest.After(3001), Failure: bus.BatchFailure, Slice: &store.SliceResult{KeepTurn: true},
			}, 3000)
		},
		"the lanes change": func(f *fixture) {
			third := f.dueAt(0)
			strict(f, "true")
			f.setOptions(storetest.Alice, map[string]string{"lanes": "2"})
			f.fail(third, bus.BatchFailure, 0, 1, 0)
			strict(f, "")
		},
	} {
		t.Run(name, func(t *testing.T) {
			rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
				f := newFixture(t, server)
				f.AddSubscriber(storetest.Alice, 0, 1, "widgets")
				for n := 1; n <= 3; n++ { // each with a UID of its own, for these are compared
					f.PublishEvents("widgets", n, n, 0)
				}
				f.fail(f.dueAt(0), bus.BatchFailure, 0, 2000, 0)
				f.fail(f.dueAt(0), bus.BatchFailure, 0, 1000, 0)
				refuse(f)
				f.PublishEvents("widgets", 4, 4, 4000)
				for ms := 4000; f.queued(storetest.Alice) > 0; ms += 500 {
					require.Less(t, ms, 60_000, "%d are left", f.queued(storetest.Alice))
					for task := f.dueAt(ms); task != nil; task = f.dueAt(ms) {
						f.succeed(task, ms)
					}
				}
				f.RequireSound()
			})
		})
	}
}
