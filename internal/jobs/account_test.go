package jobs_test

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/account"
	"routemaster/internal/bus"
	"routemaster/internal/jobs"
	"routemaster/internal/layout"
	"routemaster/internal/rdb/rdbtest"
)

func ownedBy(client bus.ClientName) func(*jobs.Type) { return func(t *jobs.Type) { t.Owner = client } }

// kept returns the bytes charged to a client's account.
func (s *shop) kept(client bus.ClientName) int64 {
	s.T.Helper()
	accounts, err := account.Read(s.T.Context(), s.account)
	require.NoError(s.T, err)
	return accounts.Kept[client]
}

// countAll counts the bytes of all types and jobs, and of the keys that remember removed ones.
func (s *shop) countAll() (bytes int64) {
	ctx, raw := s.T.Context(), s.server.Raw
	for _, key := range raw.Keys(ctx, s.Keys.JobData("*")).Val() {
		bytes += raw.StrLen(ctx, key).Val()
	}
	for _, key := range raw.Keys(ctx, s.Keys.JobType("*")).Val() {
		bytes += jobs.TypeBytes + int64(len(raw.HGet(ctx, key, "schedule_data").Val()))
	}
	for _, key := range raw.Keys(ctx, s.Keys.Job("*")).Val() {
		noted, _ := raw.HGet(ctx, key, "noted").Int64()
		bytes += jobs.JobBytes + noted
	}
	bytes += jobs.RemovedBytes * int64(len(raw.Keys(ctx, s.Keys.RemovedJob("*", "*")).Val()))
	return bytes
}

// requireExact requires that the accounts of all clients match the kept data.
func (s *shop) requireExact(t require.TestingT) {
	accounts, err := account.Read(s.T.Context(), s.account)
	require.NoError(t, err)
	sum := int64(0)
	for _, bytes := range accounts.Kept {
		sum += bytes
	}
	require.Equal(t, s.countAll(), sum)
	require.Equal(t, sum, accounts.Total)
}

// TestAnAccountIsAboutWhatRedisUses compares the account of a client with the memory of Redis.
func TestAnAccountIsAboutWhatRedisUses(t *testing.T) {
	rdbtest.OneGoroutine(t)
	t.Parallel()
	s := newShop(t, rdbtest.Real(t))
	used := func() int64 {
		memory, err := s.account.Memory(t.Context())
		require.NoError(t, err)
		return memory.Used
	}
	s.Add("first")
	s.Put("first") // so that all scripts and keys are there
	const count = 4096
	for _, size := range []int{10, 5000} {
		name := jobs.TypeName(fmt.Sprint("of_", size))
		s.Add(name, ownedBy("alice"), limit(1000))
		usedBefore, keptBefore := used(), s.kept("alice")
		for range count {
			s.Put(name, func(j *jobs.NewJob) { j.Data = bytes.Repeat([]byte("1"), size) })
		}
		assert.InEpsilon(t, used()-usedBefore, s.kept("alice")-keptBefore, 0.25)
	}
	record := s.server.Raw.MemoryUsage(t.Context(), s.Keys.JobType("first")).Val()
	assert.InDelta(t, record, jobs.TypeBytes, 300, "besides it there are its places in sets")
}

