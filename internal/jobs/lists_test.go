package jobs_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/jobs"
	"routemaster/internal/rdb/rdbtest"
)

// pages reads a list to its end, a page at a time.
func (s *shop) pages(archived bool, f jobs.Filter) (ids []jobs.ID) {
	s.T.Helper()
	for range 50 {
		read := s.Open
		if archived {
			read = s.Archived
		}
		page, next, err := read(s.T.Context(), f)
		require.NoError(s.T, err)
		require.LessOrEqual(s.T, len(page), f.Limit)
		for _, job := range page {
			ids = append(ids, job.ID)
		}
		if f.Before = next; next == "" {
			return ids
		}
		require.Len(s.T, page, f.Limit)
	}
	s.T.Fatal("the list has no end")
	return nil
}

func TestLists(t *testing.T) {
	t.Parallel()
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		s := newShop(t, server)
		assert.Empty(t, s.pages(false, jobs.Filter{Limit: 1}))
		s.Add("ship", limit(2))
		s.Add("pay", limit(2))
		// At the same moment in both types, so that places are equal.
		a1, b1, a2, b2, a3 := s.Put("ship"), s.Put("pay"), s.Put("ship"), s.Put("pay"), s.Put("ship")
		ship, pay := []jobs.ID{a3, a2, a1}, []jobs.ID{b2, b1}
		s.accept(s.take("ann", a1))
		for _, n := range []int{1, 2, 3, 100} {
			all := s.pages(false, jobs.Filter{Limit: n})
			assert.Len(t, all, 5)
			assert.ElementsMatch(t, append(ship, pay...), all)
			assert.Equal(t, ship, s.pages(false, jobs.Filter{Type: "ship", Limit: n}))
			assert.Equal(t, pay, s.pages(false, jobs.Filter{Type: "pay", Limit: n}))
			assert.Equal(t, []jobs.ID{a1}, s.pages(false, jobs.Filter{Status: jobs.InProgress, Limit: n}))
			assert.Equal(t, []jobs.ID{a3, a2}, s.pages(false, jobs.Filter{Type: "ship", Status: jobs.Queued, Limit: n}))
			assert.Empty(t, s.pages(false, jobs.Filter{Type: "other", Limit: n}))
			assert.Empty(t, s.pages(true, jobs.Filter{Limit: n}))
		}
		for i, end := range []struct {
			name   jobs.TypeName
			id     jobs.ID
			status jobs.Status
		}{{"ship", a2, jobs.Succeeded}, {"pay", b1, jobs.Failed}, {"ship", a1, jobs.Succeeded}, {"pay", b2, jobs.Succeeded}} {
			s.Pass(time.Second)
			_, err := s.Report(t.Context(), end.name, end.id, jobs.Report{Attempt: 3, Status: end.status, Final: true}, s.Now)
			require.NoError(t, err, "%d", i)
		}
		for _, n := range []int{1, 2, 100} {
			assert.Equal(t, []jobs.ID{b2, a1, b1, a2}, s.pages(true, jobs.Filter{Limit: n}), "newest first")
			assert.Equal(t, []jobs.ID{b2, a1, a2}, s.pages(true, jobs.Filter{Status: jobs.Succeeded, Limit: n}))
			assert.Equal(t, []jobs.ID{b1}, s.pages(true, jobs.Filter{Type: "pay", Status: jobs.Failed, Limit: n}))
		}
		for _, before := range []string{"x", "1-x", "x-" + string(a1), string(a1), "-1-" + string(a1)} {
			_, _, err := s.Open(t.Context(), jobs.Filter{Before: before, Limit: 1})
			var invalid *bus.Invalid
			require.ErrorAs(t, err, &invalid, before)
		}
	})
}

