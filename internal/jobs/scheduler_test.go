package jobs_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/jobs"
	"routemaster/internal/rdb/rdbtest"
)

func TestEachTimeIsEnqueuedOnceOverAllWorkers(t *testing.T) {
	t.Parallel()
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		s := newTendedShop(t, server)
		s.Add("every", scheduled("*/2 * * * *"))
		s.Add("late", scheduled("5 11 * * *")) // in Berlin
		s.Add("none")
		workers := []*jobs.Scheduler{s.scheduler(), s.scheduler()}
		for ; s.Now.Before(clock(t, "10:05:30")); s.Now = s.Now.Add(500 * time.Millisecond) {
			for _, w := range workers {
				require.NoError(t, w.Tick(t.Context()))
			}
		}
		assert.Equal(t, "10:02:00 10:04:00", s.enqueued("every", "10:00:00", "10:02:00", "10:04:00"))
		assert.Equal(t, "10:05:00", s.enqueued("late", "10:05:00"))
		job, err := s.Job(t.Context(), "", jobs.ScheduledID("every", clock(t, "10:02:00").UnixMilli()))
		require.NoError(t, err)
		assert.Equal(t, clock(t, "10:02:00"), job.RunAfter, "it was enqueued as the minute began")
		assert.Empty(t, s.logged.String())
	})
}

// TestAStopIsNoFailureOfASchedule stops a worker as it is about to enqueue a job.
func TestAStopIsNoFailureOfASchedule(t *testing.T) {
	t.Parallel()
	server := rdbtest.Embedded(t)
	s := newTendedShop(t, server)
	s.Add("every", scheduled("*/2 * * * *"))
	s.Now = clock(t, "10:02:00")
	ctx, stop := context.WithCancel(t.Context())
	server.OnCommand(func(name string, arguments ...string) {
		if name == "HMGET" && arguments[0] == s.Keys.JobType("every") { // it is the last that is read
			stop()
		}
	})
	require.ErrorIs(t, s.scheduler().Tick(ctx), context.Canceled)
	assert.Empty(t, s.logged.String())
	require.NoError(t, s.scheduler().Tick(t.Context()))
	assert.Equal(t, "10:02:00", s.enqueued("every", "10:02:00"))
}

// TestClocksAreSet ticks when the clock shows one time after another.
func TestClocksAreSet(t *testing.T) {
	t.Parallel()
	server := rdbtest.Embedded(t)
	for name, c := range map[string]struct{ ticks, want string }{
		"nothing was missed":            {"10:00:30 10:01:00 10:01:02 10:02:00", "10:01:00 10:02:00"},
		"forward by a minute":           {"10:00:30 10:00:59 10:02:00 10:03:00", "10:01:00 10:02:00 10:03:00"},
		"forward within a minute":       {"10:00:30 10:00:31 10:01:31", "10:01:00"},
		"back by a minute":              {"10:00:30 10:01:00 10:00:00 10:00:59 10:01:00 10:01:02 10:02:00", "10:01:00 10:02:00"},
		"back before the first time":    {"10:00:30 10:00:10 10:00:59 10:01:01", "10:01:00"},
		"a worker that was held up":     {"10:00:30 10:02:20", "10:01:00 10:02:00"},
		"no worker ran":                 {"10:05:20", "10:05:00"},
		"a worker that was stopped":     {"10:00:30 10:01:00 10:05:20", "10:01:00 10:05:00"},
		"a step that lasts for minutes": {"10:00:30 10:05:00 10:01:00 10:02:00 10:05:00 10:06:00", "10:02:00 10:05:00 10:06:00"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newTendedShop(t, server)
			server.Raw.FlushAll(t.Context())
			s.Add("every", scheduled("* * * * *"))
			scheduler := s.scheduler()
			for text := range strings.FieldsSeq(c.ticks) {
				s.Now = clock(t, text)
				require.NoError(t, scheduler.Tick(t.Context()))
			}
			all := []string{"10:00:00", "10:01:00", "10:02:00", "10:03:00", "10:04:00", "10:05:00", "10:06:00"}
			assert.Equal(t, c.want, s.enqueued("every", all...))
		})
	}
}

