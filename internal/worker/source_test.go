package worker_test

import (
	"context"
	"maps"
	"slices"
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
	"routemaster/internal/worker"
)

// in makes the worker's first pool run the jobs of several partitions in a number of threads.
func in(threads int, queues ...*queue.Queue) func(*worker.Config) {
	return func(c *worker.Config) {
		c.Pools = c.Pools[:1]
		c.Pools[0].Queues, c.Pools[0].Threads = queues, threads
	}
}

// TestPartitionsTakeTurns has one thread, and a partition that always has another job.
func TestPartitionsTakeTurns(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		p := storetest.NewPartitions(t, server.Open(t))
		ran := make(chan rdb.Number, 1)
		enqueue := func(number rdb.Number, arg string) {
			_, err := p.Batches[number].Enqueue(context.WithoutCancel(t.Context()), bus.QueueMain, bus.Job{Name: "job", Args: []string{arg}})
			require.NoError(t, err)
		}
		_, stop := start(t, p.Data[0], func(_ context.Context, task *queue.Task) queue.Result {
			if task.Partition == 0 {
				enqueue(0, string(bus.NewBatchID()))
			} else {
				ran <- task.Partition
			}
			return queue.Done
		}, in(1, p.Batches...))
		enqueue(0, "first")
		for _, number := range []rdb.Number{1, 2, 1} {
			enqueue(number, "job")
			assert.Equal(t, number, next(t, ran))
		}
		stop()
	})
}

// TestAPartitionThatHangsHoldsUpNoOther has two, each on a Redis of its own.
func TestAPartitionThatHangsHoldsUpNoOther(t *testing.T) {
	all, servers := storetest.Apart(t, 2, func(o *rdb.Options) { o.URL += "&read_timeout=200ms" })
	queues := []*queue.Queue{storetest.NewQueue(all[0], 1), storetest.NewQueue(all[1], 1)}
	ran := make(chan string, 10)
	_, stop := start(t, all[0], func(_ context.Context, task *queue.Task) queue.Result {
		ran <- task.Partition.String() + task.Job.Args[0]
		return queue.Done
	}, in(2, queues...))
	servers[0].Freeze(t)
	for _, arg := range []string{"a", "b", "c"} {
		_, err := queues[1].Enqueue(t.Context(), bus.QueueMain, bus.Job{Name: "job", Args: []string{arg}})
		require.NoError(t, err)
		assert.Equal(t, "01"+arg, next(t, ran))
	}
	servers[0].Thaw(t)
	require.Eventually(t, func() bool {
		_, err := queues[0].Enqueue(t.Context(), bus.QueueMain, bus.Job{Name: "job", Args: []string{"d"}})
		return err == nil
	}, soon, 10*time.Millisecond)
	assert.Equal(t, "00d", next(t, ran))
	stop()
}

// TestAPartitionThatIsHeldKeepsNoThread, neither as a job is to be taken, nor as one is ended.
func TestAPartitionThatIsHeldKeepsNoThread(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		p := storetest.NewPartitions(t, server.Open(t))
		ran, goOn := make(chan rdb.Number, 10), make(chan struct{})
		enqueue := func(number rdb.Number, arg string) {
			t.Helper()
			_, err := p.Batches[number].Enqueue(t.Context(), bus.QueueMain, bus.Job{Name: "job", Args: []string{arg}})
			require.NoError(t, err)
		}
		_, stop := start(t, p.Data[0], func(_ context.Context, task *queue.Task) queue.Result {
			if task.Job.Args[0] == "held" {
				<-goOn
			}
			ran <- task.Partition
			return queue.Done
		}, in(2, p.Batches...))
		enqueue(0, "held") // and one thread takes it
		require.Eventually(t, func() bool {
			return p.All[0].Exists(t.Context(), layout.Keys{Namespace: p.All[0].Namespace()}.PendingIndex(bus.QueueMain)).Val() == 1
		}, soon, time.Millisecond)
		for _, number := range []rdb.Number{0, 1} {
			_, err := p.All[number].Hold(t.Context(), 0)
			require.NoError(t, err)
		}
		close(goOn)
		assert.Equal(t, rdb.Number(0), next(t, ran))
		// There are two threads, and two partitions held. A wait takes 100 ms: a second has several.
		for begun := time.Now(); time.Since(begun) < time.Second; {
			enqueue(2, string(bus.NewBatchID()))
			require.Equal(t, rdb.Number(2), next(t, ran))
		}
		for _, number := range []rdb.Number{0, 1} {
			require.NoError(t, p.All[number].Release(t.Context()))
		}
		for _, number := range []rdb.Number{0, 1, 2} {
			enqueue(number, "again")
			assert.Equal(t, number, next(t, ran))
		}
		stop()
		for _, p := range p.All {
			require.NoError(t, p.EachKey(t.Context(), p.Namespace()+"jobs:*", func(keys []string) error {
				require.Subset(t, []string{layout.Keys{Namespace: p.Namespace()}.MaxInFlight()}, keys)
				return nil
			}))
		}
	})
}

