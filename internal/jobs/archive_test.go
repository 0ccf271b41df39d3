package jobs_test

import (
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/jobs"
	"routemaster/internal/maintenance"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/telemetry"
)

var _ maintenance.Spare = (*jobs.Archive)(nil)

func TestTheArchiveIsRemovedInTimeOrToMakeRoom(t *testing.T) {
	t.Parallel()
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		s, ctx := newTendedShop(t, server), t.Context()
		recorder, page := s.metrics(server)
		archive := jobs.NewArchive(s.Store, recorder, func() time.Time { return s.Now })
		require.NoError(t, archive.Purge(ctx), "there is no type")
		s.Add("ship")
		s.Add("brief", func(t *jobs.Type) { t.Retention = time.Minute })
		archived := func(name jobs.TypeName) jobs.ID {
			id := s.Put(name)
			_, err := s.Cancel(ctx, name, id, s.Now)
			require.NoError(t, err)
			return id
		}
		ship, brief, open := archived("ship"), archived("brief"), s.Put("brief")
		is := func(id jobs.ID) bool { _, err := s.Job(ctx, "", id); return err == nil }

		s.Now = s.Now.Add(time.Minute - time.Millisecond)
		require.NoError(t, archive.Purge(ctx))
		assert.True(t, is(brief))
		s.Now = s.Now.Add(2 * time.Millisecond)
		require.NoError(t, archive.Purge(ctx))
		assert.Equal(t, []bool{true, false, true}, []bool{is(ship), is(brief), is(open)})

		n, err := archive.DropOldest(ctx)
		require.NoError(t, err)
		assert.Equal(t, 1, n)
		archive.Dropped(s.log(), n)
		assert.Equal(t, []bool{false, true}, []bool{is(ship), is(open)}, "what has not ended is owed")
		n, err = archive.DropOldest(ctx)
		require.NoError(t, err)
		assert.Zero(t, n)
		assert.Contains(t, s.logged.String(), `level=WARN msg="dropped the oldest archived jobs: redis is about to be full" jobs=1`)
		assert.Contains(t, page(), "routemaster_archived_jobs_dropped_total 1\n")
	})
}

func TestCounts(t *testing.T) {
	t.Parallel()
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		s, ctx := newTendedShop(t, server), t.Context()
		s.Add("ship", func(t *jobs.Type) { t.Pull, t.Concurrency = true, 3 })
		s.Add("pay")
		first := s.Now
		for range 5 {
			s.Put("ship")
			s.Now = s.Now.Add(time.Second)
		}
		_, _, err := s.Fetch(ctx, "ship", 3, s.Now)
		require.NoError(t, err)
		s.Put("ship", func(job *jobs.NewJob) { job.RunAfter = s.Now.Add(time.Hour) })
		second := s.Now
		s.Put("pay") // one is instant, and one waits for it
		s.Put("pay")
		counts, err := jobs.CountsOf(s.All)(ctx)
		require.NoError(t, err)
		require.Len(t, counts, 2)
		assert.Equal(t, []jobs.TypeName{"pay", "ship"}, []jobs.TypeName{counts[0].Name, counts[1].Name})
		assert.Equal(t, jobs.Counts{Queued: 2, Waiting: 1, Oldest: second}, counts[0].Counts)
		assert.Equal(t, jobs.Counts{Queued: 3, Waiting: 2, InProgress: 3, Oldest: first.Add(3 * time.Second)}, counts[1].Counts)
	})
}

func TestAttemptsOfFetchedJobsAreCountedFromZero(t *testing.T) {
	t.Parallel()
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		s, ctx := newTendedShop(t, server), t.Context()
		recorder, page := s.metrics(server)
		show := jobs.SeriesOf(s.All, recorder)
		lost := func() string { return regexp.MustCompile(`routemaster_job_attempts_lost_total\{.*`).FindString(page()) }
		require.NoError(t, show(ctx))
		assert.Empty(t, lost())
		s.Add("ship", func(t *jobs.Type) { t.Pull = true })
		require.NoError(t, show(ctx))
		assert.Equal(t, `routemaster_job_attempts_lost_total{job_type="ship"} 0`, lost())
		recorder.Count(telemetry.LostJobAttempts, 1, "ship")
		require.NoError(t, show(ctx))
		assert.Equal(t, `routemaster_job_attempts_lost_total{job_type="ship"} 1`, lost())
	})
}
