package store_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store/storetest"
)

// fail puts a batch off, at a time in ms after start, and throttles its subscriber from then on if
// throttle is not 0.
func (f *fixture) fail(task *storetest.Task, failure bus.Failure, ms, wait, throttle int) {
	f.T.Helper()
	result := storetest.Result{Health: -2, Failure: failure, RetryAt: storetest.After(ms + wait)}
	if throttle > 0 {
		result.ThrottledUntil = storetest.After(ms + throttle)
	}
	owned, err := f.CompleteAt(f.T.Context(), task, result, storetest.After(ms))
	require.NoError(f.T, err)
	require.True(f.T, owned)
}

// refuseFirst publishes events 1 to n to Alice, each in a batch that is refused at the start, and
// is due again after a wait in ms.
func (f *fixture) refuseFirst(n, wait int) {
	f.T.Helper()
	f.AddSubscriber(storetest.Alice, 0, 1, "widgets")
	f.PublishEvents("widgets", 1, n, 0)
	for range n {
		f.fail(f.dueAt(0), bus.BatchFailure, 0, wait, 0)
	}
}

func (f *fixture) succeed(task *storetest.Task, ms int) {
	f.T.Helper()
	owned, err := f.CompleteAt(f.T.Context(), task, storetest.Result{Health: 1, Delivered: len(task.Delivery.Events)}, storetest.After(ms))
	require.NoError(f.T, err)
	require.True(f.T, owned)
}

// dueAt makes the jobs that are due at a time in ms after start instant, and takes one.
func (f *fixture) dueAt(ms int) *storetest.Task {
	f.T.Helper()
	f.MakeInstant(ms)
	return f.Take("w1", ms)
}

// requireNoFailures fails the test unless all records of failures are gone.
func (f *fixture) requireNoFailures() {
	f.T.Helper()
	ctx := f.T.Context()
	assert.Zero(f.T, f.Redis.Exists(ctx, "batches:failed:alice--1").Val())
	assert.Subset(f.T, []string{"name", "events_sent"}, f.Redis.HKeys(ctx, "delivery:alice--1").Val())
	f.RequireSound()
}

func TestAfterAnOutageAllThatFailedFollowsAtOnce(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		const batches = 250 // more than one call releases
		f := newFixture(t, server)
		f.AddSubscriber(storetest.Alice, 0, 1, "widgets")
		for i := range batches + 1 {
			f.PublishEvents("widgets", i+1, i+1, i)
		}
		for i := range batches {
			task := f.dueAt(i)
			require.Equal(t, []int{i + 1}, storetest.Numbers(t, task))
			f.fail(task, bus.EndpointFailure, i, 3_600_000, 1)
		}
		f.RequireSound()
		f.succeed(f.dueAt(batches), batches)
		var got []int
		for task := f.dueAt(batches); task != nil; task = f.dueAt(batches) {
			got = append(got, storetest.Numbers(t, task)...)
			f.succeed(task, batches)
		}
		assert.Len(t, got, batches, "an hour before their time")
		assert.IsIncreasing(t, got, "the oldest first")
		f.requireNoFailures()
	})
}

func TestABatchThatHangsAWellEndpointIsPutOff(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		f.AddSubscriber(storetest.Alice, 0, 1, "widgets")
		f.PublishEvents("widgets", 1, 3, 0)
		f.fail(f.dueAt(0), bus.EndpointFailure, 0, 1000, 10)
		f.succeed(f.dueAt(10), 10)
		hangs := f.dueAt(10)
		require.Equal(t, []int{3}, storetest.Numbers(t, hangs), "what was called is before it")
		f.succeed(hangs, 10)
		hangs = f.dueAt(10)
		require.Equal(t, []int{1}, storetest.Numbers(t, hangs), "released at once")
		f.PublishEvents("widgets", 4, 4, 10)
		f.fail(hangs, bus.EndpointFailure, 10, 1000, 10)
		f.succeed(f.dueAt(20), 20)
		assert.Nil(t, f.dueAt(1009), "not a second time: it waits for itself")
		f.succeed(f.dueAt(1010), 1010)
		f.requireNoFailures()
	})
}

