package jobs_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/jobs"
	"routemaster/internal/rdb/rdbtest"
)

// data returns the ids of the data that there is.
func (s *shop) data() (ids []string) {
	s.T.Helper()
	for _, key := range s.server.Raw.Keys(s.T.Context(), s.Keys.JobData("*")).Val() {
		ids = append(ids, key[len(s.Keys.JobData("")):])
	}
	return ids
}

func (s *shop) sharing(id string) int64 {
	s.T.Helper()
	return s.server.Raw.SCard(s.T.Context(), s.Keys.JobCopies(string(jobs.ID(id)))).Val()
}

func (s *shop) replay(id jobs.ID) jobs.ID {
	s.T.Helper()
	again, err := s.Replay(s.T.Context(), "ship", id, jobs.NewID(), s.Now)
	require.NoError(s.T, err)
	require.Equal(s.T, `{"b":1.50,"a":[]}`, string(again.Data))
	return again.ID
}

func (s *shop) succeed(id jobs.ID) {
	s.T.Helper()
	s.accept(s.take("ann", id))
	require.NoError(s.T, s.report("ship", id, 3, jobs.Succeeded))
}

// purge removes jobs that have been archived for an hour.
func (s *shop) purge() {
	s.T.Helper()
	s.Now = s.Now.Add(time.Hour + time.Minute)
	_, err := s.Purge(s.T.Context(), s.Now, always)
	require.NoError(s.T, err)
}

// TestReplaysShareTheDataOfTheirJob, which stays until the last of them has gone.
func TestReplaysShareTheDataOfTheirJob(t *testing.T) {
	t.Parallel()
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		s, ctx := newShop(t, server), t.Context()
		s.Add("ship", limit(100))
		first := s.Put("ship")
		s.succeed(first)
		copies := []jobs.ID{s.replay(first), s.replay(first), s.replay(first)}
		assert.Equal(t, []string{string(first)}, s.data())
		s.succeed(copies[0])
		again := s.replay(copies[0])
		assert.Equal(t, []string{string(first)}, s.data(), "of the copy of a copy too")
		assert.EqualValues(t, 5, s.sharing(string(first)))
		for _, id := range append(copies, again) {
			assert.Equal(t, `{"b":1.50,"a":[]}`, string(s.Show(id).Data))
		}

		s.purge()
		assert.EqualValues(t, 3, s.sharing(string(first)), "two have gone, the first among them")
		assert.Equal(t, []string{string(first)}, s.data())
		// Another job of the same id must not change the shared data.
		_, err := s.Enqueue(ctx, "ship", []jobs.NewJob{{ID: first, Data: []byte("7")}}, "", s.Now)
		require.NoError(t, err)
		assert.Equal(t, "7", string(s.Show(first).Data))
		assert.Len(t, s.data(), 2)
		task := s.take("ann", copies[1])
		assert.Equal(t, `{"b":1.50,"a":[]}`, string(task.Payload.(*jobs.Run).Data))
		s.complete(task, jobs.Outcome{Result: jobs.RunSucceeded}, time.Time{})
		for _, id := range []jobs.ID{copies[2], again, first} {
			_, err := s.Cancel(ctx, "ship", id, s.Now)
			require.NoError(t, err)
		}
		for range 5 {
			_, err = s.DropArchived(ctx, s.Now)
			require.NoError(t, err)
		}
		assert.Empty(t, s.data())
		assert.Zero(t, s.sharing(string(first)))
	})
}

// TestDataGoesWithItsType has the type of jobs that share data deleted.
func TestDataGoesWithItsType(t *testing.T) {
	t.Parallel()
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		s, ctx := newShop(t, server), t.Context()
		s.Add("ship", limit(100))
		first := s.Put("ship")
		s.succeed(first)
		s.accept(s.take("ann", s.replay(first)))
		s.replay(first)
		require.NoError(t, s.DeleteType(ctx, "ship", true, s.Now, anybody))
		assert.Len(t, s.data(), 1)
		s.purge()
		assert.Empty(t, s.data())
		assert.Empty(t, server.Raw.Keys(ctx, s.Keys.JobCopies("*")).Val())
	})
}

// TestAScheduleSharesItsData among its jobs, until it is changed, and skips its times while too
// many of them have not ended.
func TestAScheduleSharesItsData(t *testing.T) {
	t.Parallel()
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		s, ctx := newShop(t, server), t.Context()
		s.Add("ship", limit(100), func(c *jobs.Type) {
			c.Schedule, c.ScheduleData, c.Pull = "* * * * *", []byte(`{"b":1.50,"a":[]}`), true
		})
		var ids []jobs.ID
		enqueue := func(want jobs.Turn) {
			t.Helper()
			schedules, err := s.Schedules(ctx)
			require.NoError(t, err)
			s.Now = s.Now.Add(time.Minute)
			got, err := s.EnqueueScheduled(ctx, schedules[0], s.Now, s.Now)
			require.NoError(t, err)
			require.Equal(t, want, got)
			if want == jobs.Enqueued {
				ids = append(ids, jobs.ScheduledID("ship", s.Now.UnixMilli()))
			}
		}
		skippedAt := func() time.Time {
			t.Helper()
			found, err := s.Type(ctx, "ship")
			require.NoError(t, err)
			return found.SkippedAt
		}
		for range jobs.MaxScheduledOpen {
			enqueue(jobs.Enqueued)
		}
		assert.Len(t, s.data(), 1)
		assert.Equal(t, `{"b":1.50,"a":[]}`, string(s.Show(ids[99]).Data))
		enqueue(jobs.Skipped)
		enqueue(jobs.Skipped)
		assert.Equal(t, s.Now, skippedAt())
		assert.EqualValues(t, jobs.MaxScheduledOpen, s.counts("ship").Queued)
		for _, id := range ids[:2] {
			_, err := s.Cancel(ctx, "ship", id, s.Now)
			require.NoError(t, err)
		}
		enqueue(jobs.Enqueued)
		assert.Zero(t, skippedAt())
		assert.Len(t, s.data(), 1)

		_, err := s.ChangeType(ctx, "ship", func(c *jobs.Type) error { c.ScheduleData = []byte("2"); return nil })
		require.NoError(t, err)
		enqueue(jobs.Enqueued)
		assert.Equal(t, "2", string(s.Show(ids[101]).Data))
		assert.Equal(t, `{"b":1.50,"a":[]}`, string(s.Show(ids[100]).Data))
		enqueue(jobs.Skipped)
		assert.Len(t, s.data(), 2)
		require.NoError(t, s.DeleteType(ctx, "ship", true, s.Now, anybody))
		s.purge()
		assert.Empty(t, s.data())
	})
}