// TestAWorkerWhoseClockWasAhead by an hour has marked a time in the future. The schedule goes on
// all the same, each time once.
func TestAWorkerWhoseClockWasAhead(t *testing.T) {
	t.Parallel()
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		s := newTendedShop(t, server)
		s.Add("every", scheduled("* * * * *"))
		s.Now = clock(t, "11:00:30")
		require.NoError(t, s.scheduler().Tick(t.Context()))
		require.Equal(t, "11:00:00", s.enqueued("every", "11:00:00"))
		workers := []*jobs.Scheduler{s.scheduler(), s.scheduler()}
		for s.Now = clock(t, "10:00:30"); s.Now.Before(clock(t, "10:03:30")); s.Now = s.Now.Add(500 * time.Millisecond) {
			for _, w := range workers {
				require.NoError(t, w.Tick(t.Context()))
			}
		}
		assert.Equal(t, "10:01:00 10:02:00 10:03:00 11:00:00", s.enqueued("every", "10:01:00", "10:02:00", "10:03:00", "11:00:00"))
	})
}

func TestAScheduleThatWasJustSetIsSeen(t *testing.T) {
	t.Parallel()
	s := newTendedShop(t, rdbtest.Embedded(t))
	scheduler := s.scheduler()
	s.Now = clock(t, "10:01:00")
	require.NoError(t, scheduler.Tick(t.Context()))
	s.Now = clock(t, "10:00:59.9") // by another clock
	s.Add("every", scheduled("* * * * *"))
	s.Now = clock(t, "10:01:01.9")
	require.NoError(t, scheduler.Tick(t.Context()))
	assert.Empty(t, s.enqueued("every", "10:01:00"))
	s.Now = clock(t, "10:01:02.1")
	require.NoError(t, scheduler.Tick(t.Context()))
	assert.Equal(t, "10:01:00", s.enqueued("every", "10:01:00"))
}

func TestABrokenScheduleHarmsNoOther(t *testing.T) {
	t.Parallel()
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		s, ctx := newTendedShop(t, server), t.Context()
		for _, name := range []jobs.TypeName{"bad", "damaged", "every"} {
			s.Add(name, scheduled("* * * * *"))
		}
		server.Raw.HSet(ctx, s.Keys.JobType("bad"), "schedule", "every minute")
		server.Raw.Set(ctx, s.Keys.OpenJobs("damaged"), "something else wrote here", 0)
		scheduler := s.scheduler()
		s.Now = clock(t, "10:01:00")
		require.NoError(t, scheduler.Tick(ctx))
		assert.Equal(t, "10:01:00", s.enqueued("every", "10:01:00"))
		assert.Contains(t, s.logged.String(), `msg="could not enqueue the job of a schedule" job_type=bad error="a schedule has five fields`)
		assert.Contains(t, s.logged.String(), "job_type=damaged")
	})
}

// TestWithoutSchedulesRedisIsHardlyAsked also stops Redis.
func TestWithoutSchedulesRedisIsHardlyAsked(t *testing.T) {
	t.Parallel()
	server := rdbtest.Real(t)
	s, ctx := newTendedShop(t, server), t.Context()
	scheduler := s.scheduler()
	for end := s.Now.Add(5 * time.Minute); s.Now.Before(end); s.Now = s.Now.Add(jobs.SchedulerInterval) {
		require.NoError(t, scheduler.Tick(ctx))
	}
	stats := server.Raw.Info(ctx, "commandstats").Val()
	assert.Contains(t, stats, "cmdstat_hgetall:calls=11,", "at once, and twice a minute")

	s.Add("every", scheduled("*/6 * * * *"))
	server.Kill(t)
	s.Now = clock(t, "10:06:00")
	require.ErrorIs(t, scheduler.Tick(ctx), bus.ErrUnavailable)
	s.Now = clock(t, "10:06:01")
	require.ErrorIs(t, scheduler.Tick(ctx), bus.ErrUnavailable, "each tick tries again")
}
