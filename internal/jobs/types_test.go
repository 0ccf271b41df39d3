package jobs_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/jobs"
	"routemaster/internal/jobs/jobstest"
	"routemaster/internal/rdb/rdbtest"
)

func anybody(jobs.Type) error { return nil }

func TestTypes(t *testing.T) {
	t.Parallel()
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		s, ctx := newShop(t, server), t.Context()
		types, err := s.Types(ctx)
		require.NoError(t, err)
		assert.Empty(t, types)
		full := jobs.Type{
			Name: "ship", Strategy: jobs.AtLeastOnce, Attempts: 7, Concurrency: 300, Pull: true, Timeout: 90 * time.Minute,
			Retention: 2 * time.Hour, Paused: true, Schedule: "5 4 * * *", Timezone: "Europe/Berlin", ScheduleData: []byte(`[1.0]`),
			Clients: bus.Clients{"shop", "a:b_c-1"}, Owner: "alice--1", CreatedAt: start, UpdatedAt: start,
		}
		require.NoError(t, s.CreateType(ctx, full))
		require.ErrorIs(t, s.CreateType(ctx, full), jobs.ErrTypeExists)
		s.Now = start.Add(time.Second)
		s.Add("pay", jobstest.AtMostOnce)
		types, err = s.Types(ctx)
		require.NoError(t, err)
		require.Len(t, types, 2)
		assert.Equal(t, jobs.TypeName("pay"), types[0].Name, "newest first")
		listed := full
		listed.ScheduleData = nil
		assert.Equal(t, listed, types[1], "without what may be large")

		refused := errors.New("not that")
		_, err = s.ChangeType(ctx, "ship", func(*jobs.Type) error { return refused })
		require.ErrorIs(t, err, refused)
		_, err = s.ChangeType(ctx, "other", func(*jobs.Type) error { return nil })
		require.ErrorIs(t, err, jobs.ErrUnknownType)
		tries := 0
		changed, err := s.ChangeType(ctx, "ship", func(c *jobs.Type) error {
			if tries++; tries == 1 { // another request changes it meanwhile
				_, err := s.ChangeType(ctx, "ship", func(c *jobs.Type) error { c.Attempts = 9; return nil })
				require.NoError(t, err)
			}
			c.Paused, c.Pull, c.URL, c.Clients = false, false, "https://shop.example/", nil
			return nil
		})
		require.NoError(t, err)
		assert.Equal(t, 2, tries)
		full.Attempts, full.Paused, full.Pull, full.URL, full.Clients = 9, false, false, "https://shop.example/", nil
		assert.Equal(t, full, changed)
		found, err := s.Type(ctx, "ship")
		require.NoError(t, err)
		assert.Equal(t, full, found)
	})
}

func TestALimitCanBeChangedAtAnyTime(t *testing.T) {
	t.Parallel()
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		s, ctx := newShop(t, server), t.Context()
		change := func(f func(*jobs.Type)) {
			t.Helper()
			_, err := s.ChangeType(ctx, "ship", func(c *jobs.Type) error { f(c); return nil })
			require.NoError(t, err)
		}
		s.Add("ship")
		var ids []jobs.ID
		for range 6 {
			ids = append(ids, s.Put("ship"))
		}
		s.accept(s.take("ann", ids[0]))
		assert.Empty(t, s.takeNothing())
		change(limit(3))
		s.accept(s.take("ann", ids[1]))
		s.accept(s.take("ann", ids[2]))
		assert.Empty(t, s.takeNothing())
		change(limit(2))
		require.NoError(t, s.report("ship", ids[0], 3, jobs.Succeeded))
		assert.Empty(t, s.takeNothing())
		require.NoError(t, s.report("ship", ids[1], 3, jobs.Succeeded))
		s.accept(s.take("ann", ids[3]))
		change(func(c *jobs.Type) { c.Paused = true })
		require.NoError(t, s.report("ship", ids[2], 3, jobs.Succeeded))
		require.NoError(t, s.report("ship", ids[3], 3, jobs.Succeeded))
		assert.Empty(t, s.takeNothing())
		assert.Equal(t, int64(2), s.counts("ship").Waiting)
		change(func(c *jobs.Type) { c.Paused = false })
		s.accept(s.take("ann", ids[4]))
		s.accept(s.take("ann", ids[5]))
		s.requireInFlight("ship", 2)
	})
}