func TestBulk(t *testing.T) {
	t.Parallel()
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		s, ctx := newShop(t, server), t.Context()
		s.Add("ship")
		s.Add("pay")
		done, other := s.Put("ship"), s.Put("pay")
		require.NoError(t, s.report("ship", done, 3, jobs.Succeeded))
		list := make([]jobs.NewJob, 50)
		for i := range list {
			list[i] = jobs.NewJob{ID: jobs.NewID(), Data: []byte("null"), RunAfter: start.Add(time.Duration(i%2) * time.Hour)}
		}
		for bad, want := range map[jobs.ID]error{done: jobs.ErrArchived, other: jobs.ErrOtherType} {
			list[49].ID = bad
			_, err := s.Enqueue(ctx, "ship", list, "", s.Now)
			var bulk *jobs.BulkError
			require.ErrorAs(t, err, &bulk)
			assert.Equal(t, jobs.BulkError{Index: 49, Err: want}, *bulk)
			assert.Empty(t, s.pages(false, jobs.Filter{Type: "ship", Limit: 100}), "none is there")
		}
		list[49].ID = jobs.NewID()
		for range 2 { // the second time, all are there
			added, err := s.Enqueue(ctx, "ship", list, "", s.Now)
			require.NoError(t, err)
			require.Len(t, added, 50)
			for i, job := range added {
				assert.Equal(t, list[i].ID, job.ID)
				assert.Equal(t, list[i].RunAfter, job.RunAfter)
			}
		}
		assert.Equal(t, jobs.Counts{Queued: 50, Waiting: 24, Oldest: start.Add(2 * time.Microsecond)}, s.counts("ship"))
		s.accept(s.take("ann", other))
		s.accept(s.take("ann", list[0].ID))
		s.Pass(time.Hour)
		taken := s.acquire("ann")
		assert.Len(t, taken.Discarded, 2, "the deadlines of both")
		require.NotNil(t, taken.Task)
		assert.Equal(t, list[1].ID, taken.Task.Payload.(*jobs.Run).ID, "in the order in which they were enqueued")
	})
}

func TestPull(t *testing.T) {
	t.Parallel()
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		s, ctx := newShop(t, server), t.Context()
		s.Add("ship")
		s.Add("mail", pulled, limit(3))
		fetch := func(max int) (ids []jobs.ID) {
			t.Helper()
			list, _, err := s.Fetch(ctx, "mail", max, s.Now)
			require.NoError(t, err)
			for _, job := range list {
				assert.Equal(t, s.Now.Add(time.Minute), job.Deadline)
				assert.Equal(t, jobs.InProgress, job.Status)
				ids = append(ids, job.ID)
			}
			return ids
		}
		_, _, err := s.Fetch(ctx, "ship", 1, s.Now)
		require.ErrorIs(t, err, jobs.ErrNotPull)
		_, _, err = s.Fetch(ctx, "other", 1, s.Now)
		require.ErrorIs(t, err, jobs.ErrUnknownType)
		assert.Empty(t, fetch(1))
		later := s.Put("mail", func(j *jobs.NewJob) { j.RunAfter = start.Add(time.Second) })
		ids := []jobs.ID{s.Put("mail"), s.Put("mail"), s.Put("mail"), s.Put("mail")}
		assert.Empty(t, s.takeNothing(), "no worker takes them")
		assert.Equal(t, ids[:2], fetch(2))
		assert.Equal(t, ids[2:3], fetch(100))
		assert.Empty(t, fetch(100))
		s.requireInFlight("mail", 3)
		require.NoError(t, s.report("mail", ids[1], 3, jobs.Failed))
		require.NoError(t, s.report("mail", ids[0], 3, jobs.Succeeded))
		s.Pass(2 * time.Second)
		assert.Empty(t, s.takeNothing())
		assert.Equal(t, []jobs.ID{later, ids[1]}, fetch(100), "each in its place")
		s.Pass(time.Minute)
		assert.Len(t, s.takeNothing(), 3, "the deadlines of all")
		s.requireInFlight("mail", 0)
		assert.Equal(t, []jobs.ID{ids[3]}, fetch(1))
	})
}

func TestAPullWaiterIsToldOfJobs(t *testing.T) {
	t.Parallel()
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		s := newShop(t, server)
		s.Add("mail", pulled)
		s.Add("ship")
		waiter := s.NewPullWaiter(time.Minute)
		defer func() { require.NoError(t, waiter.Close()) }()
		first := s.Put("mail")
		names, err := waiter.Wait(t.Context(), time.Minute)
		require.NoError(t, err)
		assert.Equal(t, []jobs.TypeName{"mail"}, names, "one that came before")
		told := make(chan []jobs.TypeName)
		go func() {
			names, err := waiter.Wait(t.Context(), time.Minute)
			assert.NoError(t, err)
			told <- names
		}()
		s.Put("ship")
		s.Put("mail") // no service may fetch it
		require.NoError(t, s.report("mail", first, 3, jobs.Succeeded))
		assert.Contains(t, <-told, jobs.TypeName("mail"))
	})
}

