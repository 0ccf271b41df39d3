package jobs_test

import (
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"routemaster/internal/jobs"
	"routemaster/internal/jobs/jobstest"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store"
	"routemaster/internal/telemetry"
)

func TestMain(m *testing.M) { rdbtest.Main(m) }

// tendedShop is the jobs of a test, and the log.
type tendedShop struct {
	*jobstest.Shop
	logged rdbtest.Buffer
}

func newTendedShop(t *testing.T, server *rdbtest.Server) *tendedShop {
	return &tendedShop{Shop: jobstest.NewShop(t, server, clock(t, "10:00:30"))}
}

// clock is a time of the day of these tests, as 10:00:30.
func clock(t testing.TB, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.DateTime, "2026-11-22 "+text)
	require.NoError(t, err)
	return at
}

func (s *tendedShop) log() *slog.Logger { return slog.New(slog.NewTextHandler(&s.logged, nil)) }

func (s *tendedShop) scheduler() *jobs.Scheduler {
	return jobs.NewScheduler(s.Store, s.log(), func() time.Time { return s.Now })
}

// metrics returns a recorder, and the metrics page of its registry.
func (s *tendedShop) metrics(server *rdbtest.Server) (recorder *telemetry.Recorder, page func() string) {
	registry := telemetry.NewRegistry()
	recorder = telemetry.NewRecorder(registry, store.New(server.Open(s.T).Partition(""), store.Options{}), s.log())
	return recorder, func() string {
		w := httptest.NewRecorder()
		registry.Handler().ServeHTTP(w, httptest.NewRequestWithContext(s.T.Context(), "GET", "/metrics", nil))
		return w.Body.String()
	}
}

func scheduled(expression string) func(*jobs.Type) {
	return func(t *jobs.Type) {
		t.Schedule, t.Timezone, t.ScheduleData = expression, "Europe/Berlin", []byte(`{"a":1.0}`)
	}
}

// enqueued returns the given times for which a type's schedule has enqueued a job.
func (s *tendedShop) enqueued(name jobs.TypeName, among ...string) string {
	s.T.Helper()
	var times []string
	for _, text := range among {
		job, err := s.Job(s.T.Context(), name, jobs.ScheduledID(name, clock(s.T, text).UnixMilli()))
		if err == nil {
			require.Equal(s.T, `{"a":1.0}`, string(job.Data))
			times = append(times, text)
		}
	}
	list, _, err := s.Open(s.T.Context(), jobs.Filter{Type: name, Limit: 100})
	require.NoError(s.T, err)
	require.Len(s.T, list, len(times), "others were enqueued")
	return strings.Join(times, " ")
}
