package jobs_test

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"routemaster/internal/bus"
	"routemaster/internal/jobs"
	"routemaster/internal/jobs/jobstest"
	"routemaster/internal/queue"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/wire"
)

// model drives random steps, and knows their expected results.
type model struct {
	*shop
	rt    *rapid.T
	tasks map[bus.WorkerID]*queue.Task
	// dead are tasks of workers that were taken to be dead, deaths how often that came.
	dead   []*queue.Task
	deaths int
	// held is the attempts that services have, and may report on.
	held map[jobs.ID]attempt
	ids  []jobs.ID
	// handed is how often a job of [jobs.AtMostOnce] was handed out.
	handed map[jobs.ID]int
	// checkAll has every step checked, not only the last.
	checkAll bool
}

type attempt struct {
	name jobs.TypeName
	left int
}

var modelTypes = []jobs.TypeName{"ship", "pay", "mail"}

func newModel(rt *rapid.T, s *shop) *model {
	s.Now = start
	m := &model{s, rt, map[bus.WorkerID]*queue.Task{}, nil, 0, map[jobs.ID]attempt{}, nil, map[jobs.ID]int{}, false}
	s.Add("ship", limit(2))
	s.Add("pay", jobstest.AtMostOnce, limit(2))
	s.Add("mail", pulled, limit(2))
	return m
}

func (m *model) name() jobs.TypeName { return rapid.SampledFrom(modelTypes).Draw(m.rt, "type") }

func (m *model) id() jobs.ID {
	if len(m.ids) == 0 {
		m.rt.Skip("no job")
	}
	return rapid.SampledFrom(m.ids).Draw(m.rt, "job")
}

func (m *model) enqueue(rt *rapid.T) {
	m.rt = rt
	name, list := m.name(), make([]jobs.NewJob, rapid.IntRange(1, 4).Draw(rt, "jobs"))
	for i := range list {
		list[i] = jobs.NewJob{ID: jobs.NewID(), Data: []byte("1")}
		m.ids = append(m.ids, list[i].ID)
		if rapid.Bool().Draw(rt, "later") {
			list[i].RunAfter = m.Now.Add(time.Second)
		}
		if rapid.IntRange(0, 3).Draw(rt, "expires") == 0 {
			list[i].ExpiresAt = m.Now.Add(3 * time.Second)
		}
	}
	_, err := m.Enqueue(m.T.Context(), name, list, "", m.Now)
	require.NoError(rt, err)
}

func (m *model) acquireSome(rt *rapid.T) {
	m.rt = rt
	worker := bus.WorkerID(rapid.SampledFrom([]string{"ann", "ben", "cat"}).Draw(rt, "worker") + strings.Repeat("'", m.deaths))
	if m.tasks[worker] != nil {
		return
	}
	if task := m.acquire(worker).Task; task != nil {
		m.tasks[worker] = task
		m.given(task.Payload.(*jobs.Run))
	}
}

// given notes that a job was handed out.
func (m *model) given(run *jobs.Run) {
	m.held[run.ID] = attempt{run.Type, run.Attempts}
	if run.Strategy == jobs.AtMostOnce {
		m.handed[run.ID]++
		require.Equal(m.rt, 1, m.handed[run.ID], "at most once")
	}
}

func (m *model) complete(rt *rapid.T) {
	m.rt = rt
	workers := slices.Sorted(maps.Keys(m.tasks))
	if len(workers) == 0 {
		rt.Skip("no task")
	}
	worker := rapid.SampledFrom(workers).Draw(rt, "worker")
	task := m.tasks[worker]
	delete(m.tasks, worker)
	_, err := m.Queue().Complete(m.T.Context(), task, m.result(), m.Now)
	require.NoError(rt, err)
}

// result is any result of a task.
func (m *model) result() queue.Result {
	kind := rapid.SampledFrom([]jobs.RunResult{
		jobs.RunAccepted, jobs.RunAccepted, jobs.RunSucceeded, jobs.RunFailed, jobs.RunHeld, "",
	}).Draw(m.rt, "result")
	retryAt := m.Now.Add(time.Second)
	switch {
	case kind == "":
		return queue.Result{RetryAt: retryAt}
	case kind == jobs.RunSucceeded || kind == jobs.RunFailed && rapid.Bool().Draw(m.rt, "final"):
		retryAt = time.Time{}
	}
	standing := bus.Failing
	if kind == jobs.RunAccepted || kind == jobs.RunSucceeded {
		standing = bus.Proven
	}
	return queue.Result{RetryAt: retryAt, Detail: jobs.Outcome{Result: kind, Standing: standing}}
}

