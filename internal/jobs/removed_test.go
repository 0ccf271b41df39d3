package jobs_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/account"
	"routemaster/internal/jobs"
	"routemaster/internal/jobs/jobstest"
	"routemaster/internal/rdb/rdbtest"
)

// removals are all ways in which an archived job is removed. Each removes all that a type has.
var removals = map[string]func(s *shop, name jobs.TypeName) error{
	"retention": func(s *shop, _ jobs.TypeName) error {
		s.Now = s.Now.Add(time.Hour + time.Second)
		_, err := s.Purge(s.T.Context(), s.Now, always)
		return err
	},
	"no retention": func(s *shop, name jobs.TypeName) error {
		_, err := s.ChangeType(s.T.Context(), name, func(t *jobs.Type) error { t.Retention = 0; return nil })
		require.NoError(s.T, err)
		s.Now = s.Now.Add(21 * time.Second)
		_, err = s.Purge(s.T.Context(), s.Now, always)
		return err
	},
	"want of memory": func(s *shop, _ jobs.TypeName) error {
		for {
			if n, err := s.DropArchived(s.T.Context(), s.Now); n == 0 || err != nil {
				return err
			}
		}
	},
	"deletion of its type": func(s *shop, name jobs.TypeName) error {
		t, err := s.Type(s.T.Context(), name)
		require.NoError(s.T, err)
		require.NoError(s.T, s.DeleteType(s.T.Context(), name, false, s.Now, anybody))
		s.Now = s.Now.Add(time.Hour + time.Second)
		_, err = s.Purge(s.T.Context(), s.Now, always)
		require.NoError(s.T, err)
		return s.CreateType(s.T.Context(), t)
	},
}

// enqueue sends the request for a job of an id, perhaps not for the first time.
func (s *shop) enqueue(name jobs.TypeName, ids ...jobs.ID) error {
	list := make([]jobs.NewJob, len(ids))
	for i, id := range ids {
		list[i] = jobs.NewJob{ID: id, Data: []byte("1")}
	}
	_, err := s.Enqueue(s.T.Context(), name, list, "", s.Now)
	return err
}

// end ends a job in any state, and requires that the same request is refused while it is kept.
func (s *shop) end(name jobs.TypeName, id jobs.ID, status jobs.Status) {
	s.T.Helper()
	switch status {
	case jobs.Cancelled:
		_, err := s.Cancel(s.T.Context(), name, id, s.Now)
		require.NoError(s.T, err)
	case jobs.Expired:
		s.Pass(2 * time.Second)
		s.takeNothing()
	default:
		require.NoError(s.T, s.report(name, id, s.Show(id).Attempts, status))
	}
	require.Equal(s.T, status, s.Show(id).Status)
	require.ErrorIs(s.T, s.enqueue(name, id), jobs.ErrArchived)
}

// TestAJobIsNotTriedAgainOnceItIsRemoved has clients of a type of [jobs.AtMostOnce] send requests
// again until a day after the removal of the jobs, and clients of another type.
func TestAJobIsNotTriedAgainOnceItIsRemoved(t *testing.T) {
	t.Parallel()
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		for how, remove := range removals {
			s := newShop(t, server)
			s.Add("pay", jobstest.AtMostOnce, ownedBy("alice"), limit(9))
			s.Add("ship", limit(9))
			var ids []jobs.ID
			for _, status := range jobs.Archived {
				id := s.Put("pay", func(j *jobs.NewJob) {
					if status == jobs.Expired {
						j.ExpiresAt = s.Now.Add(time.Second)
					}
				})
				ids = append(ids, id)
				s.end("pay", id, status)
			}
			again := s.Put("ship")
			s.end("ship", again, jobs.Succeeded)
			require.NoError(t, remove(s, "pay"), how)
			if _, err := s.Job(t.Context(), "ship", again); err == nil {
				require.NoError(t, removals["want of memory"](s, "ship"))
			}
			s.requireExact(t)

			require.NoError(t, s.enqueue("ship", again), "%s: it may come more than once", how)
			for _, after := range []time.Duration{0, 12 * time.Hour, 12*time.Hour - time.Millisecond} {
				s.Now = s.Now.Add(after)
				for i, id := range ids {
					require.ErrorIs(t, s.enqueue("pay", id), jobs.ErrRemoved, "%s: %s", how, jobs.Archived[i])
				}
			}
			var bulk *jobs.BulkError
			require.ErrorAs(t, s.enqueue("pay", jobs.NewID(), jobs.NewID(), ids[1]), &bulk)
			assert.Equal(t, 2, bulk.Index)
			assert.Zero(t, s.counts("pay").Queued, "%s: nothing of the array was enqueued", how)

			s.Now = s.Now.Add(time.Millisecond)
			require.NoError(t, s.enqueue("pay", ids...), how)
			assert.EqualValues(t, len(ids), s.counts("pay").Queued, how)
			require.NoError(t, server.Raw.FlushAll(t.Context()).Err())
		}
	})
}