func TestATypeThatIsDeletedTakesItsJobsWithIt(t *testing.T) {
	t.Parallel()
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		s, ctx := newShop(t, server), t.Context()
		s.Add("ship", limit(2))
		require.ErrorIs(t, s.DeleteType(ctx, "other", true, s.Now, anybody), jobs.ErrUnknownType)
		done, taken, accepted, queued := s.Put("ship"), s.Put("ship"), s.Put("ship"), s.Put("ship")
		require.NoError(t, s.report("ship", done, 3, jobs.Succeeded))
		task := s.take("ann", taken)
		s.accept(s.take("ben", accepted))
		require.ErrorIs(t, s.DeleteType(ctx, "ship", true, s.Now, func(jobs.Type) error { return jobs.ErrNotOwner }), jobs.ErrNotOwner)
		require.ErrorIs(t, s.DeleteType(ctx, "ship", false, s.Now, anybody), jobs.ErrTypeHasJobs)
		require.NoError(t, s.DeleteType(ctx, "ship", true, s.Now, anybody))
		for _, id := range []jobs.ID{taken, accepted, queued} {
			assert.Equal(t, jobs.Cancelled, s.Show(id).Status)
			require.ErrorIs(t, s.report("ship", id, 3, jobs.Succeeded), jobs.ErrCancelled)
		}
		assert.Equal(t, jobs.Succeeded, s.Show(done).Status)
		owned, err := s.Queue().Complete(ctx, task, completed, s.Now)
		require.NoError(t, err)
		assert.False(t, owned)
		_, err = s.Type(ctx, "ship")
		require.ErrorIs(t, err, jobs.ErrUnknownType)
		_, err = s.Enqueue(ctx, "ship", []jobs.NewJob{{ID: jobs.NewID(), Data: []byte("1")}}, "", s.Now)
		require.ErrorIs(t, err, jobs.ErrUnknownType)
		s.requireIdle()

		s.Add("ship") // again, beside the archive of the one before
		require.NoError(t, s.DeleteType(ctx, "ship", false, s.Now, anybody))
		removed, err := s.Purge(ctx, s.Now.Add(time.Hour+time.Second), always)
		require.NoError(t, err)
		assert.Equal(t, 4, removed)
		keys, err := server.Raw.Keys(ctx, "w:work:*").Result()
		require.NoError(t, err)
		assert.Empty(t, keys)
	})
}

func always() bool { return true }

func TestTheArchiveIsKeptForItsTime(t *testing.T) {
	t.Parallel()
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		s, ctx := newShop(t, server), t.Context()
		s.Add("ship", limit(9))
		first := s.Put("ship")
		require.NoError(t, s.report("ship", first, 3, jobs.Succeeded))
		s.Pass(time.Minute)
		second := s.Put("ship")
		require.NoError(t, s.report("ship", second, 3, jobs.Succeeded))
		removed, err := s.Purge(ctx, start.Add(time.Hour-time.Millisecond), always)
		require.NoError(t, err)
		assert.Zero(t, removed)
		removed, err = s.Purge(ctx, start.Add(time.Hour+time.Second), always)
		require.NoError(t, err)
		assert.Equal(t, 1, removed)
		_, err = s.Job(ctx, "", first)
		require.ErrorIs(t, err, jobs.ErrUnknownJob)
		s.Show(second)
		for _, want := range []int{1, 0} {
			n, err := s.DropArchived(ctx, s.Now)
			require.NoError(t, err)
			assert.Equal(t, want, n)
		}
	})
}

