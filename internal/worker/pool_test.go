package worker_test

import (
	"context"
	"regexp"
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

// TestAQuietPoolIsScheduled requires that a pool finds jobs scheduled later than its lookahead.
func TestAQuietPoolIsScheduled(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		st := storetest.Open(t, server)
		ran := make(chan time.Time, 1)
		tries := 0
		const wait = 60 * time.Millisecond
		_, stop := start(t, st, func(context.Context, *queue.Task) queue.Result {
			if tries++; tries == 1 {
				return queue.Result{RetryAt: time.Now().Add(wait)}
			}
			ran <- time.Now()
			return queue.Done
		}, func(c *worker.Config) { c.Pools[0].Threads, c.Pools[0].Lookahead = 1, 20*time.Millisecond })
		began := time.Now()
		enqueue(t, st, bus.QueueMain)
		assert.GreaterOrEqual(t, next(t, ran).Sub(began), wait-time.Millisecond)
		stop()
		requireNothingLeft(t, server)
	})
}

// TestAQuietPoolIsNotScheduled requires that a pool that looks ahead only counts the jobs that will
// be due.
func TestAQuietPoolIsNotScheduled(t *testing.T) {
	server := rdbtest.Real(t)
	start(t, storetest.Open(t, server), nil, func(c *worker.Config) {
		c.Pools = c.Pools[:1]
		c.Pools[0].Lookahead = time.Millisecond
	})
	commands := func() string { return server.Raw.Info(t.Context(), "commandstats").Val() }
	require.Eventually(t, func() bool { return regexp.MustCompile(`cmdstat_zcount:calls=\d{2}`).MatchString(commands()) }, soon, time.Millisecond)
	assert.NotContains(t, commands(), "cmdstat_zrangebyscore")
}

// TestEveryDiscardedEntryIsNoted has batches that are too old come up before a worker stops.
func TestEveryDiscardedEntryIsNoted(t *testing.T) {
	b := storetest.NewBus(t, rdbtest.Embedded(t))
	b.AddSubscriber(storetest.Alice, 0, 2, "widgets")
	b.SetOption(storetest.Alice, "keep_age", "60000")
	b.PublishEvents("widgets", 1, 9, 0) // long ago
	var events atomic.Int64
	_, stop := start(t, b.Store, nil, func(c *worker.Config) {
		c.Pools[0].Discarded = func(entry any) { events.Add(int64(entry.(store.ExpiredBatch).Events)) }
	})
	require.Eventually(t, func() bool {
		return b.Redis.Exists(t.Context(), "batches:index", "batches:gauges:event").Val() == 0
	}, soon, time.Millisecond)
	stop()
	assert.EqualValues(t, 9, events.Load())
}

// TestALateResultMayBeExpected completes a job that was taken from its thread, in a pool whose jobs
// end elsewhere too.
func TestALateResultMayBeExpected(t *testing.T) {
	st := storetest.Open(t, rdbtest.Embedded(t))
	completed := make(chan string, 1)
	log, stop := start(t, st, func(ctx context.Context, task *queue.Task) queue.Result {
		if task.Job.Args[0] == "late" {
			_, err := storetest.NewQueue(st, 1).Complete(ctx, task, queue.Done, time.Now())
			assert.NoError(t, err)
		}
		return queue.Done
	}, func(c *worker.Config) {
		c.Pools[0].Threads, c.Pools[0].EndedElsewhere = 1, true
		c.Pools[0].Completed = func(task *queue.Task, _ queue.Result) { completed <- task.Job.Args[0] }
	})
	enqueue(t, st, bus.QueueMain, "late")
	enqueue(t, st, bus.QueueMain, "other")
	assert.Equal(t, "other", next(t, completed), "what was not the thread's is not noted")
	stop()
	assert.NotContains(t, log.String(), "too late")
}
