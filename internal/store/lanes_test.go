package store_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store"
	"routemaster/internal/store/storetest"
)

func TestBatchesTakeTurns(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		f.AddSubscriber(storetest.Alice, 0, 2, "widgets")
		f.AddSubscriber(storetest.Bob, 0, 2, "gadgets")
		f.PublishEvents("widgets", 1, 6, 0)
		f.PublishEvents("gadgets", 1, 2, 0)

		first := f.Take("w1", 0)
		assert.Equal(t, []int{1, 2}, storetest.Numbers(t, first))
		other := f.Take("w2", 0)
		assert.Equal(t, storetest.Bob, other.Delivery.Subscriber, "Alice's others wait for their turn, and hold nobody up")
		assert.Nil(t, f.Take("w3", 0))
		f.RequireSound()

		f.Complete(first, storetest.Done)
		second := f.Take("w3", 0)
		assert.Equal(t, []int{3, 4}, storetest.Numbers(t, second))
		f.Complete(second, storetest.Result{RetryAt: storetest.After(5000)})
		third := f.Take("w3", 0)
		assert.Equal(t, []int{5, 6}, storetest.Numbers(t, third), "a batch that failed does not hold up the next")
		f.Complete(third, storetest.Done)
		f.Complete(other, storetest.Done)
		f.RequireSound()
		f.MakeInstant(5000)
		f.Complete(f.Take("w3", 5000), storetest.Done)
		assert.Empty(t, f.Redis.Keys(t.Context(), "batch*").Val())
	})
}

func TestABatchThatWaitsGoesOnFilling(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		f.AddSubscriber(storetest.Alice, 0, 3, "widgets")
		f.PublishEvents("widgets", 1, 1, 0)
		first := f.Take("w1", 0)
		f.PublishEvents("widgets", 2, 2, 1)
		assert.Nil(t, f.Take("w2", 1))
		f.PublishEvents("widgets", 3, 3, 2)
		f.PublishEvents("widgets", 4, 5, 3) // fills it, and opens another
		assert.Nil(t, f.Take("w2", 3))
		f.RequireSound()
		f.Complete(first, storetest.Done)
		second := f.Take("w2", 4)
		assert.Equal(t, []int{2, 3, 4}, storetest.Numbers(t, second))
		f.Complete(second, storetest.Done)
		assert.Equal(t, []int{5}, storetest.Numbers(t, f.Take("w2", 4)))
	})
}

func TestTwoInFlight(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixtureInFlight(t, server, 2)
		f.AddSubscriber(storetest.Alice, 0, 1, "widgets")
		f.PublishEvents("widgets", 1, 4, 0)
		one, two := f.Take("w1", 0), f.Take("w2", 0)
		assert.Equal(t, []int{1}, storetest.Numbers(t, one))
		assert.Equal(t, []int{2}, storetest.Numbers(t, two))
		assert.Nil(t, f.Take("w3", 0))
		f.Complete(two, storetest.Done)
		assert.Equal(t, []int{3}, storetest.Numbers(t, f.Take("w2", 0)))
		f.Complete(one, storetest.Done)
		last := f.Take("w1", 0)
		assert.Equal(t, []int{4}, storetest.Numbers(t, last))
		f.PublishEvents("widgets", 5, 7, 1)
		f.Complete(last, storetest.Done)
		assert.Equal(t, []int{5}, storetest.Numbers(t, f.Take("w1", 1)))
		f.RequireSound()
	})
}

func TestAPublishSendsBatchesStraightToTheirLane(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		ctx := t.Context()
		instant := func() int64 { return f.Redis.LLen(ctx, "jobs:instant:main").Val() }
		f.AddSubscriber(storetest.Alice, 0, 2, "widgets")
		f.PublishEvents("widgets", 1, 1, 0)
		assert.Equal(t, int64(1), instant(), "nobody serves her yet")
		first := f.Take("w1", 0)

		f.PublishEvents("widgets", 2, 4, 1) // fills one, and opens another
		f.PublishEvents("widgets", 5, 5, 2) // fills that
		f.PublishEvents("widgets", 6, 6, 3)
		assert.Zero(t, instant(), "no worker is bothered while she is served")
		f.RequireSound()
		for want := range slices.Values([][]int{{2, 3}, {4, 5}}) {
			f.Complete(first, storetest.Done)
			assert.Equal(t, int64(1), instant(), "it was called")
			first = f.Take("w1", 4)
			assert.Equal(t, want, storetest.Numbers(t, first))
		}

		f.Complete(first, storetest.Result{RetryAt: storetest.After(1000)})
		last := f.Take("w1", 5)
		assert.Equal(t, []int{6}, storetest.Numbers(t, last))
		f.PublishEvents("widgets", 7, 7, 6)
		assert.Equal(t, int64(1), instant(), "one that failed is not in the lane, and could be passed")
		assert.Nil(t, f.Take("w2", 6))
		f.RequireSound()
		f.Complete(last, storetest.Done)
		assert.Equal(t, []int{7}, storetest.Numbers(t, f.Take("w1", 7)))
	})
}