// TestAJobWhoseEndIsForgotten has a Redis forget that two threads have completed their jobs, as a
// failover does; one of them has others of another Redis all the time, and the other has none.
func TestAJobWhoseEndIsForgotten(t *testing.T) {
	all, servers := storetest.Apart(t, 2)
	queues := []*queue.Queue{storetest.NewQueue(all[0], 1), storetest.NewQueue(all[1], 1)}
	enqueue := func(number rdb.Number, arg string) {
		_, err := queues[number].Enqueue(context.WithoutCancel(t.Context()), bus.QueueMain, bus.Job{Name: "job", Args: []string{arg}})
		assert.NoError(t, err)
	}
	ran, completed, goOn := make(chan bus.WorkerID, 10), make(chan bus.WorkerID, 10), make(chan struct{})
	_, stop := start(t, all[0], func(_ context.Context, task *queue.Task) queue.Result {
		if task.Partition == 1 {
			enqueue(1, string(bus.NewBatchID()))
			return queue.Done
		}
		ran <- task.Worker
		<-goOn
		return queue.Done
	}, in(2, queues...), func(c *worker.Config) {
		c.AcquireTimeout = time.Hour
		c.Pools[0].Completed = func(task *queue.Task, _ queue.Result) {
			if task.Partition == 0 {
				completed <- task.Worker
			}
		}
	})
	keys, redis := layout.Keys{Namespace: all[0].Partition().Namespace()}, servers[0].Raw
	enqueue(0, "a")
	enqueue(0, "b")
	jobs := map[bus.WorkerID]string{} // as Redis has them
	for range 2 {
		thread := next(t, ran)
		jobs[thread] = redis.LIndex(t.Context(), keys.Pending(bus.QueueMain, thread), 0).Val()
	}
	close(goOn)
	for range 2 {
		next(t, completed)
	}
	enqueue(1, "first")
	for thread, job := range jobs {
		require.NoError(t, redis.SAdd(t.Context(), keys.JobsIndex(bus.QueueMain), job).Err())
		require.NoError(t, redis.SAdd(t.Context(), keys.PendingIndex(bus.QueueMain), string(thread)).Err())
		require.NoError(t, redis.LPush(t.Context(), keys.Pending(bus.QueueMain, thread), job).Err())
	}
	require.NoError(t, redis.ClientKillByFilter(t.Context(), "TYPE", "normal", "SKIPME", "yes").Err())
	assert.ElementsMatch(t, slices.Collect(maps.Keys(jobs)), []bus.WorkerID{next(t, ran), next(t, ran)})
	for range 2 {
		next(t, completed)
	}
	assert.Zero(t, redis.Exists(t.Context(), keys.JobsIndex(bus.QueueMain)).Val())
	stop()
}