// TestARemovedJobOfATypeThatWasChanged covers the strategy at the job's time and the type's current
// one.
func TestARemovedJobOfATypeThatWasChanged(t *testing.T) {
	t.Parallel()
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		s := newShop(t, server)
		s.Add("pay", jobstest.AtMostOnce, limit(9))
		s.Add("bill", jobstest.AtMostOnce, limit(9))
		change := func(strategy jobs.Strategy, attempts int) {
			t.Helper()
			_, err := s.ChangeType(t.Context(), "pay", func(c *jobs.Type) error {
				c.Strategy, c.Attempts = strategy, attempts
				return nil
			})
			require.NoError(t, err)
		}
		once := s.Put("pay")
		change(jobs.AtLeastOnce, 3)
		often := s.Put("pay")
		for _, id := range []jobs.ID{once, often} {
			s.end("pay", id, jobs.Succeeded)
		}
		require.NoError(t, removals["want of memory"](s, "pay"))
		change(jobs.AtMostOnce, 1)
		require.ErrorIs(t, s.enqueue("pay", once), jobs.ErrRemoved)
		require.NoError(t, s.enqueue("pay", often), "it could have come more than once")
		require.NoError(t, s.enqueue("bill", once), "it is another type's")
		_, err := s.Cancel(t.Context(), "bill", once, s.Now)
		require.NoError(t, err)
		require.NoError(t, removals["want of memory"](s, "bill"))
		change(jobs.AtLeastOnce, 3)
		require.NoError(t, s.enqueue("pay", once), "it may come more than once by now")
		s.requireExact(t)
	})
}

// TestAReplayIsNotMadeAgainOnceItsCopyIsRemoved sends a replay again while the original is still
// there. Another replay is made all the same.
func TestAReplayIsNotMadeAgainOnceItsCopyIsRemoved(t *testing.T) {
	t.Parallel()
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		for _, strategy := range []func(*jobs.Type){jobstest.AtMostOnce, func(*jobs.Type) {}} {
			s, ctx := newShop(t, server), t.Context()
			s.Add("pay", strategy, limit(9))
			first, copied := s.Put("pay"), jobs.NewID()
			s.accept(s.take("ann", first))
			replay := func(id jobs.ID) error { _, err := s.Replay(ctx, "", first, id, s.Now); return err }
			for range 2 {
				require.NoError(t, replay(copied))
			}
			s.end("pay", copied, jobs.Succeeded)
			require.NoError(t, removals["want of memory"](s, "pay"))
			if s.Show(first).Attempts == 1 {
				require.ErrorIs(t, replay(copied), jobs.ErrRemoved)
				s.Now = s.Now.Add(24 * time.Hour)
			}
			require.NoError(t, replay(copied))
			require.NoError(t, replay(jobs.NewID()))
			s.requireExact(t)
			require.NoError(t, server.Raw.FlushAll(ctx).Err())
		}
	})
}

// TestARemovedJobIsInAnAccount of the type's owner, until Redis has removed its key.
func TestARemovedJobIsInAnAccount(t *testing.T) {
	t.Parallel()
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		s, ctx := newShop(t, server), t.Context()
		s.Add("pay", jobstest.AtMostOnce, ownedBy("alice"), limit(9))
		empty := s.kept("alice")
		ids := s.putMany("pay", 150) // more than one step removes
		for _, id := range ids {
			s.end("pay", id, jobs.Succeeded)
		}
		require.NoError(t, removals["retention"](s, "pay"))
		assert.Equal(t, empty+150*jobs.RemovedBytes, s.kept("alice"))
		s.requireExact(t)
		key := s.Keys.RemovedJob("pay", string(ids[0]))
		ttl := server.Raw.PTTL(ctx, key).Val()
		assert.LessOrEqual(t, ttl, 24*time.Hour)
		assert.Greater(t, ttl, 23*time.Hour)
		release := func(after time.Duration) {
			t.Helper()
			require.NoError(t, account.Release(ctx, s.account, s.Now.Add(after)))
		}
		release(24 * time.Hour)
		assert.Equal(t, empty+150*jobs.RemovedBytes, s.kept("alice"))
		release(28*time.Hour + time.Millisecond)
		assert.Equal(t, empty, s.kept("alice"))
		if !server.IsEmbedded() {
			assert.InDelta(t, server.Raw.MemoryUsage(ctx, key).Val(), jobs.RemovedBytes, 100, "besides it there is its expiry")
		}
	})
}
