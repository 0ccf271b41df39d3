package jobs_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/jobs"
	"routemaster/internal/jobs/jobstest"
	"routemaster/internal/queue"
	"routemaster/internal/rdb/rdbtest"
)

func TestAJobIsHandedOutAndReportedOn(t *testing.T) {
	t.Parallel()
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		s := newShop(t, server)
		s.Add("ship", limit(2), func(t *jobs.Type) { t.URL = "https://shop.example/ship" })
		id := s.Put("ship")
		job := s.Show(id)
		assert.Equal(t, jobs.Job{
			ID: id, Type: "ship", Status: jobs.Queued, Attempts: 3, Data: []byte(`{"b":1.50,"a":[]}`),
			Sequence: start.UnixMicro(), RunAfter: start, CreatedAt: start, UpdatedAt: start, EnqueuedAt: start,
		}, job)

		task := s.take("ann", id)
		run := task.Payload.(*jobs.Run)
		assert.Equal(t, jobs.Run{
			ID: id, Type: "ship", Strategy: jobs.AtLeastOnce, Attempts: 3, MaxAttempts: 3, Data: job.Data, Sequence: job.Sequence,
			URL: "https://shop.example/ship", Timeout: time.Minute, Standing: bus.Untried,
		}, *run)
		assert.Equal(t, jobs.InProgress, s.Show(id).Status)
		s.accept(task)
		assert.Equal(t, start.Add(time.Minute), s.Show(id).Deadline)
		assert.Equal(t, jobs.Counts{InProgress: 1}, s.counts("ship"))

		s.Pass(time.Second)
		require.ErrorIs(t, s.report("ship", id, 2, jobs.Succeeded), jobs.ErrStaleAttempt)
		require.ErrorIs(t, s.report("other", id, 3, jobs.Succeeded), jobs.ErrUnknownJob)
		require.NoError(t, s.report("ship", id, 3, jobs.Succeeded))
		require.NoError(t, s.report("ship", id, 3, jobs.Succeeded), "once more")
		require.ErrorIs(t, s.report("ship", id, 3, jobs.Failed), jobs.ErrReported)
		require.ErrorIs(t, s.report("ship", id, 2, jobs.Failed), jobs.ErrStaleAttempt)
		job = s.Show(id)
		assert.Equal(t, jobs.Succeeded, job.Status)
		assert.Equal(t, 3, job.Attempts)
		assert.Equal(t, start.Add(time.Second), job.CreatedAt)
		assert.Equal(t, jobs.Counts{}, s.counts("ship"))
		s.Pass(time.Hour)
		assert.Empty(t, s.takeNothing())
		s.requireIdle()
	})
}

// requireIdle requires that nothing of the queue is left.
func (s *shop) requireIdle() {
	s.T.Helper()
	keys, err := s.server.Raw.Keys(s.T.Context(), "w:jobs:*").Result()
	require.NoError(s.T, err)
	assert.Subset(s.T, []string{s.queue.PendingIndex(bus.QueueJobs)}, keys)
}

func TestAFailedAttemptIsTriedAgainLater(t *testing.T) {
	t.Parallel()
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		s := newShop(t, server)
		s.Add("ship")
		first, second := s.Put("ship"), s.Put("ship")
		s.accept(s.take("ann", first))
		assert.Empty(t, s.takeNothing())
		assert.Equal(t, jobs.Counts{Queued: 1, Waiting: 1, InProgress: 1, Oldest: start.Add(time.Microsecond)}, s.counts("ship"))
		require.NoError(t, s.report("ship", first, 3, jobs.Failed))
		require.NoError(t, s.report("ship", first, 3, jobs.Failed), "once more")
		job := s.Show(first)
		assert.Equal(t, jobs.Queued, job.Status)
		assert.Equal(t, 2, job.Attempts)
		assert.InDelta(t, 1.8, job.RunAfter.Sub(s.Now).Seconds(), 0.2)

		s.accept(s.take("ann", second))
		third := s.Put("ship")
		s.Pass(2 * time.Second)
		assert.Empty(t, s.takeNothing(), "the first waits for its turn")
		require.NoError(t, s.report("ship", second, 3, jobs.Succeeded))
		s.accept(s.take("ann", first))
		require.NoError(t, s.report("ship", first, 2, jobs.Failed))
		s.accept(s.take("ann", third))
		require.NoError(t, s.report("ship", third, 3, jobs.Succeeded))
		s.Pass(4 * time.Second)
		s.accept(s.take("ann", first))
		require.NoError(t, s.report("ship", first, 1, jobs.Failed))
		job = s.Show(first)
		assert.Equal(t, jobs.Failed, job.Status)
		assert.Equal(t, 0, job.Attempts)
		s.requireIdle()
	})
}