func TestAPublishPassesNoBatchThatIsNotInTheLaneYet(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		f.AddSubscriber(storetest.Alice, 0, 1, "widgets")
		f.PublishEvents("widgets", 1, 2, 0)
		first := f.Take("w1", 0) // the second is instant, and has not been looked at
		f.PublishEvents("widgets", 3, 3, 1)
		assert.Equal(t, int64(2), f.Redis.LLen(t.Context(), "jobs:instant:main").Val())
		assert.Nil(t, f.Take("w2", 1))
		f.RequireSound()
		for want := 2; want <= 3; want++ {
			f.Complete(first, storetest.Done)
			first = f.Take("w1", 2)
			assert.Equal(t, []int{want}, storetest.Numbers(t, first))
		}
	})
}

// TestAPublishPassesBatchesThatWereRefused while three refused batches wait for their retry:
// published batches go to the lane, but not past a batch that is in no lane yet, and not past a
// refused one that keeps its turn.
func TestAPublishPassesBatchesThatWereRefused(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		instant := func() int64 { return f.Redis.LLen(t.Context(), "jobs:instant:main").Val() }
		f.refuseFirst(3, 100)
		f.PublishEvents("widgets", 4, 4, 1)
		first := f.Take("w1", 1)
		f.PublishEvents("widgets", 5, 6, 2)
		assert.Zero(t, instant(), "no worker is bothered")
		f.RequireSound()
		f.succeed(first, 3)
		second := f.Take("w1", 3)
		assert.Equal(t, []int{5}, storetest.Numbers(t, second))
		f.MakeInstant(2000) // a refused one comes up
		assert.Nil(t, f.Take("w2", 2000))
		f.PublishEvents("widgets", 7, 7, 2000)
		assert.Zero(t, instant(), "that one is in the lane")
		f.succeed(second, 2001)
		for _, want := range []int{6, 1, 7} {
			task := f.Take("w1", 2001)
			require.Equal(t, []int{want}, storetest.Numbers(t, task))
			f.succeed(task, 2001)
		}
		f.RequireSound()
	})
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		f.AddSubscriber(storetest.Alice, 0, 1, "widgets")
		f.setOptions(storetest.Alice, map[string]string{"strict_order": "true"})
		f.PublishEvents("widgets", 1, 2, 0)
		f.complete(f.Take("w1", 0), storetest.Result{
			RetryAt: storetest.After(1), Failure: bus.BatchFailure, Slice: &store.SliceResult{KeepTurn: true},
		}, 0)
		f.PublishEvents("widgets", 3, 3, 1) // the second is instant, and has not been looked at
		f.MakeInstant(1)
		for want := 1; want <= 3; want++ {
			task := f.Take("w1", 1)
			require.Equal(t, []int{want}, storetest.Numbers(t, task))
			f.complete(task, storetest.Done, 1)
		}
		f.RequireSound()
	})
}

// TestWorkersWithDifferentSettings changes how many batches are delivered at once while workers
// run.
func TestWorkersWithDifferentSettings(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		one := newFixtureInFlight(t, server, 1)
		two := newFixtureInFlight(t, server, 2)
		one.AddSubscriber(storetest.Alice, 0, 1, "widgets")
		one.PublishEvents("widgets", 1, 4, 0)
		first := one.Take("w1", 0)
		assert.Nil(t, one.Take("w2", 0), "the others join the lane")
		one.Complete(first, storetest.Done)
		second := two.Take("w2", 0)
		assert.Equal(t, []int{2}, storetest.Numbers(t, second))
		two.Complete(second, storetest.Done)
		third, fourth := two.Take("w2", 0), two.Take("w3", 0)
		assert.Equal(t, []int{3, 4}, append(storetest.Numbers(t, third), storetest.Numbers(t, fourth)...), "raised, so two are called")
		two.Complete(third, storetest.Done)

		two.PublishEvents("widgets", 5, 5, 0)
		assert.Nil(t, one.Take("w1", 0))
		two.Complete(fourth, storetest.Done)
		assert.Equal(t, []int{5}, storetest.Numbers(t, one.Take("w1", 0)), "lowered: who was put off by one setting is called by the other")
		one.RequireSound()
	})
}

func TestALaneRecoversFromABatchThatVanished(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		f.AddSubscriber(storetest.Alice, 0, 1, "widgets")
		f.PublishEvents("widgets", 1, 2, 0)
		first := f.Take("w1", 0)
		assert.Nil(t, f.Take("w2", 0))
		// The first is removed by hand; the second is then delivered all the same.
		ctx := t.Context()
		f.Redis.Del(ctx, "batch:"+string(first.Delivery.Batch), "jobs:pending:main:w1")
		assert.Equal(t, 1, f.MakeInstant(600_000))
		second := f.Take("w2", 600_000)
		assert.Equal(t, []int{2}, storetest.Numbers(t, second))
	})
}

