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
)

// leaveAndReturn has Alice delete her subscriber, or her token, and subscribe again.
func (f *fixture) leaveAndReturn(t *testing.T, how string) {
	t.Helper()
	switch how {
	case "subscriber":
		require.NoError(t, f.DeleteSubscriber(t.Context(), storetest.Alice))
	case "subscriber, and token rotated":
		require.NoError(t, f.DeleteSubscriber(t.Context(), storetest.Alice))
		f.rotate(storetest.Alice, "alice--2")
	case "token":
		require.NoError(t, f.DeleteToken(t.Context(), storetest.Alice))
		require.NoError(t, f.PutToken(t.Context(), storetest.Alice, "alice"))
	}
	f.RequireSound()
	f.AddSubscriber(storetest.Alice, 0, 2, "widgets")
	f.RequireSound()
}

// TestBatchesOfAnEarlierSubscriptionAreDropped: a deleted subscriber subscribes again before a
// worker comes by. Its batches are dropped, as the contract says, and the other's stay.
func TestBatchesOfAnEarlierSubscriptionAreDropped(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		for _, how := range []string{"subscriber", "subscriber, and token rotated", "token"} {
			require.NoError(t, server.Raw.FlushAll(t.Context()).Err())
			f := newFixture(t, server)
			f.AddSubscriber(storetest.Alice, time.Hour, 2, "widgets")
			f.AddSubscriber(storetest.Bob, 0, 10, "widgets")
			f.PublishEvents("widgets", 1, 25, 0) // the last event is in a current batch
			f.PublishEvents("widgets", 26, 240, 1)
			f.leaveAndReturn(t, how)
			for _, gauge := range []string{"batch", "event", "bytes"} {
				assert.Equal(t, []string{string(storetest.Bob)}, f.Redis.HKeys(t.Context(), "batches:gauges:"+gauge).Val(), gauge)
			}
			f.PublishEvents("widgets", 241, 242, 2)
			got := map[bus.Token][]int{}
			for task := f.dueAt(3); task != nil; task = f.dueAt(3) {
				of := task.Delivery.Subscriber
				if of == "alice--2" {
					of = storetest.Alice
				}
				got[of] = append(got[of], storetest.Numbers(t, task)...)
				require.True(t, f.Complete(task, storetest.Done))
			}
			assert.Equal(t, []int{241, 242}, got[storetest.Alice], "the %s was deleted", how)
			assert.Len(t, got[storetest.Bob], 242)
			f.requireNothingQueued(t)
		}
	})
}

// TestABatchInFlightForAnEarlierSubscription ends a delivery after its subscriber has left and
// subscribed again: the batch is not delivered again, and does not change the new subscriber's
// state.
func TestABatchInFlightForAnEarlierSubscription(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		failed := storetest.Result{
			Health: -2, RetryAt: storetest.After(9_000_000), ThrottledUntil: storetest.After(9_000_000),
			Failure: bus.EndpointFailure, Attempt: []byte("x"), AttemptsKept: 20,
		}
		refused := failed
		refused.Failure, refused.ThrottledUntil = bus.BatchFailure, time.Time{}
		dead := storetest.Result{Attempt: []byte("x"), AttemptsKept: 20, Slice: &store.SliceResult{}}
		for name, end := range map[string]func(f *fixture, task *storetest.Task){
			"acknowledged": func(f *fixture, task *storetest.Task) {
				require.True(t, f.Complete(task, storetest.Result{Health: 1, Delivered: 2, Attempt: []byte("x"), AttemptsKept: 20}))
			},
			"failed":  func(f *fixture, task *storetest.Task) { require.True(t, f.Complete(task, failed)) },
			"refused": func(f *fixture, task *storetest.Task) { require.True(t, f.Complete(task, refused)) },
			"dead": func(f *fixture, task *storetest.Task) {
				dead.Slice.Letters = []store.DeadLetter{{ID: task.Delivery.Batch, Reason: bus.DiedOfAttempts}}
				require.True(t, f.Complete(task, dead))
			},
			"removed": func(f *fixture, task *storetest.Task) {
				require.True(t, f.Complete(task, failed))
				dropped, err := f.OldestBatches().Drop(t.Context(), storetest.After(5), nil)
				require.NoError(t, err)
				require.Equal(t, storetest.Alice, dropped[0].Subscriber)
				f.PublishEvents("widgets", 7, 8, 5) // the same drop took those
			},
			"its worker died": func(f *fixture, _ *storetest.Task) {
				_, err := f.Scrub(t.Context(), storetest.After(5), bus.Queues[:]...)
				require.NoError(t, err)
			},
			"its reply was lost": func(f *fixture, _ *storetest.Task) {
				next := f.Take("w1", 5)
				require.Equal(t, []int{7, 8}, storetest.Numbers(t, next), "it is dropped")
				f.Complete(next, storetest.Result{RetryAt: storetest.After(6)})
			},
		} {
			require.NoError(t, server.Raw.FlushAll(t.Context()).Err())
			f, ctx := newFixture(t, server), t.Context()
			f.AddSubscriber(storetest.Alice, 0, 2, "widgets")
			f.PublishEvents("widgets", 1, 6, 0)
			task := f.Take("w1", 0)
			require.NotNil(t, task)
			f.leaveAndReturn(t, "subscriber")
			assert.Equal(t, "1", f.Redis.HGet(ctx, "batches:gauges:batch", "alice--1").Val(), "only that in flight is left")
			f.PublishEvents("widgets", 7, 8, 2)
			end(f, task)
			f.RequireSound()
			assert.Zero(t, f.Redis.Exists(ctx, "attempts:alice--1", "deadletters:index:alice--1", "batches:failed:alice--1").Val(), name)
			assert.Equal(t, "100", f.Redis.HGet(ctx, "subscriber:alice--1", "health_points").Val(), name)
			assert.Equal(t, []any{nil, nil}, f.Redis.HMGet(ctx, "delivery:alice--1", "events_sent", "throttled_until").Val(), name)

			next := f.dueAt(6)
			assert.Equal(t, []int{7, 8}, storetest.Numbers(t, next), name)
			require.True(t, f.Complete(next, storetest.Result{Delivered: 2}))
			assert.Nil(t, f.dueAt(7), name)
			f.requireNothingQueued(t)
			assert.Equal(t, "2", f.Redis.HGet(ctx, "delivery:alice--1", "events_sent").Val(), name)
			assert.False(t, f.Redis.HExists(ctx, "delivery:alice--1", "former").Val(), name)
		}
	})
}