func TestADeadlineIsAFailedAttempt(t *testing.T) {
	t.Parallel()
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		s := newShop(t, server)
		s.Add("ship")
		id := s.Put("ship")
		s.accept(s.take("ann", id))
		s.Pass(time.Minute - time.Millisecond)
		assert.Empty(t, s.takeNothing())
		deadline, err := s.Extend(t.Context(), "ship", id, 3, time.Second, s.Now)
		require.NoError(t, err)
		assert.Equal(t, s.Now.Add(time.Second), deadline)
		s.Pass(999 * time.Millisecond)
		assert.Empty(t, s.takeNothing())
		s.requireInFlight("ship", 1)
		s.Pass(time.Millisecond)
		const reason = "no report before the deadline"
		assert.Equal(t, []any{jobs.Ended{ID: id, Type: "ship", Status: jobs.Queued, Reason: reason}}, s.takeNothing())
		job := s.Show(id)
		assert.Equal(t, 2, job.Attempts)
		assert.Equal(t, reason, job.Reason)
		s.requireInFlight("ship", 0)
		_, err = s.Extend(t.Context(), "ship", id, 2, time.Second, s.Now)
		require.ErrorIs(t, err, jobs.ErrNotInProgress)

		require.ErrorIs(t, s.report("ship", id, 1, jobs.Succeeded), jobs.ErrStaleAttempt)
		require.NoError(t, s.report("ship", id, 3, jobs.Succeeded), "late, but the work is done")
		assert.Equal(t, jobs.Succeeded, s.Show(id).Status)
		s.requireIdle()
	})
}

func TestALateSuccessIsStaleOnceTheRetryHasBegun(t *testing.T) {
	t.Parallel()
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		s := newShop(t, server)
		s.Add("ship")
		id := s.Put("ship")
		s.lapse(s.take("ann", id))
		s.Pass(2 * time.Second)
		task := s.take("ann", id)
		require.ErrorIs(t, s.report("ship", id, 3, jobs.Succeeded), jobs.ErrStaleAttempt)
		require.NoError(t, s.report("ship", id, 2, jobs.Succeeded), "before the service has answered")
		owned, err := s.Queue().Complete(t.Context(), task, queue.Result{RetryAt: s.Now.Add(time.Minute), Detail: jobs.Outcome{Result: jobs.RunAccepted}}, s.Now)
		require.NoError(t, err)
		require.False(t, owned)
		s.requireIdle()
	})
}

func TestAtMostOnce(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(s *shop, id jobs.ID){
		"a failed attempt": func(s *shop, id jobs.ID) {
			s.complete(s.take("ann", id), jobs.Outcome{Result: jobs.RunFailed, Reason: "refused"}, time.Time{})
		},
		"a service that asks for time": func(s *shop, id jobs.ID) {
			s.complete(s.take("ann", id), jobs.Outcome{Result: jobs.RunHeld}, s.Now.Add(time.Second))
		},
		"a worker that fails": func(s *shop, id jobs.ID) {
			task := s.take("ann", id)
			_, err := s.Queue().Complete(s.T.Context(), task, queue.Result{RetryAt: s.Now.Add(time.Second)}, s.Now)
			require.NoError(s.T, err)
		},
		"a deadline": func(s *shop, id jobs.ID) {
			s.lapse(s.take("ann", id))
			require.NoError(s.T, s.report("pay", id, 1, jobs.Succeeded))
			require.Equal(s.T, jobs.Succeeded, s.Show(id).Status)
			require.ErrorIs(s.T, s.report("pay", id, 1, jobs.Failed), jobs.ErrReported)
		},
		"a worker that died": func(s *shop, id jobs.ID) {
			s.take("ann", id)
			s.take("ann", id) // a reply was lost
			s.scrub()
			taken := s.acquire("ann") // the worker is alive after all
			require.Nil(s.T, taken.Task)
			require.Len(s.T, taken.Discarded, 1)
			require.Equal(s.T, "the worker died", s.Show(id).Reason)
			require.NoError(s.T, s.report("pay", id, 1, jobs.Succeeded))
			require.Equal(s.T, jobs.Succeeded, s.Show(id).Status)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
				s := newShop(t, server)
				s.Add("pay", jobstest.AtMostOnce)
				id := s.Put("pay")
				end(s, id)
				require.True(t, s.Show(id).Status.IsArchived())
				s.Pass(time.Hour)
				assert.Empty(t, s.takeNothing(), "never again")
				s.requireIdle()
			})
		})
	}
}

// scrub has another worker find that all are dead.
func (s *shop) scrub() {
	s.T.Helper()
	_, err := s.Queue().Scrub(s.T.Context(), s.Now, bus.QueueJobs)
	require.NoError(s.T, err)
}