func TestARefusedBatchYieldsToOthers(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		f.AddSubscriber(storetest.Alice, 0, 1, "widgets")
		f.PublishEvents("widgets", 1, 1, 0)
		f.fail(f.dueAt(0), bus.BatchFailure, 0, 100, 0)
		refused := f.dueAt(100)
		require.Equal(t, []int{1}, storetest.Numbers(t, refused), "there is no other")
		assert.Equal(t, bus.Failing, refused.Delivery.Standing)
		assert.Equal(t, 1, refused.Delivery.Refusals)
		assert.Equal(t, storetest.Start.UnixMilli(), refused.Delivery.RefusedSince.UnixMilli())
		f.fail(refused, bus.BatchFailure, 100, 100, 1000)
		assert.Nil(t, f.dueAt(200), "it comes up, and waits for the end of the throttle")
		f.PublishEvents("widgets", 2, 3, 300)
		assert.Nil(t, f.dueAt(1099))
		probe := f.dueAt(1100)
		require.Equal(t, []int{2}, storetest.Numbers(t, probe), "one that was not refused finds out")
		assert.Equal(t, 2, probe.Delivery.Refusals)
		f.RequireSound()
		f.succeed(probe, 1100)
		f.succeed(f.dueAt(1100), 1100)
		last := f.dueAt(1100)
		require.Equal(t, []int{1}, storetest.Numbers(t, last))
		assert.Equal(t, bus.Proven, last.Delivery.Standing)
		assert.Zero(t, last.Delivery.Refusals)
		f.succeed(last, 1100)
		f.requireNoFailures()
	})
}

func TestOneRefusedBatchIsRetriedAtATime(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		const refused = 20
		f := newFixture(t, server)
		f.refuseFirst(refused, 100)
		f.MakeInstant(100) // all come up
		retried := f.Take("w1", 100)
		require.NotNil(t, retried)
		assert.Equal(t, 2, retried.Delivery.Attempts)
		f.PublishEvents("widgets", refused+1, refused+1, 100)
		assert.Nil(t, f.Take("w2", 100))
		f.fail(retried, bus.BatchFailure, 100, 1000, 0)
		good := f.Take("w2", 100)
		require.Equal(t, []int{refused + 1}, storetest.Numbers(t, good), "it waited for one of twenty")
		f.succeed(good, 100)
		f.RequireSound()
		delivered := 0
		for ms := 100; delivered < refused; ms += 1000 {
			require.Less(t, ms, 60_000)
			for task := f.dueAt(ms); task != nil; task = f.dueAt(ms) {
				f.succeed(task, ms)
				delivered++
			}
		}
		f.requireNoFailures()
	})
}

// TestRefusedBatchesAreRetriedNowAndThen delivers events beside refused batches: one of these is
// retried each second, or more often if there are many, and when one succeeds the others follow at
// once.
func TestRefusedBatchesAreRetriedNowAndThen(t *testing.T) {
	t.Parallel()
	t.Run("few", func(t *testing.T) { retriedNowAndThen(t, 20, 1000) })
	t.Run("many", func(t *testing.T) { retriedNowAndThen(t, 200, 250) })
}

func retriedNowAndThen(t *testing.T, refused, every int) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		const end = 5000
		f := newFixture(t, server)
		f.refuseFirst(refused, 100)
		retried := 0
		for ms := 0; ms < end; ms += 20 {
			f.PublishEvents("widgets", 1000+ms, 1000+ms, ms)
			for task := f.dueAt(ms); task != nil; task = f.Take("w1", ms) {
				if storetest.Numbers(t, task)[0] > refused {
					f.succeed(task, ms)
					continue
				}
				retried++
				f.fail(task, bus.BatchFailure, ms, 100, 0)
			}
		}
		assert.InDelta(t, end/every, retried, 2, "refused batches that were retried")
		f.RequireSound()
		for ms := end; f.queued(storetest.Alice) > 0; ms += 20 {
			require.Less(t, ms, end+2000, "%d are left", f.queued(storetest.Alice))
			for task := f.dueAt(ms); task != nil; task = f.Take("w1", ms) {
				f.succeed(task, ms)
			}
		}
		f.requireNoFailures()
	})
}