// TestAJobWhoseEndIsForgottenWhileNoneWaits has a Redis come back without its last second, while
// its partition offers a job to threads that are all busy elsewhere, so that none waits for it.
func TestAJobWhoseEndIsForgottenWhileNoneWaits(t *testing.T) {
	all, servers := storetest.Apart(t, 2)
	queues := []*queue.Queue{storetest.NewQueue(all[0], 1), storetest.NewQueue(all[1], 1)}
	enqueue := func(number rdb.Number, arg string) {
		_, err := queues[number].Enqueue(t.Context(), bus.QueueMain, bus.Job{Name: "job", Args: []string{arg}})
		require.NoError(t, err)
	}
	ran, first, others := make(chan *queue.Task, 10), make(chan struct{}), make(chan struct{})
	_, stop := start(t, all[0], func(_ context.Context, task *queue.Task) queue.Result {
		ran <- task
		if task.Partition == 0 {
			<-first
		} else {
			<-others
		}
		return queue.Done
	}, in(2, queues...), func(c *worker.Config) { c.AcquireTimeout = time.Hour })
	keys, redis := layout.Keys{Namespace: all[0].Partition().Namespace()}, servers[0].Raw
	jobs := map[bus.WorkerID]string{} // as Redis has them
	for _, arg := range []string{"a", "b"} {
		enqueue(0, arg)
		thread := next(t, ran).Worker
		jobs[thread] = redis.LIndex(t.Context(), keys.Pending(bus.QueueMain, thread), 0).Val()
	}
	for _, arg := range []string{"x", "y"} { // these keep both threads
		enqueue(1, arg)
		first <- struct{}{}
		assert.EqualValues(t, 1, next(t, ran).Partition)
	}
	require.Eventually(t, func() bool { return redis.Exists(t.Context(), keys.JobsIndex(bus.QueueMain)).Val() == 0 }, soon, time.Millisecond)
	enqueue(0, "c")
	servers[0].Kill(t)
	away := queues[0].SteadySince()
	require.Eventually(t, func() bool { return queues[0].SteadySince().After(away) }, soon, time.Millisecond)
	servers[0].Restart(t)
	for thread, job := range jobs {
		require.NoError(t, redis.SAdd(t.Context(), keys.JobsIndex(bus.QueueMain), job).Err())
		require.NoError(t, redis.SAdd(t.Context(), keys.PendingIndex(bus.QueueMain), string(thread)).Err())
		require.NoError(t, redis.LPush(t.Context(), keys.Pending(bus.QueueMain, thread), job).Err())
	}
	require.NoError(t, all[0].Partition().Release(t.Context()))
	close(others)
	got := map[bus.WorkerID]bool{}
	for range jobs { // they wait for each other
		got[next(t, ran).Worker] = true
	}
	close(first)
	assert.Equal(t, len(jobs), len(got))
	stop()
}

// TestAHeldPartitionThatMovesKeepsNoThread has one break off its connections while it is held, as
// it does when it moves.
func TestAHeldPartitionThatMovesKeepsNoThread(t *testing.T) {
	all, servers := storetest.Apart(t, 2)
	queues := []*queue.Queue{storetest.NewQueue(all[0], 1), storetest.NewQueue(all[1], 1)}
	ran := make(chan rdb.Number, 10)
	_, stop := start(t, all[0], func(_ context.Context, task *queue.Task) queue.Result {
		ran <- task.Partition
		return queue.Done
	}, in(8, queues...))
	run := func(number rdb.Number) time.Duration {
		began := time.Now()
		_, err := queues[number].Enqueue(t.Context(), bus.QueueMain, bus.Job{Name: "job", Args: []string{string(bus.NewBatchID())}})
		require.NoError(t, err)
		require.Equal(t, number, next(t, ran))
		return time.Since(began)
	}
	run(1)
	// Threads that wait for a partition are replaced after 500 ms.
	rdbtest.Promptly(t, 400*time.Millisecond, func() (longest time.Duration) {
		_, err := all[0].Partition().Hold(t.Context(), 0)
		require.NoError(t, err)
		require.NoError(t, servers[0].Raw.ClientKillByFilter(t.Context(), "TYPE", "normal", "SKIPME", "yes").Err())
		for began := time.Now(); time.Since(began) < time.Second; {
			longest = max(longest, run(1))
		}
		require.NoError(t, all[0].Partition().Release(t.Context()))
		run(0)
		return longest
	})
	stop()
}
