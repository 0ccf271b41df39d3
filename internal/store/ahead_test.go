package store_test

import (
	"strings"
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

// Workers whose spares have names of their own.
const (
	worker  = bus.WorkerID("workerAAAAAAAAAAAAAA")
	another = bus.WorkerID("anotherAAAAAAAAAAAAA")
)

// aheadFixture is a bus whose workers take batches ahead for Alice: she is quick, and has batches
// of one event.
type aheadFixture struct{ *fixture }

func newAheadFixture(t *testing.T, server *rdbtest.Server, maxInFlight int) *aheadFixture {
	f := newFixtureInFlight(t, server, maxInFlight)
	f.Queue = storetest.NewQueueAhead(f.Store, maxInFlight, queue.MaxAhead)
	f.AddSubscriber(storetest.Alice, 0, 1, "widgets")
	f.PublishEvents("widgets", 1, 1, 0)
	quick := queue.MaxAhead
	require.True(t, f.Complete(f.Take(worker, 0), storetest.Result{Delivered: 1, Ahead: &quick}))
	return &aheadFixture{f}
}

// acknowledged is the result of a batch of one event.
var acknowledged = storetest.Result{Delivered: 1}

// allDone returns the result of a task that was done together with a number of batches taken ahead.
func allDone(ahead int) storetest.Result {
	result := acknowledged
	for range ahead {
		result.Done = append(result.Done, acknowledged)
	}
	return result
}

// next completes a task, and returns the worker's next one.
func (f *aheadFixture) next(task *storetest.Task, result storetest.Result, ms int) *storetest.Task {
	f.T.Helper()
	owned, next, err := f.CompleteAndAcquire(f.T.Context(), task, result, bus.Failing, storetest.After(ms))
	require.NoError(f.T, err)
	require.NoError(f.T, next.Err)
	require.True(f.T, owned)
	return next.Task
}

// take publishes events 2..last, the first of which is being delivered while the others come, and
// lets the worker complete that one.
func (f *aheadFixture) take(last int) *storetest.Task {
	f.T.Helper()
	f.PublishEvents("widgets", 2, 2, 0)
	first := f.Take(worker, 0)
	require.Empty(f.T, first.Ahead, "nothing waits")
	f.PublishEvents("widgets", 3, last, 0)
	return f.next(first, acknowledged, 0)
}

// numbers returns the numbers of the events of a task and of the batches taken ahead with it.
func numbers(t *testing.T, task *storetest.Task) []int {
	t.Helper()
	all := storetest.Numbers(t, task)
	for _, ahead := range task.AheadTasks() {
		all = append(all, storetest.Numbers(t, ahead)...)
	}
	return all
}

func TestBatchesAreTakenAhead(t *testing.T) {
	t.Parallel()
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newAheadFixture(t, server, 1)
		task := f.take(12)
		assert.Equal(t, []int{3, 4, 5, 6, 7, 8, 9, 10}, numbers(t, task))
		for i, ahead := range task.AheadTasks() {
			assert.Equal(t, worker[:19]+bus.WorkerID("BCDEFGH"[i]), ahead.Worker)
			assert.Equal(t, 1, ahead.Delivery.Attempts)
			assert.Equal(t, "alice", string(ahead.Delivery.Client))
		}
		f.RequireSound()
		require.Nil(t, f.Take(another, 0), "one after the other")
		task = f.next(task, allDone(queue.MaxAhead), 0)
		assert.Equal(t, []int{11, 12}, numbers(t, task))
		f.RequireSound()
		mayHaveSome := func() []string { return f.Redis.SMembers(t.Context(), "jobs:pending:index:main").Val() }
		assert.ElementsMatch(t, []string{string(worker), string(task.Ahead[0].Worker)}, mayHaveSome())
		require.Nil(t, f.next(task, allDone(1), 0))
		f.RequireSound()
		assert.Equal(t, []string{string(worker)}, mayHaveSome(), "nobody looks for what idle spares have")
		left := f.Redis.Keys(t.Context(), "batch*").Val()
		assert.Empty(t, left)
		assert.Equal(t, "12", f.Redis.HGet(t.Context(), "delivery:alice--1", "events_sent").Val())
	})
}

func TestWhatIsNotBegunWaitsAgain(t *testing.T) {
	t.Parallel()
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newAheadFixture(t, server, 1)
		task := f.next(f.take(12), allDone(2), 0)
		assert.Equal(t, []int{6, 7, 8, 9, 10, 11, 12}, numbers(t, task))
		f.RequireSound()
		require.True(t, f.Complete(task, allDone(0)))
		assert.Equal(t, []int{7, 8, 9, 10, 11, 12}, numbers(t, f.Take(another, 0)), "somebody is called")
		f.RequireSound()
	})
}