func TestALongTimeOfRefusalsIsAnOutage(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		for _, c := range []struct{ lasted, follow int }{{9_999, 0}, {10_000, 5}} {
			require.NoError(t, server.Raw.FlushAll(t.Context()).Err())
			f := newFixture(t, server)
			f.AddSubscriber(storetest.Alice, 0, 1, "widgets")
			f.PublishEvents("widgets", 1, 6, 0)
			for range 5 {
				f.fail(f.dueAt(0), bus.BatchFailure, 0, 3_600_000, 0)
			}
			f.succeed(f.dueAt(0), c.lasted)
			followed := 0
			for task := f.dueAt(c.lasted); task != nil; task = f.dueAt(c.lasted) {
				f.succeed(task, c.lasted)
				followed++
			}
			assert.Equal(t, c.follow, followed, "after %d ms", c.lasted)
		}
	})
}

// TestSlowRefusalsHoldUpNobody has 50 refused batches, an endpoint that takes a second for each
// answer, and a good batch every 15 s, so that nothing succeeds for longer than an outage lasts.
func TestSlowRefusalsHoldUpNobody(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		const refused, good, every, takes, longest = 50, 6, 15_000, 1000, 2000
		f := newFixture(t, server)
		f.AddSubscriber(storetest.Alice, 0, 1, "widgets")
		f.PublishEvents("widgets", 1, refused, 0)
		ms := 0
		deliver := func() (number int) {
			task := f.dueAt(ms)
			if task == nil {
				ms += 100
				return 0
			}
			for range 2 { // meanwhile other threads come by, once for all that is due
				require.Nil(t, f.Take("w2", ms))
				f.MakeInstant(ms + takes)
			}
			ms += takes
			number = storetest.Numbers(t, task)[0]
			if number > refused {
				f.succeed(task, ms)
			} else {
				wait := bus.Backoff(task.Delivery.Attempts, time.Minute, 0.5)
				f.fail(task, bus.BatchFailure, ms, int(wait.Milliseconds()), 0)
			}
			return number
		}
		for tried := map[int]bool{0: true}; len(tried) <= refused; { // each has to be tried once
			tried[deliver()] = true
		}
		for i := range good {
			published := max(ms, (i+1)*every+refused*takes)
			for ms < published {
				deliver()
			}
			published = ms
			f.PublishEvents("widgets", refused+1+i, refused+1+i, published)
			for deliver() != refused+1+i {
				require.LessOrEqual(t, ms-published, longest, "good batch %d waits for more than one refused one", i)
			}
		}
		f.RequireSound()
	})
}

func TestStandings(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		f.AddSubscriber(storetest.Alice, 0, 1, "widgets")
		// takes a batch if the subscriber's standing is no less.
		take := func(min bus.Standing, ms int) *storetest.Task {
			f.MakeInstant(ms)
			task, err := f.Acquire(t.Context(), bus.QueueMain, "w1", min, storetest.After(ms))
			require.NoError(t, err)
			return task
		}
		f.PublishEvents("widgets", 1, 2, 0)
		assert.Nil(t, take(bus.Proven, 0), "none was delivered yet")
		assert.Nil(t, take(bus.Untried, 249), "it is looked at again after 250 ms")
		task := take(bus.Untried, 250)
		require.NotNil(t, task)
		assert.Equal(t, bus.Untried, task.Delivery.Standing)
		assert.Equal(t, 1, task.Delivery.Attempts, "being passed over was no attempt")
		f.fail(task, bus.EndpointFailure, 250, 10, 0)
		assert.Nil(t, take(bus.Untried, 250))
		task = take(bus.Failing, 500)
		require.NotNil(t, task)
		assert.Equal(t, bus.Failing, task.Delivery.Standing)
		f.succeed(task, 500)
		task = take(bus.Proven, 500)
		require.NotNil(t, task)
		assert.Equal(t, bus.Proven, task.Delivery.Standing)
		f.succeed(task, 500)
		f.requireNoFailures()
	})
}