func TestAJobOfADeadWorkerIsHandedOutAgain(t *testing.T) {
	t.Parallel()
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		s := newShop(t, server)
		s.Add("ship")
		id := s.Put("ship")
		late := s.take("ann", id)
		s.scrub()
		task := s.take("ben", id)
		assert.Equal(t, 3, task.Payload.(*jobs.Run).Attempts)
		owned, err := s.Queue().Complete(t.Context(), late, queue.Result{Detail: jobs.Outcome{Result: jobs.RunSucceeded}}, s.Now)
		require.NoError(t, err)
		assert.False(t, owned)
		assert.Equal(t, jobs.InProgress, s.Show(id).Status)
		s.complete(task, jobs.Outcome{Result: jobs.RunSucceeded, Standing: bus.Proven}, time.Time{})
		assert.Equal(t, jobs.Succeeded, s.Show(id).Status)
		require.NoError(t, s.report("ship", id, 3, jobs.Succeeded), "what it has said in its answer")
		s.requireIdle()
	})
}

func TestAServiceThatAsksForTimeHoldsItsTypeBack(t *testing.T) {
	t.Parallel()
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		s := newShop(t, server)
		s.Add("ship", limit(3))
		first, second := s.Put("ship"), s.Put("ship")
		held := jobs.Outcome{Result: jobs.RunHeld, Standing: bus.Failing}
		s.complete(s.take("ann", first), held, s.Now.Add(time.Second))
		assert.Empty(t, s.takeNothing())
		job := s.Show(first)
		assert.Equal(t, []any{jobs.Queued, 3}, []any{job.Status, job.Attempts}, "it costs no attempt")
		s.requireInFlight("ship", 0)
		s.Pass(time.Second)
		task := s.take("ann", first)
		assert.Equal(t, 1, task.Payload.(*jobs.Run).Holds)
		assert.Empty(t, s.takeNothing(), "one at a time, until the service takes one")
		s.Pass(500 * time.Millisecond)
		other := s.take("ben", second)
		s.accept(other)
		s.accept(task)
		s.accept(s.take("ann", s.Put("ship")))
		s.requireInFlight("ship", 3)
	})
}

func TestAJobThatIsHeldGivesItsTurnToOneBeforeIt(t *testing.T) {
	t.Parallel()
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		s := newShop(t, server)
		s.Add("ship")
		first, second := s.Put("ship"), s.Put("ship")
		s.accept(s.take("ann", first))
		require.NoError(t, s.report("ship", first, 3, jobs.Failed))
		task := s.take("ann", second)
		s.Pass(2 * time.Second)
		assert.Empty(t, s.takeNothing(), "the first waits behind who is in flight")
		s.complete(task, jobs.Outcome{Result: jobs.RunHeld}, s.Now.Add(time.Second))
		s.takeNothing() // the first is held back too
		s.Pass(time.Second)
		s.accept(s.take("ann", first))
		require.NoError(t, s.report("ship", first, 2, jobs.Succeeded))
		s.accept(s.take("ann", second))
	})
}

func TestExpiry(t *testing.T) {
	t.Parallel()
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		s := newShop(t, server)
		s.Add("ship")
		expires := func(j *jobs.NewJob) { j.ExpiresAt = start.Add(time.Second) }
		first, waiting := s.Put("ship"), s.Put("ship", expires)
		past := s.Put("ship", func(j *jobs.NewJob) { j.ExpiresAt = start.Add(-time.Second) })
		s.accept(s.take("ann", first))
		s.Pass(time.Second)
		assert.ElementsMatch(t, []any{
			jobs.Ended{ID: past, Type: "ship", Status: jobs.Expired}, jobs.Ended{ID: waiting, Type: "ship", Status: jobs.Expired},
		}, s.takeNothing(), "though it is not their turn")
		assert.Equal(t, jobs.Expired, s.Show(waiting).Status)
		assert.Equal(t, 3, s.Show(waiting).Attempts)
		require.ErrorIs(t, s.report("ship", waiting, 3, jobs.Succeeded), jobs.ErrArchived)
		again, err := s.Replay(t.Context(), "", waiting, jobs.NewID(), s.Now)
		require.NoError(t, err)
		require.NoError(t, s.report("ship", first, 3, jobs.Succeeded))
		assert.Equal(t, []any{jobs.Ended{ID: again.ID, Type: "ship", Status: jobs.Expired}}, s.takeNothing())
		s.requireIdle()
	})
}

// TestJobsOfTheSameTimeBeginInOrder enqueues jobs for one ms, and cancels one of them in between.
func TestJobsOfTheSameTimeBeginInOrder(t *testing.T) {
	t.Parallel()
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		s := newShop(t, server)
		s.Add("ship", limit(100))
		var ids []jobs.ID
		for n := range 50 {
			ids = append(ids, s.Put("ship", func(j *jobs.NewJob) { j.RunAfter = start.Add(time.Minute) }))
			if n == 25 {
				_, err := s.Cancel(t.Context(), "ship", ids[25], s.Now)
				require.NoError(t, err)
				ids = ids[:25]
			}
		}
		s.Pass(time.Minute - time.Millisecond)
		s.takeNothing()
		s.Pass(time.Millisecond)
		for n, id := range ids {
			s.take(bus.WorkerID(fmt.Sprint("worker ", n)), id)
		}
	})
}
