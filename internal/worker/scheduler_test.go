package worker_test

import (
	"context"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/layout"
	"routemaster/internal/queue"
	"routemaster/internal/rdb"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store/storetest"
	"routemaster/internal/wire"
	"routemaster/internal/worker"
)

// lookingAhead has the worker's first pool run the jobs of several partitions, and look ahead.
func lookingAhead(lookahead time.Duration, queues ...*queue.Queue) func(*worker.Config) {
	return func(c *worker.Config) {
		in(len(queues), queues...)(c)
		c.Pools[0].Lookahead = lookahead
	}
}

// long is longer than any test waits.
const long = time.Hour

// puttingOff has jobs run a second time, after wait, and says when and where.
func puttingOff(wait time.Duration) (handler worker.Handler, ran chan run) {
	ran = make(chan run, 10)
	known := make(chan map[string]bool, 1)
	known <- map[string]bool{}
	return func(_ context.Context, task *queue.Task) queue.Result {
		jobs := <-known
		isFirst := !jobs[task.Job.Args[0]]
		jobs[task.Job.Args[0]] = true
		known <- jobs
		if isFirst {
			return queue.Result{RetryAt: time.Now().Add(wait)}
		}
		ran <- run{task.Partition, time.Now()}
		return queue.Done
	}, ran
}

type run struct {
	in rdb.Number
	at time.Time
}

// TestSeveralQuietPartitionsAreNotScheduled requires that the scheduling script, the most expensive
// call to Redis, runs only when the next job is due.
func TestSeveralQuietPartitionsAreNotScheduled(t *testing.T) {
	server := rdbtest.Real(t)
	p := storetest.NewPartitions(t, server.Open(t))
	require.NoError(t, server.Raw.Do(t.Context(), "config", "resetstat").Err())
	start(t, p.Data[0], nil, lookingAhead(time.Millisecond, p.Batches...))
	calls := func(command string) (n int) {
		stats := server.Raw.Info(t.Context(), "commandstats").Val()
		if found := regexp.MustCompile(`cmdstat_` + command + `:calls=(\d+)`).FindStringSubmatch(stats); found != nil {
			n, _ = strconv.Atoi(found[1])
		}
		return n
	}
	require.Eventually(t, func() bool { return calls("zrangebyscore") >= 100 }, soon, time.Millisecond)
	assert.Less(t, calls("evalsha"), 20, "heartbeats, and no more")
}

// TestWhatIsDueIsKnown has a partition with a job that another process has put off. It comes up in
// time, though the scheduler asks so rarely.
func TestWhatIsDueIsKnown(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		p := storetest.NewPartitions(t, server.Open(t))
		keys := layout.Keys{Namespace: p.All[1].Namespace()}
		job := wire.PackJob(bus.Job{Name: "job", Args: []string{"job"}})
		due := time.Now().Add(60 * time.Millisecond)
		require.NoError(t, server.Raw.SAdd(t.Context(), keys.JobsIndex(bus.QueueMain), job).Err())
		require.NoError(t, server.Raw.Do(t.Context(), "zadd", keys.Scheduled(bus.QueueMain), due.UnixMilli(), job).Err())
		ran := make(chan run, 1)
		_, stop := start(t, p.Data[0], func(_ context.Context, task *queue.Task) queue.Result {
			ran <- run{task.Partition, time.Now()}
			return queue.Done
		}, lookingAhead(long, p.Batches...))
		got := next(t, ran)
		assert.EqualValues(t, 1, got.in)
		assert.Greater(t, got.at, due.Add(-time.Millisecond))
		stop()
	})
}

// TestWhatAProcessPutsOffItKnows has jobs that are put off long before the scheduler asks again.
func TestWhatAProcessPutsOffItKnows(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		p := storetest.NewPartitions(t, server.Open(t))
		const wait = 20 * time.Millisecond
		handler, ran := puttingOff(wait)
		_, stop := start(t, p.Data[0], handler, lookingAhead(long, p.Batches...))
		for i := range 10 {
			number := rdb.Number(i % len(p.Batches))
			began := time.Now()
			_, err := p.Batches[number].Enqueue(t.Context(), bus.QueueMain, bus.Job{Name: "job", Args: []string{strconv.Itoa(i)}})
			require.NoError(t, err)
			got := next(t, ran)
			assert.Equal(t, number, got.in)
			assert.GreaterOrEqual(t, got.at.Sub(began), wait-time.Millisecond)
		}
		stop()
	})
}

// TestThePartitionOfAFrozenNodeHoldsUpNoOther has two, each on a Redis of its own, and a job of the
// other one that is put off.
func TestThePartitionOfAFrozenNodeHoldsUpNoOther(t *testing.T) {
	all, servers := storetest.Apart(t, 2, func(o *rdb.Options) { o.URL += "&read_timeout=200ms" })
	queues := []*queue.Queue{storetest.NewQueue(all[0], 1), storetest.NewQueue(all[1], 1)}
	handler, ran := puttingOff(time.Millisecond)
	_, stop := start(t, all[0], handler, lookingAhead(long, queues...))
	enqueue := func(number int, arg string) error {
		_, err := queues[number].Enqueue(t.Context(), bus.QueueMain, bus.Job{Name: "job", Args: []string{arg}})
		return err
	}
	require.NoError(t, enqueue(0, "before"))
	assert.EqualValues(t, 0, next(t, ran).in)
	servers[0].Freeze(t)
	for _, arg := range []string{"a", "b", "c"} {
		require.NoError(t, enqueue(1, arg))
		assert.EqualValues(t, 1, next(t, ran).in)
	}
	servers[0].Thaw(t)
	require.Eventually(t, func() bool { return enqueue(0, "after") == nil }, soon, 10*time.Millisecond)
	assert.EqualValues(t, 0, next(t, ran).in)
	stop()
}