func TestNothingIsLeftOfADroppedBatchThatFailed(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		f.AddSubscriber(storetest.Alice, 0, 1, "widgets")
		f.PublishEvents("widgets", 1, 2, 0)
		f.fail(f.dueAt(0), bus.BatchFailure, 0, 100, 0)
		f.fail(f.dueAt(0), bus.EndpointFailure, 0, 100, 0)
		require.Equal(t, int64(2), f.Redis.ZCard(t.Context(), "batches:failed:alice--1").Val())
		_, err := f.OldestBatches().Drop(t.Context(), storetest.Start, nil)
		require.NoError(t, err)
		f.RequireSound()
		assert.Empty(t, f.Redis.Keys(t.Context(), "batch*").Val())

		f.PublishEvents("widgets", 3, 3, 0)
		f.fail(f.dueAt(0), bus.BatchFailure, 0, 100, 0)
		require.NoError(t, f.DeleteSubscriber(t.Context(), storetest.Alice))
		assert.Zero(t, f.Redis.Exists(t.Context(), "delivery:alice--1").Val())
		assert.Nil(t, f.dueAt(100))
		assert.Empty(t, f.Redis.Keys(t.Context(), "batch*").Val())
		f.RequireSound()
	})
}

func TestToSubscribeAgainIsNoSuccess(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		f.AddSubscriber(storetest.Alice, 0, 1, "widgets")
		f.PublishEvents("widgets", 1, 3, 0)
		f.succeed(f.dueAt(0), 0)
		take := func(min bus.Standing) *storetest.Task {
			f.MakeInstant(250)
			task, err := f.Acquire(t.Context(), bus.QueueMain, "w1", min, storetest.After(250))
			require.NoError(t, err)
			return task
		}
		for range 2 {
			f.fail(f.dueAt(0), bus.EndpointFailure, 0, 0, 3_600_000)
			f.AddSubscriber(storetest.Alice, 0, 1, "widgets")
		}
		assert.Nil(t, take(bus.Proven), "threads that are kept for others are not for it")
		f.MakeInstant(500)
		task, err := f.Acquire(t.Context(), bus.QueueMain, "w1", bus.Untried, storetest.After(500))
		require.NoError(t, err)
		require.NotNil(t, task, "it is tried at once, and before those that fail")
		assert.Equal(t, bus.Untried, task.Delivery.Standing)
		f.fail(task, bus.BatchFailure, 500, 0, 0)
		task = f.dueAt(500)
		assert.Equal(t, bus.Failing, task.Delivery.Standing)
		f.succeed(task, 500)
		task = f.dueAt(500)
		assert.Equal(t, bus.Proven, task.Delivery.Standing)
		f.succeed(task, 500)
		f.requireNoFailures()
	})
}

func TestALongRestIsNotCutShortByAnotherFailure(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixtureInFlight(t, server, 2)
		f.AddSubscriber(storetest.Alice, 0, 1, "widgets")
		f.PublishEvents("widgets", 1, 2, 0)
		first, second := f.Take("w1", 0), f.Take("w2", 0)
		f.fail(first, bus.EndpointFailure, 0, 10, 5000)
		f.fail(second, bus.EndpointFailure, 0, 10, 200)
		assert.Nil(t, f.dueAt(4999))
		f.succeed(f.dueAt(5000), 5000)
		f.succeed(f.dueAt(5000), 5000)
		f.requireNoFailures()
	})
}

// TestABatchOfNothingEndsNoThrottle completes a batch with no readable event: nothing was sent, so
// it says nothing about the endpoint.
func TestABatchOfNothingEndsNoThrottle(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f, ctx := newFixture(t, server), t.Context()
		f.AddSubscriber(storetest.Alice, 0, 1, "widgets")
		f.PublishEvents("widgets", 1, 3, 0)
		f.fail(f.Take("w1", 0), bus.EndpointFailure, 0, 60_000, 60_000)
		state := f.Redis.HGetAll(ctx, "delivery:alice--1").Val()
		task := f.dueAt(60_000)
		require.Equal(t, bus.Failing, task.Delivery.Standing)
		f.Complete(task, storetest.Done)
		assert.Equal(t, state, f.Redis.HGetAll(ctx, "delivery:alice--1").Val())
		assert.Equal(t, bus.Failing, f.Take("w1", 60_000).Delivery.Standing)
		f.RequireSound()
	})
}