// TestAFullAccount fills the account of one client. Other clients are not affected.
func TestAFullAccount(t *testing.T) {
	t.Parallel()
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		t.Parallel()
		s, ctx := newShop(t, server), t.Context()
		large := func(j *jobs.NewJob) { j.Data = bytes.Repeat([]byte("1"), 10_000) }
		requireFull := func(err error) {
			t.Helper()
			var full *account.FullError
			require.ErrorAs(t, err, &full)
			require.EqualValues(t, "alice", full.Client)
			require.Equal(t, s.kept("alice"), full.Kept)
			require.LessOrEqual(t, full.Kept, full.Limit)
		}
		put := func(name jobs.TypeName) error {
			job := jobs.NewJob{ID: jobs.NewID()}
			large(&job)
			_, err := s.Enqueue(ctx, name, []jobs.NewJob{job}, "", s.Now)
			return err
		}
		s.Add("ship", ownedBy("alice"), limit(9), func(t *jobs.Type) { t.Schedule, t.ScheduleData = "* * * * *", []byte("1") })
		s.Add("mail", ownedBy("bob"))
		ids := []jobs.ID{s.Put("ship", large)}
		task := s.take("ann", ids[0])
		s.complete(task, jobs.Outcome{Result: jobs.RunSucceeded, Standing: bus.Proven}, time.Time{})

		limits := account.Limits{High: 100_000}
		require.NoError(t, limits.Write(ctx, s.account))
		for range 20 {
			if err := put("ship"); err != nil {
				requireFull(err)
				break
			}
		}
		assert.Greater(t, s.kept("alice"), int64(100_000/2-2*10_000), "a half of all")
		s.requireExact(t)
		requireFull(put("ship"))
		_, err := s.ChangeType(ctx, "ship", func(t *jobs.Type) error { t.ScheduleData = bytes.Repeat([]byte("1"), 20_000); return nil })
		requireFull(err)
		require.NoError(t, put("mail"), "others have what is left")

		limits.Named = map[bus.ClientName]int64{"alice": s.kept("alice")}
		require.NoError(t, limits.Write(ctx, s.account))
		_, err = s.Replay(ctx, "ship", ids[0], jobs.NewID(), s.Now)
		requireFull(err)
		schedules, err := s.Schedules(ctx)
		require.NoError(t, err)
		turn, err := s.EnqueueScheduled(ctx, schedules[0], s.Now.Add(time.Minute), s.Now)
		require.NoError(t, err)
		assert.Equal(t, jobs.Skipped, turn)
		skipped, err := s.Type(ctx, "ship")
		require.NoError(t, err)
		assert.Equal(t, jobs.SkippedForAccount, skipped.SkipReason)
		_, err = s.ChangeType(ctx, "ship", func(t *jobs.Type) error { t.Paused = true; return nil })
		require.NoError(t, err, "what does not grow is changed")

		require.NoError(t, s.DeleteType(ctx, "ship", true, s.Now, func(jobs.Type) error { return nil }))
		s.Now = s.Now.Add(2 * time.Hour)
		_, err = s.Purge(ctx, s.Now, always)
		require.NoError(t, err)
		assert.Zero(t, s.kept("alice"))
		s.requireExact(t)
	})
}

// TestATypeThatPassesToAnotherClient makes a type anew by a client while another's archive of it
// remains.
func TestATypeThatPassesToAnotherClient(t *testing.T) {
	t.Parallel()
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		t.Parallel()
		s := newShop(t, server)
		s.Add("ship", ownedBy("alice"))
		s.Put("ship")
		require.NoError(t, s.DeleteType(t.Context(), "ship", true, s.Now, func(jobs.Type) error { return nil }))
		s.requireExact(t)
		s.Add("ship", ownedBy("bob"))
		assert.Zero(t, s.kept("alice"))
		s.requireExact(t)
	})
}

// TestAccountsOfBefore has jobs of a bus that kept no accounts be removed, and new ones come.
func TestAccountsOfBefore(t *testing.T) {
	t.Parallel()
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		t.Parallel()
		s, ctx := newShop(t, server), t.Context()
		s.Add("ship", ownedBy("alice"))
		old := s.Put("ship")
		require.NoError(t, server.Raw.Del(ctx, layout.Keys{Namespace: s.Keys.Namespace}.Accounts()).Err())
		require.NoError(t, server.Raw.HDel(ctx, s.Keys.JobType("ship"), "kept").Err())
		_, err := s.Cancel(ctx, "ship", old, s.Now)
		require.NoError(t, err)
		dropped, err := s.DropArchived(ctx, s.Now)
		require.NoError(t, err)
		assert.Equal(t, 1, dropped)
		assert.Zero(t, s.kept("alice"), "never below 0")
		s.Put("ship", func(j *jobs.NewJob) { j.Data = []byte("1") })
		assert.EqualValues(t, jobs.JobBytes+1, s.kept("alice"))
	})
}

// TestDamagedAccounts has another program write something else there.
func TestDamagedAccounts(t *testing.T) {
	t.Parallel()
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		t.Parallel()
		s, key := newShop(t, server), layout.Keys{Namespace: "w:"}.Accounts()
		s.Add("ship", ownedBy("alice"))
		require.NoError(t, server.Raw.Del(t.Context(), key).Err())
		require.NoError(t, server.Raw.Set(t.Context(), key, "x", 0).Err())
		s.Put("ship", func(j *jobs.NewJob) { j.Data = []byte("1") })
		assert.EqualValues(t, jobs.JobBytes+1, s.kept("alice"))
	})
}
