package jobs_test

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/jobs"
	"routemaster/internal/jobs/jobstest"
	"routemaster/internal/queue"
	"routemaster/internal/rdb"
	"routemaster/internal/rdb/rdbtest"
)

// An id that is enqueued again, for the same time, a day after its job was removed.
func TestAnIDMayBeUsedAgainForTheSameTime(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		service := newService(t, with(http.StatusOK, `{"status":"succeeded"}`))
		s := newServedShop(t, server, service.url)
		s.Add("pay", jobstest.AtMostOnce)
		at := s.Now.Add(-time.Hour)
		id := jobs.NewID()
		put := func() { s.Put("pay", func(n *jobs.NewJob) { n.ID, n.RunAfter = id, at }) }
		ctx, q, r := t.Context(), s.Queue(), s.runner(func() time.Time { return s.Now })
		for i := range 2 {
			put()
			taken, err := q.Acquire(ctx, bus.QueueJobs, "worker", bus.Failing, s.Now)
			require.NoError(t, err)
			require.NotNil(t, taken.Task)
			_, err = q.Complete(ctx, taken.Task, r.Run(ctx, taken.Task), s.Now)
			require.NoError(t, err)
			assert.Len(t, service.got(), i+1)
			_, err = s.DropArchived(ctx, s.Now)
			require.NoError(t, err)
			s.Pass(24 * time.Hour)
		}
	})
}

// A job that was cancelled before it was confirmed holds back no others.
func TestAJobThatIsCancelledBeforeItIsConfirmed(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		service := newService(t, with(http.StatusOK, `{"status":"succeeded"}`))
		s := newServedShop(t, server, service.url)
		first := s.put("pay", jobstest.AtMostOnce)
		second := s.put("bill", jobstest.AtMostOnce)
		s.config.Confirm = func(ctx context.Context, name jobs.TypeName, id jobs.ID, worker bus.WorkerID) error {
			if id == first {
				return jobs.ErrNotInProgress
			}
			return nil
		}
		s.run(0)
		s.requireJob(second, jobs.Succeeded, 1, "")
	})
}

// After replicas were away for a while, a service that asks for time for the first time.
func TestReplicasThatWereAwayAreNotTheService(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		service := newService(t, with(http.StatusServiceUnavailable, ``))
		s := newServedShop(t, server, service.url)
		s.put("pay", jobstest.AtMostOnce)
		unconfirmed := bus.ErrUnavailable
		s.config.Confirm = func(ctx context.Context, name jobs.TypeName, id jobs.ID, worker bus.WorkerID) error {
			return unconfirmed
		}
		for range 10 {
			s.run(time.Second)
		}
		unconfirmed = nil
		s.run(time.Second)
		require.Len(t, service.got(), 1)
		ty, err := s.Type(t.Context(), "pay")
		require.NoError(t, err)
		counts, err := s.Counts(t.Context(), ty)
		require.NoError(t, err)
		t.Log("held for", counts[0].HeldUntil.Sub(s.Now))
		assert.LessOrEqual(t, counts[0].HeldUntil.Sub(s.Now), time.Second)
	})
}

// TestReplicasThatDoNotConfirm keep one thread, and only jobs of their partition.
func TestReplicasThatDoNotConfirm(t *testing.T) {
	service := newService(t, with(http.StatusOK, `{"status":"succeeded"}`))
	s := newServedShop(t, rdbtest.Embedded(t), service.url)
	var asking atomic.Int32
	answer := make(chan struct{}, 8)
	s.config.Confirm = func(_ context.Context, name jobs.TypeName, _ jobs.ID, _ bus.WorkerID) error {
		if name == "ship" {
			return nil
		}
		asking.Add(1)
		<-answer
		return bus.ErrUnavailable
	}
	r := s.runner(func() time.Time { return s.Now })
	run := func(name jobs.TypeName, in rdb.Number) jobs.RunResult {
		task := &queue.Task{Worker: bus.NewWorkerID(), Partition: in, Payload: &jobs.Run{
			ID: jobs.NewID(), Type: name, Strategy: jobs.AtMostOnce, Attempts: 1, MaxAttempts: 1, Data: []byte("1"), Timeout: time.Minute, Sequence: 1,
		}}
		return r.Run(t.Context(), task).Detail.(jobs.Outcome).Result
	}
	answer <- struct{}{}
	assert.Equal(t, jobs.RunUnsent, run("pay", 0))
	assert.Equal(t, jobs.RunSucceeded, run("ship", 1), "another partition has other replicas")
	s.Now = s.Now.Add(time.Second)
	asking.Store(0)
	var threads sync.WaitGroup
	for range 8 {
		threads.Go(func() { assert.Equal(t, jobs.RunUnsent, run("pay", 0)) })
	}
	go func() {
		time.Sleep(200 * time.Millisecond)
		for range 8 {
			answer <- struct{}{}
		}
	}()
	threads.Wait()
	assert.EqualValues(t, 1, asking.Load())
}