// dieSome has all workers die; their tasks may still be completed, too late.
func (m *model) dieSome(*rapid.T) {
	m.deaths++
	for _, task := range m.tasks {
		m.dead = append(m.dead, task)
	}
	clear(m.tasks)
	m.scrub()
}

func (m *model) completeLate(rt *rapid.T) {
	m.rt = rt
	for _, task := range m.dead {
		owned, err := m.Queue().Complete(m.T.Context(), task, m.result(), m.Now)
		require.NoError(rt, err)
		require.False(rt, owned)
	}
	m.dead = nil
}

func (m *model) fetchSome(rt *rapid.T) {
	list, _, err := m.Fetch(m.T.Context(), "mail", rapid.IntRange(1, 3).Draw(rt, "max"), m.Now)
	require.NoError(rt, err)
	for _, job := range list {
		if rapid.Bool().Draw(rt, "put back") {
			require.NoError(rt, m.Return(m.T.Context(), job, m.Now))
			continue
		}
		m.held[job.ID] = attempt{"mail", job.Attempts}
	}
}

func (m *model) reportSome(rt *rapid.T) {
	m.rt = rt
	id := m.id()
	about, ok := m.held[id]
	if !ok {
		return
	}
	status := rapid.SampledFrom([]jobs.Status{jobs.Succeeded, jobs.Failed}).Draw(rt, "status")
	err := m.report(about.name, id, about.left, status)
	for _, fine := range []error{nil, jobs.ErrStaleAttempt, jobs.ErrReported, jobs.ErrCancelled} {
		if errors.Is(err, fine) {
			if err == nil { // then to say it again is fine, and something else is not
				require.NoError(rt, m.report(about.name, id, about.left, status))
			}
			return
		}
	}
	if !errors.Is(err, jobs.ErrArchived) {
		require.NoError(rt, err)
	}
}

func (m *model) extendSome(rt *rapid.T) {
	m.rt = rt
	id := m.id()
	_, _ = m.Extend(m.T.Context(), m.held[id].name, id, m.held[id].left, 2*time.Second, m.Now)
}

func (m *model) cancelSome(rt *rapid.T) {
	m.rt = rt
	id := m.id()
	if _, err := m.Cancel(m.T.Context(), m.Show(id).Type, id, m.Now); !errors.Is(err, jobs.ErrArchived) {
		require.NoError(rt, err)
	}
}

// replaySome makes a copy that shares the data of a job, or of the job that it was copied from.
func (m *model) replaySome(rt *rapid.T) {
	m.rt = rt
	id, copied := m.id(), jobs.NewID()
	if _, err := m.Replay(m.T.Context(), "", id, copied, m.Now); !errors.Is(err, jobs.ErrQueued) {
		require.NoError(rt, err)
		m.ids = append(m.ids, copied)
	}
}

func (m *model) changeSome(rt *rapid.T) {
	m.rt = rt
	name := m.name()
	_, err := m.ChangeType(m.T.Context(), name, func(c *jobs.Type) error {
		c.Concurrency = rapid.IntRange(1, 3).Draw(rt, "limit")
		c.Paused = rapid.IntRange(0, 4).Draw(rt, "paused") == 0
		return nil
	})
	require.NoError(rt, err)
}

func (m *model) passSome(rt *rapid.T) {
	m.Pass(time.Duration(rapid.SampledFrom([]int{1, 500, 1000, 5000, 61_000}).Draw(rt, "ms")) * time.Millisecond)
}