// TestAJobThatIsNotRetainedIsArchivedFirst has a service send its report again, and a client look.
func TestAJobThatIsNotRetainedIsArchivedFirst(t *testing.T) {
	t.Parallel()
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		s, ctx := newShop(t, server), t.Context()
		s.Add("ship", func(c *jobs.Type) { c.Retention = 0 })
		id := s.Put("ship")
		require.NoError(t, s.report("ship", id, 3, jobs.Succeeded))
		s.Now = s.Now.Add(19 * time.Second)
		removed, err := s.Purge(ctx, s.Now, always)
		require.NoError(t, err)
		assert.Zero(t, removed)
		require.NoError(t, s.report("ship", id, 3, jobs.Succeeded), "once more")
		require.ErrorIs(t, s.report("ship", id, 3, jobs.Failed), jobs.ErrReported)
		assert.Equal(t, jobs.Succeeded, s.Show(id).Status)
		removed, err = s.Purge(ctx, s.Now.Add(2*time.Second), always)
		require.NoError(t, err)
		assert.Equal(t, 1, removed)
		require.ErrorIs(t, s.report("ship", id, 3, jobs.Succeeded), jobs.ErrUnknownJob)
	})
}

func TestSchedules(t *testing.T) {
	t.Parallel()
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		s, ctx := newShop(t, server), t.Context()
		s.Add("ship")
		schedules, err := s.Schedules(ctx)
		require.NoError(t, err)
		assert.Empty(t, schedules)
		s.Add("report", func(c *jobs.Type) { c.Schedule, c.ScheduleData = "* * * * *", []byte(`{"a":1.0}`) })
		schedules, err = s.Schedules(ctx)
		require.NoError(t, err)
		require.Len(t, schedules, 1)
		assert.Equal(t, start, schedules[0].Since)
		at := start.Add(40 * time.Second)
		for _, want := range []jobs.Turn{jobs.Enqueued, jobs.Elsewhere} {
			done, err := s.EnqueueScheduled(ctx, schedules[0], at, at)
			require.NoError(t, err)
			assert.Equal(t, want, done)
		}
		job := s.Show(jobs.ScheduledID("report", at.UnixMilli()))
		assert.Equal(t, `{"a":1.0}`, string(job.Data))
		schedules, err = s.Schedules(ctx)
		require.NoError(t, err)
		assert.Equal(t, at, schedules[0].Since)

		s.Add("plain", func(c *jobs.Type) { c.Schedule = "* * * * *" })
		done, err := s.EnqueueScheduled(ctx, jobs.Schedule{Type: jobs.Type{Name: "plain"}, Since: start}, at, at)
		require.NoError(t, err)
		assert.Equal(t, jobs.Enqueued, done)
		assert.Equal(t, "null", string(s.Show(jobs.ScheduledID("plain", at.UnixMilli())).Data), "without any data")
		require.NoError(t, s.DeleteType(ctx, "plain", true, at, anybody))

		change := func(schedule string) time.Time {
			t.Helper()
			_, err = s.ChangeType(ctx, "report", func(c *jobs.Type) error {
				c.Schedule, c.UpdatedAt = schedule, at.Add(time.Second)
				return nil
			})
			require.NoError(t, err)
			schedules, err = s.Schedules(ctx)
			require.NoError(t, err)
			if len(schedules) == 0 {
				return time.Time{}
			}
			return schedules[0].Since
		}
		assert.Equal(t, at, change("* * * * *"), "the same one")
		assert.Equal(t, at.Add(time.Second), change("5 * * * *"), "another counts from now")
		assert.Zero(t, change(""))
	})
}

// TestADeletionThatHasNotEnded has a type with too many jobs to be cancelled at once.
func TestADeletionThatHasNotEnded(t *testing.T) {
	t.Parallel()
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		s, ctx := newShop(t, server), t.Context()
		s.Add("ship", limit(2))
		taken, queued := s.Put("ship"), s.Put("ship")
		s.accept(s.take("ann", taken))
		require.NoError(t, server.Raw.HSet(ctx, s.Keys.JobType("ship"), "deleted", "1").Err())
		require.ErrorIs(t, s.report("ship", taken, 3, jobs.Succeeded), jobs.ErrCancelled)
		require.ErrorIs(t, s.report("ship", queued, 3, jobs.Failed), jobs.ErrCancelled)
		require.ErrorIs(t, s.CreateType(ctx, jobs.Type{Name: "ship", Strategy: jobs.AtLeastOnce}), jobs.ErrTypeExists)
		_, err := s.Purge(ctx, s.Now, always)
		require.NoError(t, err)
		for _, id := range []jobs.ID{taken, queued} {
			assert.Equal(t, jobs.Cancelled, s.Show(id).Status)
		}
	})
}
