package jobs_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/jobs"
	"routemaster/internal/jobs/jobstest"
	"routemaster/internal/rdb"
	"routemaster/internal/rdb/rdbtest"
)

func TestAJobThatIsHeldStandsInTheQueueOnce(t *testing.T) {
	t.Parallel()
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		s := newShop(t, server)
		s.Add("ship")
		s.complete(s.take("ann", s.Put("ship")), jobs.Outcome{Result: jobs.RunHeld}, s.Now.Add(time.Second))
		assert.Zero(t, server.Raw.LLen(t.Context(), s.queue.Instant(bus.QueueJobs)).Val())
	})
}

// TestALeftoverEntryIsNotADeadWorkers has an entry stay in the list of instant ones when its job is
// cancelled and removed, and another job get the same id a day later.
func TestALeftoverEntryIsNotADeadWorkers(t *testing.T) {
	t.Parallel()
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		s := newShop(t, server)
		s.Add("pay", jobstest.AtMostOnce)
		id := s.Put("pay")
		_, err := s.Cancel(t.Context(), "pay", id, s.Now)
		require.NoError(t, err)
		_, err = s.DropArchived(t.Context(), s.Now)
		require.NoError(t, err)
		s.Now = s.Now.Add(24 * time.Hour)
		s.Put("pay", func(j *jobs.NewJob) { j.ID = id })
		task := s.take("ann", id)
		assert.Empty(t, s.takeNothing())
		assert.Equal(t, jobs.InProgress, s.Show(id).Status)
		s.accept(task)
		s.requireInFlight("pay", 1)
	})
}

func TestAReportIsOfItsAttempt(t *testing.T) {
	t.Parallel()
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		s := newShop(t, server)
		s.Add("ship")
		id := s.Put("ship")
		s.lapse(s.take("ann", id))
		s.Pass(2 * time.Second)
		s.accept(s.take("ann", id))
		require.NoError(t, s.report("ship", id, 2, jobs.Failed))
		require.ErrorIs(t, s.report("ship", id, 3, jobs.Succeeded), jobs.ErrStaleAttempt, "another has begun since")
		s.Pass(4 * time.Second)
		s.accept(s.take("ann", id))
		require.NoError(t, s.report("ship", id, 2, jobs.Failed), "once more")
		require.NoError(t, s.report("ship", id, 1, jobs.Succeeded))
		require.NoError(t, s.report("ship", id, 2, jobs.Failed), "once more")
		require.ErrorIs(t, s.report("ship", id, 3, jobs.Succeeded), jobs.ErrStaleAttempt)
		require.ErrorIs(t, s.report("ship", id, 2, jobs.Succeeded), jobs.ErrReported)
		assert.Equal(t, 1, s.Show(id).Attempts)
	})
}

func TestALateFailureIsAReport(t *testing.T) {
	t.Parallel()
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		s := newShop(t, server)
		s.Add("pay", jobstest.AtMostOnce)
		id := s.Put("pay")
		s.lapse(s.take("ann", id))
		require.NoError(t, s.report("pay", id, 1, jobs.Failed))
		require.ErrorIs(t, s.report("pay", id, 1, jobs.Succeeded), jobs.ErrReported)
	})
}

// TestManyJobsAreWoken raises a limit by more than one step wakes.
func TestManyJobsAreWoken(t *testing.T) {
	t.Parallel()
	s := newShop(t, rdbtest.Real(t))
	s.Add("ship")
	s.accept(s.take("ann", s.Put("ship"))) // so its service is known to take jobs
	s.putMany("ship", 1400)
	_, err := s.ChangeType(t.Context(), "ship", func(c *jobs.Type) error { c.Concurrency = 5000; return nil })
	require.NoError(t, err)
	assert.EqualValues(t, 1400, s.instant())
}

func TestAJobKeepsTheStrategyThatItWasEnqueuedWith(t *testing.T) {
	t.Parallel()
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		s := newShop(t, server)
		s.Add("pay", jobstest.AtMostOnce)
		id := s.Put("pay")
		s.take("ann", id)
		_, err := s.ChangeType(t.Context(), "pay", func(c *jobs.Type) error {
			c.Strategy, c.Attempts = jobs.AtLeastOnce, 3
			return nil
		})
		require.NoError(t, err)
		s.scrub()
		require.Len(t, s.takeNothing(), 1)
		assert.Equal(t, jobs.Failed, s.Show(id).Status)
	})
}

func TestAJobThatWasRemovedByHandHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		s := newShop(t, server)
		s.Add("ship")
		first, second := s.Put("ship"), s.Put("ship")
		require.NoError(t, server.Raw.Del(t.Context(), s.Keys.Job(string(first))).Err())
		assert.Empty(t, s.takeNothing())
		_, err := s.Purge(t.Context(), s.Now, always)
		require.NoError(t, err)
		s.take("ann", second)
	})
}

// TestARecordThatIsNoHashHidesNoOther damages a job, which is then left out of lists and fetches.
func TestARecordThatIsNoHashHidesNoOther(t *testing.T) {
	t.Parallel()
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		s := newShop(t, server)
		s.Add("mail", pulled, limit(9))
		first, second := s.Put("mail"), s.Put("mail")
		require.NoError(t, server.Raw.Del(t.Context(), s.Keys.Job(string(first))).Err())
		require.NoError(t, server.Raw.Set(t.Context(), s.Keys.Job(string(first)), "not a hash", 0).Err())
		list, next, err := s.Open(t.Context(), jobs.Filter{Limit: 9})
		require.NoError(t, err)
		assert.Empty(t, next)
		require.Len(t, list, 1)
		assert.Equal(t, second, list[0].ID)
		list, _, err = s.Fetch(t.Context(), "mail", 9, s.Now)
		require.NoError(t, err)
		require.Len(t, list, 1)
	})
}