func TestAPublishDoesNotJoinALaneThatNobodyMoves(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		for _, job := range []bool{true, false} {
			require.NoError(t, server.Raw.FlushAll(t.Context()).Err())
			f := newFixture(t, server)
			f.AddSubscriber(storetest.Alice, 0, 1, "widgets")
			f.PublishEvents("widgets", 1, 2, 0)
			first := f.Take("w1", 0)
			assert.Nil(t, f.Take("w2", 0))
			// Remove the first by hand, or its job, as the Ruby original's worker does.
			if job {
				f.Redis.Del(t.Context(), "jobs:index:main", "jobs:pending:main:w1")
				f.Redis.SAdd(t.Context(), "jobs:index:main", f.Redis.ZRange(t.Context(), "jobs:scheduled:main", 0, -1).Val())
			} else {
				f.Redis.Del(t.Context(), "batch:"+string(first.Delivery.Batch), "jobs:pending:main:w1")
			}
			f.PublishEvents("widgets", 3, 4, 1)
			for want := 2; want <= 4; want++ {
				task := f.Take("w2", 1)
				assert.Equal(t, []int{want}, storetest.Numbers(t, task))
				f.Complete(task, storetest.Done)
			}
		}
	})
}

func TestASubscriberWhoReturnsIsTriedAtOnce(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		for _, deleted := range []bool{true, false} {
			require.NoError(t, server.Raw.FlushAll(t.Context()).Err())
			f := newFixtureInFlight(t, server, 2)
			f.AddSubscriber(storetest.Alice, 0, 1, "widgets")
			f.PublishEvents("widgets", 1, 3, 0)
			f.Complete(f.Take("w1", 0), storetest.Result{RetryAt: storetest.After(90_000), ThrottledUntil: storetest.After(60_000)})
			assert.Nil(t, f.Take("w1", 1), "the others wait for the end of that")
			if deleted {
				require.NoError(t, f.DeleteSubscriber(t.Context(), storetest.Alice))
			}
			f.AddSubscriber(storetest.Alice, 0, 1, "widgets")
			want := []int{2, 3}
			if deleted { // with all that waited
				f.PublishEvents("widgets", 4, 5, 1)
				want = []int{4, 5}
			}
			got := append(storetest.Numbers(t, f.Take("w1", 2)), storetest.Numbers(t, f.Take("w2", 2))...)
			assert.Equal(t, want, got, "deleted: %v", deleted)
			f.RequireSound()
		}
	})
}

// TestALaneGoesOnWhenABatchInFlightVanishes removes a batch from outside while it is delivered.
func TestALaneGoesOnWhenABatchInFlightVanishes(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		for name, result := range map[string]storetest.Result{
			"completed": {Health: 1, Delivered: 1}, "failed": {Health: -1, RetryAt: storetest.After(1000)},
		} {
			require.NoError(t, server.Raw.FlushAll(t.Context()).Err())
			f, ctx := newFixture(t, server), t.Context()
			f.AddSubscriber(storetest.Alice, 0, 1, "widgets")
			f.PublishEvents("widgets", 1, 3, 0)
			first := f.Take("w1", 0)
			require.Nil(t, f.Take("w2", 0), "the others wait for their turn")
			f.Redis.Del(ctx, "batch:"+string(first.Delivery.Batch))
			require.True(t, f.Complete(first, result), name)
			for want := 2; want <= 3; want++ {
				task := f.Take("w1", 0)
				assert.Equal(t, []int{want}, storetest.Numbers(t, task), name)
				f.Complete(task, storetest.Done)
			}
			assert.Zero(t, f.Redis.Exists(ctx, "jobs:index:main", "jobs:scheduled:main", "jobs:lane:batch:alice--1").Val(), name)
		}
	})
}

// TestOneThreadServesLanesInTurns uses one thread to deliver the batches in the lanes of three
// subscribers.
func TestOneThreadServesLanesInTurns(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f, ctx := newFixture(t, server), t.Context()
		const carol = bus.Token("carol--3")
		require.NoError(t, f.PutToken(ctx, carol, "carol"))
		for _, token := range []bus.Token{storetest.Alice, storetest.Bob, carol} {
			f.AddSubscriber(token, 0, 1, "widgets")
		}
		f.PublishEvents("widgets", 1, 1, 0)
		task, second, third := f.Take("w1", 0), f.Take("w2", 0), f.Take("w3", 0)
		f.PublishEvents("widgets", 2, 20, 0)
		f.Complete(second, storetest.Done)
		f.Complete(third, storetest.Done)
		served := map[bus.Token]int{}
		for range 30 {
			require.NotNil(t, task)
			served[task.Delivery.Subscriber]++
			_, next, err := f.CompleteAndAcquire(ctx, task, storetest.Done, bus.Failing, storetest.Start)
			require.NoError(t, err)
			require.NoError(t, next.Err)
			task = next.Task
		}
		assert.Equal(t, map[bus.Token]int{storetest.Alice: 10, storetest.Bob: 10, carol: 10}, served)
	})
}
