package worker_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/layout"
	"routemaster/internal/queue"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store"
	"routemaster/internal/store/storetest"
	"routemaster/internal/worker"
)

func TestMain(m *testing.M) { rdbtest.Main(m) }

// soon bounds how long a test waits for an expected event. Only a failing test waits that long.
const soon = time.Minute

// start runs a worker with one handler for all jobs, four threads on the main queue and one on the
// aux queue. The function it returns stops the worker and waits for it.
func start(t *testing.T, st *store.Store, handler worker.Handler, adjust ...func(*worker.Config)) (log *rdbtest.Buffer, stop func()) {
	t.Helper()
	q := storetest.NewQueue(st, 1)
	log = &rdbtest.Buffer{}
	logger := slog.New(slog.NewTextHandler(log, nil))
	config := worker.Config{
		Pools: []worker.Pool{
			{Queues: []*queue.Queue{q}, Name: bus.QueueMain, Kind: bus.JobBatch, Threads: 4, ScheduleInterval: 5 * time.Millisecond},
			{Queues: []*queue.Queue{q}, Name: bus.QueueAux, Threads: 1, ScheduleInterval: time.Second},
		},
		AcquireTimeout: 100 * time.Millisecond, RetryAfter: time.Millisecond,
		Handlers: map[bus.JobName]worker.Handler{"job": handler, bus.JobBatch: handler},
		Stopping: func(busy map[bus.Queue]int64) { logger.Info("stopping", "busy", busy[bus.QueueMain]) },
	}
	for _, f := range adjust {
		f(&config)
	}
	return startAt(t, config.Pools[0].Queues, config, time.Now, log)
}

// startAt runs a worker by a clock.
func startAt(
	t *testing.T, registries []*queue.Queue, config worker.Config, now func() time.Time, to ...*rdbtest.Buffer,
) (log *rdbtest.Buffer, stop func()) {
	t.Helper()
	log = &rdbtest.Buffer{}
	if len(to) > 0 {
		log = to[0]
	}
	w := worker.New(registries, config, slog.New(slog.NewTextHandler(log, nil)), now)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.Run(ctx)
	}()
	stop = func() {
		t.Helper()
		cancel()
		select {
		case <-done:
		case <-time.After(soon):
			t.Fatal("the worker does not stop")
		}
	}
	t.Cleanup(stop)
	return log, stop
}

func enqueue(t *testing.T, st *store.Store, q bus.Queue, args ...string) {
	t.Helper()
	added, err := storetest.NewQueue(st, 1).Enqueue(t.Context(), q, bus.Job{Name: "job", Args: args})
	require.NoError(t, err)
	require.True(t, added)
}

func next[T any](t *testing.T, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(soon):
		t.Fatal("it does not happen")
		panic("unreachable")
	}
}

// requireNothingLeft fails the test unless no job, and no trace of a worker, is left.
func requireNothingLeft(t *testing.T, server *rdbtest.Server) {
	t.Helper()
	for _, pattern := range []string{"jobs:*", "workers", "batch*"} {
		keys, err := server.Raw.Keys(t.Context(), pattern).Result()
		require.NoError(t, err)
		require.Subset(t, []string{layout.Keys{}.MaxInFlight()}, keys) // a note, which stays
	}
}

func TestRunsTheJobsOfBothQueues(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		st := storetest.Open(t, server)
		ran := make(chan string, 100)
		_, stop := start(t, st, func(_ context.Context, task *queue.Task) queue.Result {
			ran <- string(task.Queue) + task.Job.Args[0]
			return queue.Done
		})
		want, got := map[string]bool{}, map[string]bool{}
		for i := range 40 {
			q := bus.Queues[i%2]
			enqueue(t, st, q, fmt.Sprint(i))
			want[string(q)+fmt.Sprint(i)] = true
		}
		for range 40 {
			got[next(t, ran)] = true
		}
		assert.Equal(t, want, got)
		stop()
		assert.Empty(t, ran, "each ran once")
		requireNothingLeft(t, server)
	})
}

