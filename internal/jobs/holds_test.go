package jobs_test

import (
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

// held is the outcome of a job whose service asks for time.
var held = jobs.Outcome{Result: jobs.RunHeld, Standing: bus.Failing}

// holdFor has the service of a type ask for time, to a job that a worker takes. It returns the job.
func (s *shop) holdFor(name jobs.TypeName, d time.Duration) jobs.ID {
	s.T.Helper()
	id := s.Put(name)
	s.complete(s.take("holder", id), held, s.Now.Add(d))
	return id
}

// TestWhatWasTakenBeforeAHoldSaysNothingOfIt has jobs answered that were in flight together.
func TestWhatWasTakenBeforeAHoldSaysNothingOfIt(t *testing.T) {
	t.Parallel()
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		s := newShop(t, server)
		s.Add("ship", limit(9))
		var ids []jobs.ID
		var tasks []*queue.Task
		for i, worker := range []bus.WorkerID{"ann", "ben", "cat", "dan"} {
			ids = append(ids, s.Put("ship"))
			tasks = append(tasks, s.take(worker, ids[i]))
		}
		s.complete(tasks[0], held, s.Now.Add(time.Second))
		s.complete(tasks[1], held, s.Now.Add(time.Second))
		s.accept(tasks[2])
		s.complete(tasks[3], completed.Detail.(jobs.Outcome), time.Time{})
		other := s.Put("ship")
		assert.Empty(t, s.takeNothing(), "it is held back still")
		s.Pass(time.Second)
		probe := s.take("ann", ids[0])
		assert.Equal(t, 1, probe.Payload.(*jobs.Run).Holds, "the service has asked for time once")
		s.accept(probe)
		s.take("ann", ids[1]) // they follow at once
		s.take("ben", other)
		s.requireInFlight("ship", 4)
	})
}

func TestAnotherServiceIsNotHeldBack(t *testing.T) {
	t.Parallel()
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		s := newShop(t, server)
		s.Add("ship")
		id := s.Put("ship")
		s.complete(s.take("ann", id), held, s.Now.Add(time.Hour))
		assert.Empty(t, s.takeNothing())
		_, err := s.ChangeType(t.Context(), "ship", func(c *jobs.Type) error { c.URL += "/v2"; return nil })
		require.NoError(t, err)
		run := s.take("ann", id).Payload.(*jobs.Run)
		assert.Equal(t, bus.Untried, run.Standing)
		assert.Zero(t, run.Holds)
	})
}

// TestManyJobsOfAHeldTypeLookSeldom holds back a type whose limit is high.
func TestManyJobsOfAHeldTypeLookSeldom(t *testing.T) {
	t.Parallel()
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		s := newShop(t, server)
		s.Add("ship", limit(500))
		s.holdFor("ship", time.Second)
		s.putMany("ship", 400)
		for s.instant() > 0 {
			s.takeNothing()
		}
		looks := int64(0)
		s.Pass(time.Second)
		for range 20 {
			assert.EqualValues(t, 1, min(s.instant(), 1), "one looks at each time")
			looks += s.instant()
			probe := s.acquire("ann").Task
			s.takeNothing()
			s.complete(probe, held, s.Now.Add(500*time.Millisecond))
			s.takeNothing()
			s.Pass(500 * time.Millisecond)
		}
		assert.Less(t, looks, int64(60), "in 10 s")
		s.accept(s.acquire("ann").Task)
		assert.EqualValues(t, 256, s.instant(), "many follow at once")
		last := s.Put("ship")
		workers := []bus.WorkerID{"a", "b", "c", "d"}
		for _, worker := range workers {
			require.NotNil(t, s.acquire(worker).Task)
		}
		assert.EqualValues(t, 401-len(workers), s.instant(), "and the others soon")
		assert.Equal(t, jobs.Queued, s.Show(last).Status)
	})
}