// TestAFailureGivesBackWhatIsBehindIt fails the first task, or one that was taken ahead.
func TestAFailureGivesBackWhatIsBehindIt(t *testing.T) {
	t.Parallel()
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newAheadFixture(t, server, 1)
		refused := storetest.Result{RetryAt: storetest.After(1000), Failure: bus.BatchFailure}
		task := f.next(f.take(12), refused, 0)
		assert.Equal(t, []int{4}, numbers(t, task), "it has still to show that it works")
		f.RequireSound()

		task = f.next(task, acknowledged, 0)
		assert.Equal(t, []int{5, 6, 7, 8, 9, 10, 11, 12}, numbers(t, task))
		failing := task.AheadTasks()[1]
		task.Ahead = append(task.Ahead[:1:1], task.Ahead[2:]...)
		require.True(t, f.Complete(task, allDone(1)))
		down := storetest.Result{RetryAt: storetest.After(500), ThrottledUntil: storetest.After(500), Failure: bus.EndpointFailure}
		require.True(t, f.Complete(failing, down))
		f.RequireSound()
		require.Nil(t, f.Take(worker, 100), "the subscriber is throttled")
		f.MakeInstant(500)
		task = f.Take(worker, 500)
		assert.Equal(t, []int{8}, numbers(t, task), "a batch that failed lets others pass")
		got := []int{}
		for task = f.next(task, acknowledged, 500); task != nil; task = f.next(task, allDone(len(task.Ahead)), 500) {
			got = append(got, numbers(t, task)...)
			f.RequireSound()
			if task.Delivery.Batch == failing.Delivery.Batch {
				assert.Equal(t, 2, task.Delivery.Attempts)
			}
		}
		assert.Equal(t, []int{9, 10, 11, 12, 7}, got)
		f.MakeInstant(60_000)
		assert.Equal(t, []int{3}, numbers(t, f.Take(worker, 60_000)), "what was refused")
	})
}

// TestADeadWorkersTasksComeUpInOrder lets a worker die with all of its tasks.
func TestADeadWorkersTasksComeUpInOrder(t *testing.T) {
	t.Parallel()
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newAheadFixture(t, server, 1)
		dead := f.take(12)
		requeued, err := f.Scrub(t.Context(), storetest.After(1), bus.QueueMain)
		require.NoError(t, err)
		require.Equal(t, 1+queue.MaxAhead, requeued)
		f.RequireSound()
		var got []int
		task := f.Take(another, 1)
		for ; task != nil; task = f.next(task, allDone(len(task.Ahead)), 1) {
			got = append(got, numbers(t, task)...)
		}
		assert.Equal(t, []int{3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, got)
		require.False(t, f.Complete(dead, allDone(queue.MaxAhead)))
		f.RequireSound()
	})
}

// TestALostReplyLosesNothingThatWasTakenAhead: a worker asks again, gets the first task once more,
// and gives back the others.
func TestALostReplyLosesNothingThatWasTakenAhead(t *testing.T) {
	t.Parallel()
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newAheadFixture(t, server, 1)
		f.take(13)
		again := f.Take(worker, 0)
		assert.Equal(t, []int{3}, numbers(t, again))
		f.RequireSound()
		task := f.next(again, acknowledged, 0)
		assert.Equal(t, []int{4, 5, 6, 7, 8, 9, 10, 11}, numbers(t, task))

		// Another worker has the job that this one would be given once more.
		pending := "jobs:pending:main:" + string(worker)
		job := f.Redis.RPop(t.Context(), pending).Val()
		require.NoError(t, f.Redis.RPush(t.Context(), "jobs:instant:main", job).Err())
		other := f.Take(another, 0)
		assert.Equal(t, []int{4}, numbers(t, other))
		require.Nil(t, f.Take(worker, 0))
		f.RequireSound()
		task = f.next(other, acknowledged, 0)
		assert.Equal(t, []int{5, 6, 7, 8, 9, 10, 11, 12}, numbers(t, task))
	})
}

// TestSeveralInFlightShareWhatWaits: each of two workers takes a part of the waiting batches ahead.
func TestSeveralInFlightShareWhatWaits(t *testing.T) {
	t.Parallel()
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newAheadFixture(t, server, 2)
		f.PublishEvents("widgets", 2, 3, 0)
		first, second := f.Take(worker, 0), f.Take(another, 0)
		f.PublishEvents("widgets", 4, 13, 0)
		first, second = f.next(first, acknowledged, 0), f.next(second, acknowledged, 0)
		f.RequireSound()
		assert.Equal(t, []int{4, 5, 6, 7, 8}, numbers(t, first), "half of those that wait")
		assert.Equal(t, []int{9, 10, 11}, numbers(t, second))
		require.Nil(t, f.Take("third", 0), "two are in flight")
		require.True(t, f.Complete(second, allDone(0)))
		f.RequireSound()
		task := f.Take("third", 0)
		got := numbers(t, task)
		for ; task != nil; task = f.next(task, allDone(len(task.Ahead)), 0) {
			got = append(got, numbers(t, task)...)
		}
		assert.Subset(t, got, []int{10, 11, 12, 13})
		require.True(t, f.Complete(first, allDone(len(first.Ahead))))
		f.RequireSound()
		assert.Empty(t, f.Redis.Keys(t.Context(), "batch*").Val())
	})
}

