package jobstore_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/jobs"
	"routemaster/internal/jobs/jobstore"
	"routemaster/internal/queue"
	"routemaster/internal/rdb/rdbtest"
)

func TestMain(m *testing.M) { rdbtest.Main(m) }

var start = time.UnixMilli(1_700_000_000_000).UTC()

// shop is the jobs of a test, with a clock.
type shop struct {
	*jobstore.Store
	t      testing.TB
	server *rdbtest.Server
	keys   jobstore.Keys
	queue  queue.Keys
	now    time.Time
}

func newShop(t testing.TB, server *rdbtest.Server) *shop {
	const namespace = "w:"
	st := jobstore.New(server.Open(t).Partition(namespace))
	return &shop{st, t, server, jobstore.Keys{Namespace: namespace}, queue.Keys{Namespace: namespace}, start}
}

// pass moves the clock on, and has the scheduler make instant what is due.
func (s *shop) pass(d time.Duration) {
	s.t.Helper()
	s.now = s.now.Add(d)
	_, err := s.Queue().Schedule(s.t.Context(), bus.QueueJobs, s.now, 10_000)
	require.NoError(s.t, err)
}

// add makes a type of three attempts and a limit of one, with changes.
func (s *shop) add(name jobs.TypeName, changes ...func(*jobs.Type)) {
	s.t.Helper()
	t := jobs.Type{
		Name: name, Strategy: jobs.AtLeastOnce, Attempts: 3, Concurrency: 1, URL: "https://shop.example/" + string(name),
		Timeout: time.Minute, Retention: time.Hour, CreatedAt: s.now, UpdatedAt: s.now,
	}
	for _, change := range changes {
		change(&t)
	}
	require.NoError(s.t, s.CreateType(s.t.Context(), t))
}

func atMostOnce(t *jobs.Type) { t.Strategy, t.Attempts = jobs.AtMostOnce, 1 }

func pulled(t *jobs.Type) { t.URL, t.Pull = "", true }

func limit(n int) func(*jobs.Type) { return func(t *jobs.Type) { t.Concurrency = n } }

// put enqueues a job for now, with changes.
func (s *shop) put(name jobs.TypeName, changes ...func(*jobs.NewJob)) jobs.ID {
	s.t.Helper()
	job := jobs.NewJob{ID: jobs.NewID(), Data: []byte(`{"b":1.50,"a":[]}`)}
	for _, change := range changes {
		change(&job)
	}
	list, err := s.Enqueue(s.t.Context(), name, []jobs.NewJob{job}, "", s.now)
	require.NoError(s.t, err)
	require.Len(s.t, list, 1)
	require.Equal(s.t, job.ID, list[0].ID)
	return job.ID
}

// putMany enqueues so many jobs for now, a thousand in a step.
func (s *shop) putMany(name jobs.TypeName, count int) (ids []jobs.ID) {
	s.t.Helper()
	for count > len(ids) {
		var list []jobs.NewJob
		for range min(1000, count-len(ids)) {
			list = append(list, jobs.NewJob{ID: jobs.NewID(), Data: []byte("1")})
		}
		_, err := s.Enqueue(s.t.Context(), name, list, "", s.now)
		require.NoError(s.t, err)
		for _, job := range list {
			ids = append(ids, job.ID)
		}
	}
	return ids
}

// instant is how many entries may be taken.
func (s *shop) instant() int64 {
	s.t.Helper()
	return s.server.Raw.LLen(s.t.Context(), s.queue.Instant(bus.QueueJobs)).Val()
}

func (s *shop) job(id jobs.ID) jobs.Job {
	s.t.Helper()
	job, err := s.Job(s.t.Context(), "", id)
	require.NoError(s.t, err)
	return job
}

// acquire has a worker ask for a job.
func (s *shop) acquire(worker bus.WorkerID) queue.Taken {
	s.t.Helper()
	taken, err := s.Queue().Acquire(s.t.Context(), bus.QueueJobs, worker, bus.Failing, s.now)
	require.NoError(s.t, err)
	require.Empty(s.t, taken.Poisoned)
	return taken
}

// take requires that a worker gets a job.
func (s *shop) take(worker bus.WorkerID, id jobs.ID) *queue.Task {
	s.t.Helper()
	task := s.acquire(worker).Task
	require.NotNil(s.t, task, "there is no job")
	require.Equal(s.t, id, task.Payload.(*jobstore.Run).ID)
	return task
}

// takeNothing requires that there is no job for a worker, and returns what ended.
func (s *shop) takeNothing() []any {
	s.t.Helper()
	taken := s.acquire("idle")
	require.Nil(s.t, taken.Task)
	return taken.Discarded
}

// complete ends a task.
func (s *shop) complete(task *queue.Task, o jobstore.Outcome, retryAt time.Time) {
	s.t.Helper()
	owned, err := s.Queue().Complete(s.t.Context(), task, queue.Result{RetryAt: retryAt, Detail: o}, s.now)
	require.NoError(s.t, err)
	require.True(s.t, owned)
}

// accept has a service take a job.
func (s *shop) accept(task *queue.Task) {
	s.t.Helper()
	s.complete(task, jobstore.Outcome{Result: jobstore.Accepted, Standing: bus.Proven},
		s.now.Add(task.Payload.(*jobstore.Run).Timeout))
}

func (s *shop) report(name jobs.TypeName, id jobs.ID, attempt int, status jobs.Status) error {
	_, err := s.Report(s.t.Context(), name, id, jobs.Report{Attempt: attempt, Status: status}, s.now)
	return err
}

func (s *shop) counts(name jobs.TypeName) jobs.Counts {
	s.t.Helper()
	counts, err := s.Counts(s.t.Context(), jobs.Type{Name: name})
	require.NoError(s.t, err)
	return counts[0]
}

// lapse has a service take a job, and say nothing until its deadline.
func (s *shop) lapse(task *queue.Task) {
	s.t.Helper()
	s.accept(task)
	s.pass(task.Payload.(*jobstore.Run).Timeout)
	require.Len(s.t, s.takeNothing(), 1)
}

// requireInFlight requires that the limits are exact: so many jobs of a type are in progress.
func (s *shop) requireInFlight(name jobs.TypeName, n int) {
	s.t.Helper()
	require.EqualValues(s.t, n, s.counts(name).InProgress)
}

// completed is the result of a task whose service said in its answer that the job succeeded.
var completed = queue.Result{Detail: jobstore.Outcome{Result: jobstore.Succeeded, Reported: true, Standing: bus.Proven}}