func TestCancelAndReplay(t *testing.T) {
	t.Parallel()
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		s, ctx := newShop(t, server), t.Context()
		s.Add("ship")
		taken, accepted, queued := s.Put("ship"), s.Put("ship"), s.Put("ship")
		cancel := func(id jobs.ID, want jobs.Status) {
			t.Helper()
			was, err := s.Cancel(ctx, "ship", id, s.Now)
			require.NoError(t, err)
			assert.Equal(t, want, was)
		}
		_, err := s.Cancel(ctx, "ship", jobs.NewID(), s.Now)
		require.ErrorIs(t, err, jobs.ErrUnknownJob)
		_, err = s.Replay(ctx, "", queued, jobs.NewID(), s.Now)
		require.ErrorIs(t, err, jobs.ErrQueued)
		cancel(queued, jobs.Queued)
		task := s.take("ann", taken)
		cancel(taken, jobs.InProgress)
		cancel(taken, jobs.Cancelled)
		owned, err := s.Queue().Complete(ctx, task, completed, s.Now)
		require.NoError(t, err)
		require.False(t, owned)
		s.accept(s.take("ann", accepted))
		cancel(accepted, jobs.InProgress)
		s.requireIdle()

		_, err = s.Replay(ctx, "pay", taken, jobs.NewID(), s.Now)
		require.ErrorIs(t, err, jobs.ErrUnknownJob)
		again, err := s.Replay(ctx, "", taken, jobs.NewID(), s.Now)
		require.NoError(t, err)
		assert.Equal(t, s.Show(taken).Data, again.Data)
		assert.Equal(t, 3, again.Attempts)
		s.accept(s.take("ann", again.ID))
		require.NoError(t, s.report("ship", again.ID, 3, jobs.Succeeded))
		_, err = s.Cancel(ctx, "ship", again.ID, s.Now)
		require.ErrorIs(t, err, jobs.ErrArchived)
	})
}

func TestAFetchedJobIsPutBack(t *testing.T) {
	t.Parallel()
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		s, ctx := newShop(t, server), t.Context()
		s.Add("mail", pulled, func(t *jobs.Type) { t.Strategy, t.Attempts = jobs.AtMostOnce, 1 })
		first, second := s.Put("mail"), s.Put("mail")
		before := s.Show(first)
		fetch := func() jobs.Job {
			list, _, err := s.Fetch(ctx, "mail", 1, s.Now)
			require.NoError(t, err)
			require.Len(t, list, 1)
			return list[0]
		}
		fetched := fetch()
		require.Equal(t, first, fetched.ID)
		stale := fetched
		stale.Deadline = stale.Deadline.Add(time.Second)
		require.ErrorIs(t, s.Return(ctx, stale, s.Now), jobs.ErrStaleAttempt)
		require.NoError(t, s.Return(ctx, fetched, s.Now))
		require.ErrorIs(t, s.Return(ctx, fetched, s.Now), jobs.ErrNotInProgress)
		after := s.Show(first)
		after.UpdatedAt = before.UpdatedAt
		assert.Equal(t, before, after, "its only attempt is left")
		s.Pass(time.Millisecond)
		assert.Empty(t, s.takeNothing(), "it comes up, and waits to be fetched")
		assert.Equal(t, first, fetch().ID, "before the other")
		require.NoError(t, s.report("mail", first, 1, jobs.Succeeded))
		assert.Equal(t, second, fetch().ID)
		require.ErrorIs(t, s.Return(ctx, fetched, s.Now), jobs.ErrNotInProgress)
		fetched.ID = jobs.NewID()
		require.ErrorIs(t, s.Return(ctx, fetched, s.Now), jobs.ErrUnknownJob)
	})
}
