package housekeeping_test

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"routemaster/internal/jobs"
	"routemaster/internal/jobs/housekeeping"
	"routemaster/internal/jobs/jobstore"
	"routemaster/internal/rdb/rdbtest"
)

func TestMain(m *testing.M) { rdbtest.Main(m) }

// shop is the jobs of a test, with a clock and what was logged.
type shop struct {
	*jobstore.Store
	t      *testing.T
	server *rdbtest.Server
	keys   jobstore.Keys
	now    time.Time
	logged rdbtest.Buffer
}

func newShop(t *testing.T, server *rdbtest.Server) *shop {
	const namespace = "w:"
	return &shop{
		Store: jobstore.New(server.Open(t).Partition(namespace)), t: t, server: server, keys: jobstore.Keys{Namespace: namespace},
		now: clock(t, "10:00:30"),
	}
}

// clock is a time of the day of these tests, as 10:00:30.
func clock(t *testing.T, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.DateTime, "2026-11-22 "+text)
	require.NoError(t, err)
	return at
}

func (s *shop) log() *slog.Logger { return slog.New(slog.NewTextHandler(&s.logged, nil)) }

func (s *shop) scheduler() *housekeeping.Scheduler {
	return housekeeping.NewScheduler(s.Store, s.log(), func() time.Time { return s.now })
}

// add makes a type, with a change.
func (s *shop) add(name jobs.TypeName, change func(*jobs.Type)) {
	s.t.Helper()
	t := jobs.Type{
		Name: name, Strategy: jobs.AtLeastOnce, Attempts: 3, Concurrency: 2, Timeout: time.Minute, Retention: time.Hour,
		CreatedAt: s.now, UpdatedAt: s.now,
	}
	change(&t)
	require.NoError(s.t, s.CreateType(s.t.Context(), t))
}

func scheduled(expression string) func(*jobs.Type) {
	return func(t *jobs.Type) {
		t.Schedule, t.Timezone, t.ScheduleData = expression, "Europe/Berlin", []byte(`{"a":1.0}`)
	}
}

// put enqueues a job, to be taken after a wait.
func (s *shop) put(name jobs.TypeName, wait time.Duration) jobs.ID {
	s.t.Helper()
	id := jobs.NewID()
	_, err := s.Enqueue(s.t.Context(), name, []jobs.NewJob{{ID: id, Data: []byte("1"), RunAfter: s.now.Add(wait)}}, "", s.now)
	require.NoError(s.t, err)
	return id
}

// enqueued are the times for which a type's schedule has enqueued a job, of those that are asked
// for.
func (s *shop) enqueued(name jobs.TypeName, among ...string) string {
	s.t.Helper()
	var times []string
	for _, text := range among {
		job, err := s.Job(s.t.Context(), name, jobs.ScheduledID(name, clock(s.t, text).UnixMilli()))
		if err == nil {
			require.Equal(s.t, `{"a":1.0}`, string(job.Data))
			times = append(times, text)
		}
	}
	list, _, err := s.Open(s.t.Context(), jobstore.Filter{Type: name, Limit: 100})
	require.NoError(s.t, err)
	require.Len(s.t, list, len(times), "others were enqueued")
	return strings.Join(times, " ")
}