func TestTimesFarAwayAreKept(t *testing.T) {
	t.Parallel()
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		s := newShop(t, server)
		s.Add("ship")
		never := time.Date(9999, 12, 31, 23, 59, 59, 999999000, time.UTC)
		id := s.Put("ship", func(j *jobs.NewJob) { j.ExpiresAt = never })
		assert.Equal(t, never, s.Show(id).ExpiresAt)
		s.complete(s.take("ann", id), completed.Detail.(jobs.Outcome), time.Time{})
		again, err := s.Replay(t.Context(), "", id, jobs.NewID(), s.Now)
		require.NoError(t, err)
		assert.Equal(t, never, again.ExpiresAt)
	})
}

// TestAJobIsTakenAtOnceThoughClocksDiffer enqueues by a clock that is ahead of the worker's, by the
// part of a millisecond that only one of them has, and by more.
func TestAJobIsTakenAtOnceThoughClocksDiffer(t *testing.T) {
	t.Parallel()
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		s := newShop(t, server)
		s.Add("ship", limit(2))
		for _, ahead := range []time.Duration{999 * time.Microsecond, 900 * time.Millisecond} {
			s.Now = start.Add(ahead)
			id := s.Put("ship")
			s.Now = start
			s.take(bus.WorkerID(ahead.String()), id)
		}
	})
}

// TestADamagedListHarmsNoOtherType overwrites a key of one type by another kind of value.
func TestADamagedListHarmsNoOtherType(t *testing.T) {
	t.Parallel()
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		for _, damage := range []func(s *shop) string{
			func(s *shop) string { return s.Keys.OpenJobs("ship") },
			func(s *shop) string { return s.queue.Lane(bus.JobJob, "ship") },
		} {
			s := newShop(t, server)
			s.Add("ship", limit(9))
			s.Add("mail")
			require.NoError(t, server.Raw.Set(t.Context(), damage(s), "not a list", 0).Err())
			id := jobs.NewID()
			_, err := s.Enqueue(t.Context(), "ship", []jobs.NewJob{{ID: id, Data: []byte("1")}}, "", s.Now)
			require.Error(t, err)
			_, err = s.Job(t.Context(), "", id)
			require.ErrorIs(t, err, jobs.ErrUnknownJob, "nothing is left of what was refused")
			other := s.Put("mail")
			s.requireInFlight("mail", 0)
			assert.EqualValues(t, 1, s.counts("mail").Queued)
			list, _, err := s.Open(t.Context(), jobs.Filter{Limit: 9})
			require.NoError(t, err)
			require.Len(t, list, 1)
			s.complete(s.take("ann", other), completed.Detail.(jobs.Outcome), time.Time{})
			dropped, err := s.DropArchived(t.Context(), s.Now)
			require.NoError(t, err)
			assert.Equal(t, 1, dropped)
			require.NoError(t, server.Raw.FlushAll(t.Context()).Err())
		}
	})
}

// TestWhatNoReplicaConfirmsFails makes clients' calls on a Redis without the replica that is to
// confirm them.
func TestWhatNoReplicaConfirmsFails(t *testing.T) {
	t.Parallel()
	server := rdbtest.Real(t)
	s := newShop(t, server)
	s.Add("ship")
	s.Add("call", pulled)
	s.Put("call")
	reported, extended := s.Put("ship"), s.Put("ship")
	s.accept(s.take("ann", reported))
	unconfirmed := s.Store
	client := server.Open(t, func(o *rdb.Options) { o.MinReplicas = 1 })
	s.Store = jobs.NewStore(client.Partition(s.Keys.Namespace))
	ctx := t.Context()
	_, err := s.Enqueue(ctx, "ship", []jobs.NewJob{{ID: jobs.NewID(), Data: []byte("1")}}, "", s.Now)
	assert.ErrorIs(t, err, bus.ErrUnavailable)
	assert.ErrorIs(t, s.report("ship", reported, 3, jobs.Succeeded), bus.ErrUnavailable)

	fetched, _, err := s.Fetch(ctx, "call", 1, s.Now)
	require.NoError(t, err, "or the job would wait for its deadline")
	assert.Len(t, fetched, 1)
	assert.ErrorIs(t, s.DeleteType(ctx, "call", true, s.Now, func(jobs.Type) error { return nil }), bus.ErrUnavailable)
	_, err = s.Extend(ctx, "ship", extended, 3, time.Minute, s.Now)
	assert.ErrorIs(t, err, jobs.ErrNotInProgress, "what changes nothing has nothing to confirm")
	assert.Equal(t, jobs.Succeeded, s.Show(reported).Status)
	s.take("ann", extended)
	assert.ErrorIs(t, s.Confirm(ctx, "ship", extended, "ann"), bus.ErrUnavailable)
	assert.ErrorIs(t, s.Confirm(ctx, "ship", extended, "bob"), jobs.ErrNotInProgress)
	s.Store = unconfirmed
	require.NoError(t, s.Confirm(ctx, "ship", extended, "bob"), "it is not asked")
	require.NoError(t, s.report("ship", reported, 3, jobs.Succeeded), "it is there, though nobody could be sure of it")
}