// check requires that the keys are sound: each job in its lists, in the queue and, if it is in
// progress, marked in its lane.
func (m *model) check(rt *rapid.T) {
	ctx, raw := m.T.Context(), m.server.Raw
	places := map[string]int{}
	for _, members := range [][]string{
		raw.ZRange(ctx, m.queue.Scheduled(bus.QueueJobs), 0, -1).Val(),
		raw.LRange(ctx, m.queue.Instant(bus.QueueJobs), 0, -1).Val(),
	} {
		for _, entry := range members {
			places[entry]++
		}
	}
	for _, worker := range raw.SMembers(ctx, m.queue.PendingIndex(bus.QueueJobs)).Val() {
		for _, entry := range raw.LRange(ctx, m.queue.Pending(bus.QueueJobs, bus.WorkerID(worker)), 0, -1).Val() {
			places[entry]++
		}
	}
	m.requireExact(rt)
	open := map[string]bool{}
	inProgress := map[jobs.TypeName]int{}
	for _, id := range m.ids {
		job := m.Show(id)
		entry := wire.PackJob(bus.Job{Name: bus.JobJob, Args: []string{string(id)}})
		listed := raw.ZScore(ctx, m.Keys.OpenJobs(string(job.Type)), string(id)).Err() == nil
		score, err := raw.ZScore(ctx, m.queue.Lane(bus.JobJob, string(job.Type)), entry).Result()
		require.Equal(rt, !job.Status.IsArchived(), listed, "%s in the list of open jobs", job.Status)
		require.Equal(rt, job.Status == jobs.InProgress, err == nil && score < 0, "%s marked in its lane", job.Status)
		if job.Status.IsArchived() {
			require.Error(rt, err, "%s in its lane", job.Status)
			require.NoError(rt, raw.ZScore(ctx, m.Keys.ArchivedJobs(string(job.Type), string(job.Status)), string(id)).Err())
			continue
		}
		open[entry] = true
		require.GreaterOrEqual(rt, places[entry], 1, "%s is nowhere", job.Status)
		if job.Status == jobs.InProgress {
			inProgress[job.Type]++
		}
	}
	require.Len(rt, raw.SMembers(ctx, m.queue.JobsIndex(bus.QueueJobs)).Val(), len(open))
	for name, n := range inProgress {
		require.LessOrEqual(rt, n, 3, "of %s", name)
		require.EqualValues(rt, n, m.counts(name).InProgress)
	}
}

// drain lets services do all remaining jobs: none may wait for ever.
func (m *model) drain(rt *rapid.T) {
	ctx := m.T.Context()
	for _, name := range modelTypes {
		_, err := m.ChangeType(ctx, name, func(c *jobs.Type) error { c.Paused = false; return nil })
		require.NoError(rt, err)
	}
	m.dieSome(rt)
	open := func() int {
		list, _, err := m.Open(ctx, jobs.Filter{Limit: 100})
		require.NoError(rt, err)
		return len(list)
	}
	m.check(rt)
	for round := 0; open() > 0; round++ {
		require.Less(rt, round, 400, "jobs are stuck")
		m.Pass(time.Second)
		for {
			taken := m.acquire("zoe")
			if taken.Task == nil {
				break
			}
			m.rt = rt
			m.given(taken.Task.Payload.(*jobs.Run))
			_, err := m.Queue().Complete(ctx, taken.Task, completed, m.Now)
			require.NoError(rt, err)
		}
		list, _, err := m.Fetch(ctx, "mail", 100, m.Now)
		require.NoError(rt, err)
		for _, job := range list {
			require.NoError(rt, m.report("mail", job.ID, job.Attempts, jobs.Succeeded))
		}
	}
	m.check(rt)
	for _, name := range modelTypes {
		require.Zero(rt, m.server.Raw.ZCard(ctx, m.queue.Lane(bus.JobJob, string(name))).Val())
	}
	// With the last job that has it, all data goes.
	m.Now = m.Now.Add(2 * time.Hour)
	_, err := m.Purge(ctx, m.Now, always)
	require.NoError(rt, err)
	for _, pattern := range []string{m.Keys.Job("*"), m.Keys.JobData("*"), m.Keys.JobCopies("*")} {
		require.Empty(rt, m.server.Raw.Keys(ctx, pattern).Val(), pattern)
	}
}

func TestRandomStepsAgainstAModel(t *testing.T) {
	t.Parallel()
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		t.Parallel()
		s := newShop(t, server)
		rapid.Check(t, func(rt *rapid.T) {
			require.NoError(rt, server.Raw.FlushAll(t.Context()).Err())
			m := newModel(rt, s)
			m.checkAll = rapid.IntRange(0, 9).Draw(rt, "check all steps") == 0
			rt.Repeat(map[string]func(*rapid.T){
				"enqueue":       m.enqueue,
				"acquire":       m.acquireSome,
				"acquire more":  m.acquireSome,
				"complete":      m.complete,
				"complete late": m.completeLate,
				"die":           m.dieSome,
				"fetch":         m.fetchSome,
				"report":        m.reportSome,
				"extend":        m.extendSome,
				"cancel":        m.cancelSome,
				"replay":        m.replaySome,
				"change":        m.changeSome,
				"let time pass": m.passSome,
				"": func(rt *rapid.T) {
					if m.checkAll {
						m.check(rt)
					}
				},
			})
			m.drain(rt)
		})
	})
}
