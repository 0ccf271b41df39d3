package worker_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/queue"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store"
	"routemaster/internal/store/storetest"
	"routemaster/internal/worker"
)

// delivered is the result of a batch of one event whose subscriber is quick.
func delivered() queue.Result {
	quick := queue.MaxAhead
	return queue.Result{Detail: store.DeliveryResult{Delivered: 1, Ahead: &quick}}
}

// ahead makes the pool take batches ahead, where maxInFlight may be in flight, and counts the
// completed ones.
func ahead(st *store.Store, maxInFlight int, completed *atomic.Int64) func(*worker.Config) {
	return func(c *worker.Config) {
		c.Pools[0].Queues = []*queue.Queue{storetest.NewQueueAhead(st, maxInFlight, queue.MaxAhead)}
		c.Pools[0].Completed = func(*queue.Task, queue.Result) { completed.Add(1) }
	}
}

// TestWhatIsTakenAheadIsRunInOrder runs batches of one subscriber, some of which fail once.
func TestWhatIsTakenAheadIsRunInOrder(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		const events = 200
		b := storetest.NewBus(t, server)
		b.AddSubscriber(storetest.Alice, 0, 1, "widgets")
		b.PublishEvents("widgets", 1, events, 0)
		var mu sync.Mutex
		var got []int
		var together, completed atomic.Int64
		failed := map[int]bool{}
		_, stop := start(t, b.Store, func(_ context.Context, task *queue.Task) queue.Result {
			mu.Lock()
			defer mu.Unlock()
			n := storetest.Number(t, task.Payload.(*store.Delivery).Events[0])
			if n%17 == 0 && !failed[n] {
				failed[n] = true
				return queue.Result{RetryAt: time.Now(), Detail: store.DeliveryResult{Failure: bus.EndpointFailure}}
			}
			together.Add(int64(len(task.Ahead)))
			if !failed[n] {
				got = append(got, n)
			}
			return delivered()
		}, ahead(b.Store, 1, &completed))
		require.Eventually(t, func() bool { return b.Redis.Exists(t.Context(), "batches:index").Val() == 0 }, soon, time.Millisecond)
		b.RequireSound()
		stop()
		require.Len(t, got, events-len(failed))
		assert.IsIncreasing(t, got)
		assert.Positive(t, together.Load(), "some were taken ahead")
		assert.EqualValues(t, events+len(failed), completed.Load())
		requireNothingLeft(t, server)
	})
}

// TestAStopGivesBackWhatIsNotBegun stops a worker that runs the first of several that it has taken.
func TestAStopGivesBackWhatIsNotBegun(t *testing.T) {
	b := storetest.NewBus(t, rdbtest.Embedded(t))
	b.AddSubscriber(storetest.Alice, 0, 1, "widgets")
	b.PublishEvents("widgets", 1, 20, 0)
	var completed atomic.Int64
	held, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	_, stop := start(t, b.Store, func(_ context.Context, task *queue.Task) queue.Result {
		if len(task.Ahead) > 0 {
			once.Do(func() {
				close(held)
				<-release
			})
		}
		return delivered()
	}, ahead(b.Store, 1, &completed), func(c *worker.Config) {
		c.Stopping = func(map[bus.Queue]int64) { close(release) }
	})
	next(t, held)
	stop()
	assert.EqualValues(t, 20-completed.Load(), b.Redis.ZCard(t.Context(), "batches:index").Val())
	assert.Less(t, completed.Load(), int64(20))
	assert.Empty(t, b.Redis.Keys(t.Context(), "jobs:pending:*").Val())
	assert.Empty(t, b.Redis.HKeys(t.Context(), "workers").Val())
	b.RequireSound()
}

// TestAfterMuchTimeNoneIsBegun has the first of several take all the time that they have together.
func TestAfterMuchTimeNoneIsBegun(t *testing.T) {
	b := storetest.NewBus(t, rdbtest.Embedded(t))
	b.AddSubscriber(storetest.Alice, 0, 1, "widgets")
	b.PublishEvents("widgets", 1, 12, 0)
	var completed atomic.Int64
	var mu sync.Mutex
	late := map[*queue.Task]bool{}
	start(t, b.Store, func(_ context.Context, task *queue.Task) queue.Result {
		mu.Lock()
		defer mu.Unlock()
		assert.False(t, late[task], "begun after its time")
		for _, ahead := range task.Ahead {
			late[ahead] = true
		}
		if len(task.Ahead) > 0 {
			time.Sleep(queue.AheadTime)
		}
		return delivered()
	}, ahead(b.Store, 1, &completed))
	require.Eventually(t, func() bool { return completed.Load() == 12 }, soon, time.Millisecond)
	assert.NotEmpty(t, late, "some were taken ahead")
}

// TestASlowOneHoldsUpNobody has the first of several take until the others are given back and, if
// two may be in flight, delivered.
func TestASlowOneHoldsUpNobody(t *testing.T) {
	for maxInFlight, left := range map[int]string{1: "jobs:pending:main:*", 2: "batch:*"} {
		b := storetest.NewBus(t, rdbtest.Embedded(t))
		b.AddSubscriber(storetest.Alice, 0, 1, "widgets")
		b.PublishEvents("widgets", 1, 1, 0)
		quick := queue.MaxAhead
		require.True(t, b.Complete(b.Take("another", 0), storetest.Result{Delivered: 1, Ahead: &quick}))
		b.PublishEvents("widgets", 2, 41, 0)
		isAlone := func() bool { return len(b.Redis.Keys(t.Context(), left).Val()) == 1 }
		var completed atomic.Int64
		var isSlow atomic.Bool
		done := make(chan struct{})
		start(t, b.Store, func(_ context.Context, task *queue.Task) queue.Result {
			if len(task.Ahead) == queue.MaxAhead && isSlow.CompareAndSwap(false, true) {
				defer close(done)
				assert.Eventually(t, isAlone, soon, time.Millisecond)
			}
			return delivered()
		}, ahead(b.Store, maxInFlight, &completed))
		next(t, done)
		require.Eventually(t, func() bool { return completed.Load() == 40 }, soon, time.Millisecond)
		b.RequireSound()
	}
}