func TestAJobThatIsPutOffRunsAgain(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		st := storetest.Open(t, server)
		ran := make(chan time.Time, 10)
		const wait = 30 * time.Millisecond
		_, stop := start(t, st, func(context.Context, *queue.Task) queue.Result {
			ran <- time.Now()
			if len(ran) < 3 {
				return queue.Result{RetryAt: time.Now().Add(wait)}
			}
			return queue.Done
		})
		enqueue(t, st, bus.QueueMain)
		require.Eventually(t, func() bool { return len(ran) == 3 }, soon, time.Millisecond)
		stop()
		first, second, third := <-ran, <-ran, <-ran
		// Timestamps in Redis are whole ms.
		assert.GreaterOrEqual(t, second.Sub(first), wait-time.Millisecond)
		assert.GreaterOrEqual(t, third.Sub(second), wait-time.Millisecond)
		requireNothingLeft(t, server)
	})
}

func TestAPanicIsARetry(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		st := storetest.Open(t, server)
		ran := make(chan int, 10)
		log, stop := start(t, st, func(context.Context, *queue.Task) queue.Result {
			ran <- 1
			if len(ran) == 1 {
				panic("poison")
			}
			return queue.Done
		})
		enqueue(t, st, bus.QueueMain)
		require.Eventually(t, func() bool { return len(ran) == 2 }, soon, time.Millisecond)
		stop()
		assert.Contains(t, log.String(), "panic=poison")
		requireNothingLeft(t, server)
	})
}

func TestAnUnknownJobIsKept(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		st := storetest.Open(t, server)
		ctx := t.Context()
		log, stop := start(t, st, nil, func(c *worker.Config) {
			c.Handlers, c.RetryAfter = nil, time.Hour
		})
		enqueue(t, st, bus.QueueMain)
		server.Raw.SAdd(ctx, "jobs:index:main", "garbage")
		server.Raw.LPush(ctx, "jobs:instant:main", "garbage")
		require.Eventually(t, func() bool {
			return server.Raw.ZCard(ctx, "jobs:scheduled:main").Val() == 2
		}, soon, time.Millisecond)
		stop()
		assert.Contains(t, log.String(), "postponed a job that this version cannot run")
		assert.Equal(t, int64(2), server.Raw.ZCard(ctx, "jobs:scheduled:main").Val())
	})
}

func TestStopFinishesJobsInFlight(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		st := storetest.Open(t, server)
		started, finish := make(chan string, 10), make(chan struct{})
		log, stop := start(t, st, func(ctx context.Context, task *queue.Task) queue.Result {
			started <- task.Job.Args[0]
			<-finish
			assert.NoError(t, ctx.Err(), "a delivery in flight is not cut off")
			return queue.Done
		}, func(c *worker.Config) { c.Pools[0].Threads = 1 })
		enqueue(t, st, bus.QueueMain, "first")
		assert.Equal(t, "first", next(t, started))
		enqueue(t, st, bus.QueueMain, "second")

		stopped := make(chan struct{})
		go func() {
			defer close(stopped)
			stop()
		}()
		require.Eventually(t, func() bool { return strings.Contains(log.String(), "busy=1") }, soon, time.Millisecond)
		select {
		case <-stopped:
			t.Error("it stopped before its job was done")
		default:
		}
		close(finish)
		next(t, stopped)
		assert.Empty(t, started, "it took no other job")
		ctx := t.Context()
		assert.Equal(t, int64(1), server.Raw.LLen(ctx, "jobs:instant:main").Val())
		assert.Empty(t, server.Raw.Keys(ctx, "jobs:pending:*").Val())
		storetest.RequireSound(t, st)
	})
}

func TestTickers(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		st := storetest.Open(t, server)
		ran := make(chan int, 1000)
		log, stop := start(t, st, func(context.Context, *queue.Task) queue.Result {
			ran <- 1
			return queue.Done
		}, func(c *worker.Config) {
			c.Tickers = []worker.Ticker{
				{Interval: time.Millisecond, Work: func(ctx context.Context) error {
					_, err := storetest.NewQueue(st, 1).Enqueue(ctx, bus.QueueAux, bus.Job{Name: "job"})
					return err
				}},
				{Interval: time.Millisecond, Work: func(context.Context) error { return errors.New("odd") }},
			}
		})
		for range 5 {
			next(t, ran)
		}
		stop()
		storetest.RequireSound(t, st)
		assert.LessOrEqual(t, server.Raw.SCard(t.Context(), "jobs:index:aux").Val(), int64(1))
		assert.Contains(t, log.String(), `msg="redis refused a call" loop=tick error=odd`)
	})
}