// TestWhatAnEarlierSubscriptionLeavesWithOptions has several lanes, dead letters, attempts and a
// test event, and the new subscription has lanes again.
func TestWhatAnEarlierSubscriptionLeavesWithOptions(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f, ctx := newFixture(t, server), t.Context()
		f.AddSubscriber(storetest.Alice, 0, 1, "widgets")
		f.patch(storetest.Alice, map[string]string{"dead_letters": `{}`})
		const letters = 250
		for i := range letters {
			f.PublishEvents("widgets", i, i, 0)
			task := f.Take("w1", 0)
			require.True(t, f.Complete(task, storetest.Result{Attempt: []byte("x"), AttemptsKept: 20, Slice: &store.SliceResult{
				Letters: []store.DeadLetter{{ID: task.Delivery.Batch, Reason: bus.DiedOfAttempts}},
			}}))
		}
		require.Equal(t, int64(letters), f.Redis.ZCard(ctx, "deadletters:index:alice--1").Val())
		f.setLanes(3)
		keys := f.keysInLanes(t, 3)
		f.publishKeyed(t, 1000, keys[0], keys[1], keys[0], keys[2])
		held := f.takeAll(t, "a", 0)
		require.Len(t, held, 3)
		_, err := f.TestEvent(ctx, storetest.Alice, storetest.After(1))
		require.NoError(t, err)

		f.leaveAndReturn(t, "subscriber")
		f.setLanes(2)
		f.publishKeyed(t, 2000, keys[0], keys[1])
		f.RequireSound()
		for key := range rdbtest.Dump(t, f.Redis) {
			assert.NotContains(t, key, "deadletter", "an earlier subscription's")
			assert.NotContains(t, key, "attempts", "an earlier subscription's")
		}
		for i, task := range held {
			result := storetest.Done
			if i > 0 {
				result = storetest.Result{RetryAt: storetest.After(9_000_000), Failure: bus.EndpointFailure}
			}
			require.True(t, f.Complete(task, result))
			f.RequireSound()
		}
		var got []int
		for task := f.dueAt(2); task != nil; task = f.dueAt(2) {
			got = append(got, storetest.Numbers(t, task)...)
			require.True(t, f.Complete(task, storetest.Done))
		}
		assert.ElementsMatch(t, []int{2000, 2001}, got)
		f.requireNothingQueued(t)
	})
}

// TestTwoWhoSubscribeAgainAtOnce lets one call drop leftovers after the other has subscribed and
// got events: these stay.
func TestTwoWhoSubscribeAgainAtOnce(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f, ctx := newFixture(t, server), t.Context()
		f.AddSubscriber(storetest.Alice, 0, 1, "widgets")
		f.PublishEvents("widgets", 1, 3, 0)
		late := f.FormerBatches(storetest.Alice) // of a request that was held up after its first look
		f.leaveAndReturn(t, "subscriber")
		f.PublishEvents("widgets", 4, 5, 1)
		dropped, err := late.Drop(ctx, storetest.After(2), nil)
		require.NoError(t, err)
		assert.Empty(t, dropped)
		assert.Equal(t, []int{4, 5}, storetest.Numbers(t, f.Take("w1", 2)))
		f.RequireSound()
	})
}

// TestAGaugeThatIsWrongPreventsNoSubscription uses a gauge that counts missing batches.
func TestAGaugeThatIsWrongPreventsNoSubscription(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		f.AddSubscriber(storetest.Bob, time.Hour, 1, "widgets")
		f.PublishEvents("widgets", 1, 3, 0)
		for _, wrong := range []any{7, -7, "x"} {
			f.Redis.HSet(t.Context(), "batches:gauges:batch", string(storetest.Alice), wrong)
			f.AddSubscriber(storetest.Alice, 0, 1, "widgets")
			assert.True(t, f.Redis.SIsMember(t.Context(), "subscribers", string(storetest.Alice)).Val(), fmt.Sprint(wrong))
			require.NoError(t, f.DeleteSubscriber(t.Context(), storetest.Alice))
		}
	})
}