// TestAReportEndsAHold has a service report on a job before it answers, or not answer at all.
func TestAReportEndsAHold(t *testing.T) {
	t.Parallel()
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		s := newShop(t, server)
		s.Add("ship", limit(9))
		first := s.holdFor("ship", time.Second)
		second, third := s.Put("ship"), s.Put("ship")
		s.takeNothing()
		s.Pass(time.Second)
		s.take("ann", first)
		require.NoError(t, s.report("ship", first, 3, jobs.Succeeded))
		s.take("ben", second)
		run := s.take("cat", third).Payload.(*jobs.Run)
		assert.Zero(t, run.Holds)
		assert.Equal(t, bus.Proven, run.Standing)
	})
}

// TestARefusalEndsNoHold has the service answer 500 while it is held back: it took no job.
func TestARefusalEndsNoHold(t *testing.T) {
	t.Parallel()
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		s := newShop(t, server)
		s.Add("ship", limit(9))
		first := s.holdFor("ship", time.Second)
		s.Put("ship")
		s.takeNothing()
		s.Pass(time.Second)
		s.complete(s.take("ann", first), jobs.Outcome{Result: jobs.RunFailed, Reason: "500", Standing: bus.Proven}, s.Now.Add(time.Hour))
		s.takeNothing()
		assert.Zero(t, s.instant(), "the other one waits")
	})
}

// TestAJobThatIsTriedOnceHoldsItsTypeBack has the service ask for time: that job is over, others
// wait.
func TestAJobThatIsTriedOnceHoldsItsTypeBack(t *testing.T) {
	t.Parallel()
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		s := newShop(t, server)
		s.Add("pay", jobstest.AtMostOnce, limit(9))
		first := s.Put("pay")
		task := s.take("ann", first)
		second := s.Put("pay")
		o := held
		o.Reason = "the service answered 503"
		s.complete(task, o, s.Now.Add(time.Minute))
		assert.Equal(t, jobs.Failed, s.Show(first).Status)
		assert.Equal(t, o.Reason, s.Show(first).Reason)
		assert.Empty(t, s.takeNothing())
		s.Pass(time.Minute)
		s.take("ann", second)
	})
}

// TestAnAnswerIsOfItsHold has a job that was taken in an earlier hold be answered in the next.
func TestAnAnswerIsOfItsHold(t *testing.T) {
	t.Parallel()
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		s := newShop(t, server)
		s.Add("ship", limit(9))
		first := s.holdFor("ship", time.Second)
		second := s.Put("ship")
		s.takeNothing()
		s.Pass(time.Second)
		slow := s.take("ann", first)
		s.takeNothing()
		s.Pass(500 * time.Millisecond)
		s.accept(s.take("ben", second)) // which ends the first hold
		third := s.holdFor("ship", time.Hour)
		s.accept(slow)
		s.takeNothing()
		s.Pass(time.Second)
		s.takeNothing()
		assert.Equal(t, jobs.Queued, s.Show(third).Status, "it is held back for an hour")
		_, err := s.ChangeType(t.Context(), "ship", func(c *jobs.Type) error { c.Paused = true; return nil })
		require.NoError(t, err)
		_, err = s.ChangeType(t.Context(), "ship", func(c *jobs.Type) error { c.Paused = false; return nil })
		require.NoError(t, err)
		s.take("ann", third) // to resume a type tries its service
	})
}

// TestSomebodyLooksWhetherAHoldIsOver removes the jobs that would check whether the hold is over.
func TestSomebodyLooksWhetherAHoldIsOver(t *testing.T) {
	t.Parallel()
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		s := newShop(t, server)
		s.Add("ship", limit(500))
		ids := append([]jobs.ID{s.holdFor("ship", time.Second)}, s.putMany("ship", 50)...)
		for s.instant() > 0 {
			s.takeNothing()
		}
		for _, id := range ids[:40] {
			_, err := s.Cancel(t.Context(), "ship", id, s.Now)
			require.NoError(t, err)
			s.takeNothing()
		}
		s.Pass(time.Second)
		s.accept(s.take("ann", ids[40]))
		assert.EqualValues(t, 10, s.instant())
	})
}