// TestOutlivesARestartOfRedis requires that the worker runs jobs within 2 s after a restart of
// Redis. A host may stall for that long once, but not each time.
func TestOutlivesARestartOfRedis(t *testing.T) {
	const limit, tries = 2 * time.Second, 3
	quickest := outliveARestart(t)
	for n := 1; n < tries && quickest >= limit; n++ {
		quickest = min(quickest, outliveARestart(t))
	}
	assert.Less(t, quickest, limit)
}

// outliveARestart restarts Redis under a worker, and returns how long that took to run a job again.
func outliveARestart(t *testing.T) (took time.Duration) {
	t.Helper()
	server := rdbtest.Real(t, "--appendonly", "yes", "--appendfsync", "always")
	var log rdbtest.Buffer
	st := store.New(server.Open(t, log.LogTo).Partition(""), store.Options{})
	started, finish := make(chan string, 10), make(chan struct{}, 10)
	_, stop := start(t, st, func(_ context.Context, task *queue.Task) queue.Result {
		started <- task.Job.Args[0]
		<-finish
		return queue.Done
	})
	enqueue(t, st, bus.QueueMain, "before")
	assert.Equal(t, "before", next(t, started))
	server.Kill(t)
	finish <- struct{}{} // its result cannot be stored
	require.Eventually(t, func() bool { return strings.Contains(log.String(), "redis unavailable") }, soon, time.Millisecond)
	server.Restart(t)
	back := time.Now()
	require.Eventually(t, func() bool {
		added, err := storetest.NewQueue(st, 1).Enqueue(t.Context(), bus.QueueMain, bus.Job{Name: "job", Args: []string{"after"}})
		return err == nil && added
	}, soon, time.Millisecond)
	assert.Equal(t, "after", next(t, started))
	took = time.Since(back)
	finish <- struct{}{}
	require.Eventually(t, func() bool {
		return server.Raw.Exists(t.Context(), "jobs:index:main").Val() == 0
	}, soon, time.Millisecond, "both are completed")
	stop()
	assert.Empty(t, started, "neither ran twice")
	requireNothingLeft(t, server)
	return took
}

func TestALateResultChangesNothing(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		st := storetest.Open(t, server)
		started, finish := make(chan bus.WorkerID, 10), make(chan struct{}, 10)
		log, stop := start(t, st, func(_ context.Context, task *queue.Task) queue.Result {
			started <- task.Worker
			<-finish
			return queue.Done
		})
		enqueue(t, st, bus.QueueMain, "x")
		slow := next(t, started)
		jobs, err := storetest.NewQueue(st, 1).Retire(t.Context(), slow) // as a scrub by another worker does
		require.NoError(t, err)
		assert.Equal(t, 1, jobs)
		next(t, started) // another thread has it now
		finish <- struct{}{}
		finish <- struct{}{}
		require.Eventually(t, func() bool {
			return server.Raw.Exists(t.Context(), "jobs:index:main").Val() == 0
		}, soon, time.Millisecond)
		stop()
		assert.Contains(t, log.String(), "completed a job too late")
		requireNothingLeft(t, server)
	})
}

func TestStopsWhileRedisIsUnavailable(t *testing.T) {
	server := rdbtest.Real(t)
	log, stop := start(t, storetest.Open(t, server), nil)
	server.Kill(t)
	stop()
	assert.Contains(t, log.String(), "could not remove the worker from redis")
}

func TestStopsWhileRedisHangs(t *testing.T) {
	t.Parallel()
	server := rdbtest.Real(t)
	server.URL = rdbtest.Hurried(server.URL)
	st := storetest.Open(t, server)
	started, finish := make(chan int, 1), make(chan struct{})
	log, stop := start(t, st, func(context.Context, *queue.Task) queue.Result {
		started <- 1
		<-finish
		return queue.Done
	})
	enqueue(t, st, bus.QueueMain)
	next(t, started)
	server.Freeze(t)
	close(finish)
	stop()
	assert.Contains(t, log.String(), "could not complete a job before stopping")
	server.Thaw(t)
	storetest.RequireSound(t, st)
}