// TestInstantOnesAreTakenAhead publishes batches while no worker takes any, so none stands in a
// lane.
func TestInstantOnesAreTakenAhead(t *testing.T) {
	t.Parallel()
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		for _, maxInFlight := range []int{1, 3} {
			require.NoError(t, server.Raw.FlushAll(t.Context()).Err())
			f := newAheadFixture(t, server, maxInFlight)
			f.AddSubscriber(storetest.Bob, 0, 1, "gadgets")
			f.PublishEvents("widgets", 2, 6, 0)
			f.PublishEvents("gadgets", 1, 1, 0)
			f.PublishEvents("widgets", 7, 20, 0)
			first := f.Take(worker, 0)
			f.RequireSound()
			assert.Equal(t, []int{2, 3, 4, 5, 6}, numbers(t, first), "up to one of another subscriber")
			bobs := f.Take(another, 0)
			assert.Equal(t, storetest.Bob, bobs.Delivery.Subscriber)
			require.True(t, f.Complete(bobs, acknowledged))
			if maxInFlight == 1 {
				require.Nil(t, f.Take(another, 0), "one after the other")
			} else {
				second := f.Take(another, 0)
				assert.Equal(t, []int{7, 8, 9, 10, 11}, numbers(t, second), "a third of what is left")
				require.True(t, f.Complete(second, allDone(0)))
				f.RequireSound()
			}
			var got []int
			for task := f.next(first, allDone(2), 0); task != nil; task = f.next(task, allDone(len(task.Ahead)), 0) {
				got = append(got, numbers(t, task)...)
				f.RequireSound()
			}
			if maxInFlight == 1 {
				assert.IsIncreasing(t, got)
				assert.Len(t, got, 16)
			} else {
				assert.Len(t, got, 15)
			}
			assert.Empty(t, f.Redis.Keys(t.Context(), "batch*").Val())
		}
	})
}

// TestWhatIsNotTakenAhead covers each reason against it.
func TestWhatIsNotTakenAhead(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("x", 40_000)
	for name, prepare := range map[string]func(f *aheadFixture){
		"the subscriber is slow": func(f *aheadFixture) {
			none := 0
			task := f.Take(worker, 0)
			require.True(f.T, f.Complete(task, storetest.Result{Delivered: 1, Ahead: &none}))
		},
		"the order is strict": func(f *aheadFixture) { f.SetOption(storetest.Alice, "strict_order", "true") },
		"there is a pace":     func(f *aheadFixture) { f.SetOption(storetest.Alice, "max_requests_per_minute", "60000") },
		"they are not full":   func(f *aheadFixture) { f.AddSubscriber(storetest.Alice, 0, 2, "widgets") },
		"they are large": func(f *aheadFixture) {
			for _, bid := range f.Redis.ZRange(f.T.Context(), "batches:index", 0, -1).Val() {
				require.NoError(f.T, f.Redis.LSet(f.T.Context(), "batch:"+bid, 3, large+large).Err())
			}
		},
		"they may be of many events": func(f *aheadFixture) { f.AddSubscriber(storetest.Alice, 0, 29, "widgets") },
		"they failed before": func(f *aheadFixture) {
			for _, bid := range f.Redis.ZRange(f.T.Context(), "batches:index", 0, -1).Val() {
				require.NoError(f.T, f.Redis.LSet(f.T.Context(), "batch:"+bid, 2, 1).Err())
			}
		},
		"the original may run": func(f *aheadFixture) {
			require.NoError(f.T, f.Redis.Set(f.T.Context(), "migration", 1, time.Hour).Err())
			f.Queue = storetest.NewQueueAhead(f.Store, 1, queue.MaxAhead)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newAheadFixture(t, rdbtest.Embedded(t), 1)
			f.PublishEvents("widgets", 2, 2, 0)
			first := f.Take(worker, 0)
			f.PublishEvents("widgets", 3, 6, 0)
			require.True(t, f.Complete(first, acknowledged))
			prepare(f)
			task := f.Take(worker, 0)
			require.NotNil(t, task)
			assert.Empty(t, task.Ahead)
		})
	}
}

// TestAPlanMayComeInBetween gives a subscriber options while batches are taken ahead.
func TestAPlanMayComeInBetween(t *testing.T) {
	t.Parallel()
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		for _, option := range [][2]string{{"strict_order", "true"}, {"max_bytes", "2000"}} {
			require.NoError(t, server.Raw.FlushAll(t.Context()).Err())
			f := newAheadFixture(t, server, 1)
			task := f.take(12)
			f.SetOption(storetest.Alice, option[0], option[1])
			task = f.next(task, allDone(3), 0)
			f.RequireSound()
			got := []int{}
			for ; task != nil; task = f.next(task, storetest.Result{Delivered: 1, Slice: &store.SliceResult{}}, 0) {
				require.Empty(t, task.Ahead)
				got = append(got, numbers(t, task)...)
			}
			assert.Equal(t, []int{7, 8, 9, 10, 11, 12}, got)
			f.RequireSound()
		}
	})
}
