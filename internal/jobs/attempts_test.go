package jobs_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/jobs"
	"routemaster/internal/rdb/rdbtest"
)

// TestAJobSaysWhyItFailed ends the attempts of a job in each way.
func TestAJobSaysWhyItFailed(t *testing.T) {
	t.Parallel()
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		t.Parallel()
		s, ctx := newShop(t, server), t.Context()
		s.Add("ship", ownedBy("alice"), func(c *jobs.Type) { c.Attempts = 5 })
		id := s.Put("ship")
		attempts := func() []jobs.Attempt {
			list, err := s.Attempts(ctx, "ship", id)
			require.NoError(t, err)
			return list
		}
		_, err := s.Attempts(ctx, "pay", id)
		require.ErrorIs(t, err, jobs.ErrUnknownJob)
		assert.Empty(t, attempts())
		assert.Zero(t, s.Show(id).StartedAt)

		began := s.Now
		task := s.take("ann", id)
		held := jobs.Attempt{Attempt: 5, BeganAt: began, Outcome: "in-progress", Public: true}
		assert.Equal(t, []jobs.Attempt{held}, attempts())
		s.Now = s.Now.Add(30 * time.Millisecond)
		s.complete(task, jobs.Outcome{Result: jobs.RunHeld, Status: 503, Excerpt: "later"}, s.Now.Add(time.Second))
		held.EndedAt, held.Outcome, held.Status, held.Excerpt, held.Public = s.Now, "held", 503, "later", false
		assert.Equal(t, []jobs.Attempt{held}, attempts())

		s.Pass(2 * time.Second)
		task = s.take("ann", id)
		failed := jobs.Attempt{
			Attempt: 5, BeganAt: s.Now, EndedAt: s.Now, Outcome: "failed", Status: 500, Error: "it answered 500",
			Excerpt: "a stack  trace", Public: true,
		}
		s.complete(task, jobs.Outcome{
			Result: jobs.RunFailed, Reason: failed.Error, Status: 500, Excerpt: "a stack\x1e\x1dtrace", Public: true, Standing: bus.Proven,
		}, s.Now.Add(time.Second))
		assert.Equal(t, []jobs.Attempt{failed, held}, attempts())
		assert.Equal(t, failed.Error, s.Show(id).Reason)

		s.Pass(2 * time.Second)
		task = s.take("ann", id)
		lapsed := jobs.Attempt{Attempt: 4, BeganAt: s.Now, Outcome: "failed", Error: "no report before the deadline", Public: true}
		s.lapse(task)
		lapsed.EndedAt = s.Now

		s.Pass(time.Hour)
		s.accept(s.take("ann", id))
		reported := jobs.Attempt{
			Attempt: 3, BeganAt: s.Now, EndedAt: s.Now.Add(time.Second), Outcome: "failed", Error: strings.Repeat("x", 1024), Public: true,
		}
		s.Now = s.Now.Add(time.Second)
		long := strings.Repeat("x", 5000)
		_, err = s.Report(ctx, "ship", id, jobs.Report{Attempt: 3, Status: jobs.Failed, Error: jobs.ReportedError(long)}, s.Now)
		require.NoError(t, err)
		assert.Equal(t, []jobs.Attempt{reported, lapsed, failed, held}, attempts())
		assert.Equal(t, long[:4093]+"…", s.Show(id).Reason)
		record := s.server.Raw.HMGet(ctx, s.Keys.Job(string(id)), "tries", "reason", "noted").Val()
		noted, err := s.server.Raw.HGet(ctx, s.Keys.Job(string(id)), "noted").Int()
		require.NoError(t, err)
		assert.Equal(t, len(record[0].(string))+len(record[1].(string)), noted)
		s.requireExact(t)

		s.Pass(time.Hour)
		s.accept(s.take("ann", id))
		succeeded := jobs.Attempt{Attempt: 2, BeganAt: s.Now, EndedAt: s.Now.Add(time.Second), Outcome: "succeeded", Public: true}
		s.Now = s.Now.Add(time.Second)
		require.NoError(t, s.report("ship", id, 2, jobs.Succeeded))
		assert.Equal(t, []jobs.Attempt{succeeded, reported, lapsed, failed, held}, attempts())
		job := s.Show(id)
		assert.Empty(t, job.Reason)
		assert.Equal(t, []time.Time{began, succeeded.BeganAt, succeeded.EndedAt}, []time.Time{job.EnqueuedAt, job.StartedAt, job.EndedAt})
		s.requireExact(t)
		s.Now = s.Now.Add(2 * time.Hour)
		_, err = s.Purge(ctx, s.Now, always)
		require.NoError(t, err)
		s.requireExact(t)
	})
}

// TestFewAttemptsAreKept tries a job more often than attempts are kept.
func TestFewAttemptsAreKept(t *testing.T) {
	t.Parallel()
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		t.Parallel()
		s := newShop(t, server)
		s.Add("ship", pulled, func(c *jobs.Type) { c.Attempts = 30 })
		id := s.Put("ship")
		for left := 30; left > 0; left-- {
			require.NoError(t, s.report("ship", id, left, jobs.Failed))
		}
		list, err := s.Attempts(t.Context(), "ship", id)
		require.NoError(t, err)
		require.Len(t, list, jobs.MaxAttemptsKept)
		assert.Equal(t, []int{1, 20}, []int{list[0].Attempt, list[19].Attempt})
		s.requireExact(t)
	})
}
