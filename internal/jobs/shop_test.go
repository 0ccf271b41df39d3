package jobs_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/jobs"
	"routemaster/internal/jobs/jobstest"
	"routemaster/internal/layout"
	"routemaster/internal/queue"
	"routemaster/internal/rdb"
	"routemaster/internal/rdb/rdbtest"
)

var start = time.UnixMilli(1_700_000_000_000).UTC()

// shop is the jobs of a test, with the entries of its queue.
type shop struct {
	*jobstest.Shop
	server *rdbtest.Server
	queue  layout.Keys
	// account is the partition, to read accounts.
	account *rdb.Partition
}

func newShop(t testing.TB, server *rdbtest.Server) *shop {
	s := jobstest.NewShop(t, server, start)
	return &shop{s, server, layout.Keys{Namespace: s.Keys.Namespace}, server.Open(t).Partition(s.Keys.Namespace)}
}

func pulled(t *jobs.Type) { t.Pull = true }

func limit(n int) func(*jobs.Type) { return func(t *jobs.Type) { t.Concurrency = n } }

// putMany enqueues so many jobs for now, a thousand in a step.
func (s *shop) putMany(name jobs.TypeName, count int) (ids []jobs.ID) {
	s.T.Helper()
	for count > len(ids) {
		var list []jobs.NewJob
		for range min(1000, count-len(ids)) {
			list = append(list, jobs.NewJob{ID: jobs.NewID(), Data: []byte("1")})
		}
		_, err := s.Enqueue(s.T.Context(), name, list, "", s.Now)
		require.NoError(s.T, err)
		for _, job := range list {
			ids = append(ids, job.ID)
		}
	}
	return ids
}

// instant is how many entries may be taken.
func (s *shop) instant() int64 {
	s.T.Helper()
	return s.server.Raw.LLen(s.T.Context(), s.queue.Instant(bus.QueueJobs)).Val()
}

// acquire has a worker ask for a job.
func (s *shop) acquire(worker bus.WorkerID) queue.Taken {
	s.T.Helper()
	taken, err := s.Queue().Acquire(s.T.Context(), bus.QueueJobs, worker, bus.Failing, s.Now)
	require.NoError(s.T, err)
	require.Empty(s.T, taken.Poisoned)
	return taken
}

// take requires that a worker gets a job.
func (s *shop) take(worker bus.WorkerID, id jobs.ID) *queue.Task {
	s.T.Helper()
	task := s.acquire(worker).Task
	require.NotNil(s.T, task, "there is no job")
	require.Equal(s.T, id, task.Payload.(*jobs.Run).ID)
	return task
}

// takeNothing requires that there is no job for a worker, and returns the jobs that ended.
func (s *shop) takeNothing() []any {
	s.T.Helper()
	taken := s.acquire("idle")
	require.Nil(s.T, taken.Task)
	return taken.Discarded
}

// complete ends a task.
func (s *shop) complete(task *queue.Task, o jobs.Outcome, retryAt time.Time) {
	s.T.Helper()
	owned, err := s.Queue().Complete(s.T.Context(), task, queue.Result{RetryAt: retryAt, Detail: o}, s.Now)
	require.NoError(s.T, err)
	require.True(s.T, owned)
}

// accept completes a task as accepted by its service.
func (s *shop) accept(task *queue.Task) {
	s.T.Helper()
	s.complete(task, jobs.Outcome{Result: jobs.RunAccepted, Standing: bus.Proven},
		s.Now.Add(task.Payload.(*jobs.Run).Timeout))
}

func (s *shop) report(name jobs.TypeName, id jobs.ID, attempt int, status jobs.Status) error {
	_, err := s.Report(s.T.Context(), name, id, jobs.Report{Attempt: attempt, Status: status}, s.Now)
	return err
}

func (s *shop) counts(name jobs.TypeName) jobs.Counts {
	s.T.Helper()
	counts, err := s.Counts(s.T.Context(), jobs.Type{Name: name})
	require.NoError(s.T, err)
	return counts[0]
}

// lapse completes a task as accepted by its service, which then does not report until the deadline.
func (s *shop) lapse(task *queue.Task) {
	s.T.Helper()
	s.accept(task)
	s.Pass(task.Payload.(*jobs.Run).Timeout)
	require.Len(s.T, s.takeNothing(), 1)
}

// requireInFlight requires that the limits are exact: so many jobs of a type are in progress.
func (s *shop) requireInFlight(name jobs.TypeName, n int) {
	s.T.Helper()
	require.EqualValues(s.T, n, s.counts(name).InProgress)
}

// completed is the result of a task whose service said in its answer that the job succeeded.
var completed = queue.Result{Detail: jobs.Outcome{Result: jobs.RunSucceeded, Reported: true, Standing: bus.Proven}}
