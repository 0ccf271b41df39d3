package jobs_test

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/jobs"
	"routemaster/internal/layout"
	"routemaster/internal/rdb"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store/storetest"
)

func nobodyRefuses(jobs.Type) error { return nil }

// TestAllOfATypeIsInItsPartition takes jobs through their lives, and checks where they leave keys.
func TestAllOfATypeIsInItsPartition(t *testing.T) {
	each(t, func(t *testing.T, s *shops) {
		ctx, names := t.Context(), s.addAll()
		for number, name := range names {
			assert.EqualValues(t, number, s.Number(name))
			assert.Same(t, s.All()[number], s.Of(name))
			_, err := s.ChangeType(ctx, name, func(t *jobs.Type) error {
				t.Pull, t.URL, t.Schedule = false, "https://x.example/", "* * * * *"
				return nil
			})
			require.NoError(t, err)
			s.put(name, 10*number+1)
			assert.Equal(t, []jobs.ID{id(10*number + 1)}, s.run(number))
			_, err = s.Replay(ctx, "", id(10*number+1), id(10*number+2), s.now)
			require.NoError(t, err)
			schedules, err := s.Of(name).Schedules(ctx)
			require.NoError(t, err)
			require.Len(t, schedules, 1)
			assert.Equal(t, name, schedules[0].Type.Name)
		}
		s.bus.RequireSound()
		for number, p := range s.bus.All {
			require.NoError(t, p.EachKey(ctx, p.Namespace()+"*", func(page []string) error {
				for _, key := range page {
					for other, name := range names {
						assert.False(t, other != number && strings.Contains(key, string(name)), "%s is in %d", key, number)
					}
				}
				return nil
			}))
		}

		types, err := s.Types(ctx)
		require.NoError(t, err)
		require.Len(t, types, 3)
		asked := []jobs.Type{types[2], types[0], {Name: "none"}, types[1]}
		assert.Equal(t, []jobs.TypeName{names[0], names[2], "none", names[1]}, namesOf(asked), "the newest first")
		s.put(names[1], 50)
		counts, err := s.Counts(ctx, asked...)
		require.NoError(t, err)
		assert.Equal(t, []int64{1, 1, 0, 2}, []int64{counts[0].Queued, counts[1].Queued, counts[2].Queued, counts[3].Queued})

		for _, name := range names {
			require.ErrorIs(t, s.DeleteType(ctx, name, false, s.now, nobodyRefuses), jobs.ErrTypeHasJobs)
			require.NoError(t, s.DeleteType(ctx, name, true, s.now, nobodyRefuses))
			_, err := s.Type(ctx, name)
			require.ErrorIs(t, err, jobs.ErrUnknownType)
		}
		s.now = s.now.Add(2 * time.Hour)
		for number, st := range s.All() {
			_, err := st.Purge(ctx, s.now, func() bool { return true })
			require.NoError(t, err)
			s.run(number) // drops the instant entries of jobs that are gone
			n, owned, err := st.CountTypes(ctx, "")
			assert.Zero(t, owned)
			require.NoError(t, err)
			assert.Zero(t, n)
		}
		s.bus.RequireSound()
	})
}

func namesOf(types []jobs.Type) (names []jobs.TypeName) {
	for _, t := range types {
		names = append(names, t.Name)
	}
	return names
}

// TestAnIDIsThatOfOneJobInAPartition only. Where a request names the type, that is all it needs.
func TestAnIDIsThatOfOneJobInAPartition(t *testing.T) {
	each(t, func(t *testing.T, s *shops) {
		ctx, beside := t.Context(), s.typeIn(0, 1)
		names := s.addAll()
		s.add(beside)
		s.put(names[0], 1)
		_, err := s.Of(beside).Enqueue(ctx, beside, []jobs.NewJob{{ID: id(1), Data: []byte("1")}}, "", s.now)
		require.ErrorIs(t, err, jobs.ErrOtherType)
		job, err := s.Job(ctx, "", id(1))
		require.NoError(t, err)
		assert.Equal(t, names[0], job.Type)
		_, err = s.Job(ctx, names[1], id(1))
		require.ErrorIs(t, err, jobs.ErrUnknownJob)
		_, err = s.Job(ctx, "", id(2))
		require.ErrorIs(t, err, jobs.ErrUnknownJob)
		_, err = s.Replay(ctx, "", id(2), id(3), s.now)
		require.ErrorIs(t, err, jobs.ErrUnknownJob)

		s.put(names[1], 1)
		s.fetch(names[1], 1)
		for _, call := range []func() error{
			func() error { _, err := s.Job(ctx, "", id(1)); return err },
			func() error { _, err := s.Replay(ctx, "", id(1), id(3), s.now); return err },
		} {
			require.ErrorIs(t, call(), jobs.ErrManyTypes)
		}
		for number, status := range []jobs.Status{jobs.Queued, jobs.InProgress} {
			job, err := s.Job(ctx, names[number], id(1))
			require.NoError(t, err)
			assert.Equal(t, status, job.Status)
		}
		copied, err := s.Replay(ctx, names[1], id(1), id(3), s.now)
		require.NoError(t, err)
		assert.Equal(t, names[1], copied.Type)
		_, err = s.Of(names[1]).Cancel(ctx, names[1], id(1), s.now)
		require.NoError(t, err)
		job, err = s.Job(ctx, names[0], id(1))
		require.NoError(t, err)
		assert.Equal(t, jobs.Queued, job.Status, "the other one's")
		s.bus.RequireSound()
	})
}

// TestTypesAreCountedInAllPartitions fills one with types, and then another.
func TestTypesAreCountedInAllPartitions(t *testing.T) {
	each(t, func(t *testing.T, s *shops) {
		ctx, names := t.Context(), []jobs.TypeName{s.typeIn(0, 0), s.typeIn(1, 0), s.typeIn(2, 0)}
		s.add(names[0])
		var others []any
		for n := range s.Limits.Bus - 2 {
			others = append(others, fmt.Sprint("other-", n))
		}
		key := layout.Keys{Namespace: s.bus.All[1].Namespace()}.JobTypes()
		require.NoError(t, s.bus.All[1].SAdd(ctx, key, others...).Err())
		s.add(names[2])
		require.ErrorIs(t, s.CreateType(ctx, newType(names[1], s.now)), jobs.ErrTooManyTypes)
		require.ErrorIs(t, s.CreateType(ctx, newType(s.typeIn(0, 1), s.now)), jobs.ErrTooManyTypes)
		require.ErrorIs(t, s.CreateType(ctx, newType(names[0], s.now)), jobs.ErrTypeExists)
		_, err := s.ChangeType(ctx, names[0], func(t *jobs.Type) error { t.Paused = true; return nil })
		require.NoError(t, err)
		require.NoError(t, s.DeleteType(ctx, names[2], false, s.now, nobodyRefuses))
		_, err = s.All()[2].Purge(ctx, s.now, func() bool { return true })
		require.NoError(t, err)
		s.add(s.typeIn(0, 1))
	})
}

// TestAPartitionThatIsHeld keeps its types to itself, and all others go on.
func TestAPartitionThatIsHeld(t *testing.T) {
	each(t, func(t *testing.T, s *shops) {
		ctx, names := t.Context(), s.addAll()
		for number, name := range names {
			s.put(name, number)
		}
		_, err := s.bus.All[1].Hold(ctx, 0)
		require.NoError(t, err)
		s.requireWithout(1, names)
		require.NoError(t, s.bus.All[1].Release(ctx))
		s.fetch(names[1], 1)
		s.bus.RequireSound()

		// One that has come back without its keys knows nothing.
		require.NoError(t, s.bus.All[1].Del(ctx, s.bus.All[1].Namespace()+rdb.PartitionKey,
			layout.Keys{Namespace: s.bus.All[1].Namespace()}.JobTypes(), layout.Keys{Namespace: s.bus.All[1].Namespace()}.JobType(string(names[1]))).Err())
		s.requireWithout(1, names)
	})
}

// requireWithout requires that calls fail only for the types of the unreachable partition and for
// all types together.
func (s *shops) requireWithout(away int, names []jobs.TypeName) {
	s.Helper()
	for number, name := range names {
		for what, err := range s.calls(name) {
			if number == away {
				require.ErrorIs(s, err, bus.ErrUnavailable, "%s of %d", what, number)
			} else {
				require.NoError(s, err, "%s of %d", what, number)
			}
		}
	}
	ctx := s.Context()
	for what, call := range map[string]func() error{
		"types":           func() error { _, err := s.Types(ctx); return err },
		"open":            func() error { _, _, err := s.Open(ctx, jobs.Filter{Limit: 1}); return err },
		"archived":        func() error { _, _, err := s.Archived(ctx, jobs.Filter{Limit: 1}); return err },
		"a job by its id": func() error { _, err := s.Job(ctx, "", id(0)); return err },
		"replay by an id": func() error { _, err := s.Replay(ctx, "", id(0), id(1), s.now); return err },
	} {
		require.ErrorIs(s, call(), bus.ErrUnavailable, what)
	}
}

// calls makes every call about a type that has a job, and returns their errors.
func (s *shops) calls(name jobs.TypeName) map[string]error {
	ctx, st, fresh := s.Context(), s.Of(name), jobs.NewID()
	errOf := func(_ any, err error) error { return err }
	_, _, listed := s.Open(ctx, jobs.Filter{Type: name, Limit: 1})
	_, _, fetched := st.Fetch(ctx, name, 1, s.now)
	all := map[string]error{
		"open": listed, "fetch": fetched,
		"counts":  errOf(s.Counts(ctx, jobs.Type{Name: name})),
		"change":  errOf(s.ChangeType(ctx, name, func(t *jobs.Type) error { t.Attempts = 4; return nil })),
		"enqueue": errOf(st.Enqueue(ctx, name, []jobs.NewJob{{ID: fresh, Data: []byte("1")}}, "", s.now)),
		"job":     errOf(s.Job(ctx, name, fresh)),
		"cancel":  errOf(st.Cancel(ctx, name, fresh, s.now)),
		"replay":  errOf(s.Replay(ctx, name, fresh, jobs.NewID(), s.now)),
	}
	// A new type of the partition, which goes at once.
	brief := s.typeIn(s.Number(name), 5)
	all["create"] = s.CreateType(ctx, newType(brief, s.now))
	all["delete"] = s.DeleteType(ctx, brief, false, s.now, nobodyRefuses)
	return all
}

// TestAPartitionThatIsAway has each on a Redis of its own.
func TestAPartitionThatIsAway(t *testing.T) {
	t.Parallel()
	all, servers := storetest.Apart(t, storetest.PartitionCount)
	var partitions rdb.Partitions
	for _, st := range all {
		partitions = append(partitions, st.Partition())
	}
	s := &shops{jobs.NewBus(partitions), t, &storetest.Partitions{T: t, All: partitions}, time.Now()}
	names := s.addAll()
	for number, name := range names {
		s.put(name, number)
	}
	servers[1].Kill(t)
	s.requireWithout(1, names)
}

// TestOnOneRedisNothingIsAskedMore: a bus without partitions sends the same commands as its one
// store.
func TestOnOneRedisNothingIsAskedMore(t *testing.T) {
	t.Parallel()
	server := rdbtest.Real(t)
	all := jobs.NewBus(rdb.Partitions{server.Open(t).Partition("")})
	require.Len(t, all.All(), 1)
	ctx, now, one := t.Context(), time.Now(), all.All()[0]
	for _, name := range []jobs.TypeName{"ship", "pay", ""} {
		assert.Same(t, one, all.Of(name))
	}
	require.NoError(t, all.CreateType(ctx, newType("ship", now)))
	_, err := one.Enqueue(ctx, "ship", []jobs.NewJob{{ID: id(1), Data: []byte("1")}}, "", now)
	require.NoError(t, err)
	_, _, err = one.Fetch(ctx, "ship", 1, now)
	require.NoError(t, err)
	type calls interface {
		Job(context.Context, jobs.TypeName, jobs.ID) (jobs.Job, error)
		Replay(ctx context.Context, name jobs.TypeName, id, copied jobs.ID, now time.Time) (jobs.Job, error)
		Type(context.Context, jobs.TypeName) (jobs.Type, error)
		Types(context.Context) ([]jobs.Type, error)
		Counts(context.Context, ...jobs.Type) ([]jobs.Counts, error)
		Open(context.Context, jobs.Filter) ([]jobs.Job, string, error)
		Archived(context.Context, jobs.Filter) ([]jobs.Job, string, error)
		CreateType(context.Context, jobs.Type) error
		ChangeType(context.Context, jobs.TypeName, func(*jobs.Type) error) (jobs.Type, error)
		DeleteType(ctx context.Context, name jobs.TypeName, force bool, now time.Time, allowed func(jobs.Type) error) error
	}
	commands := func(of calls, call func(of calls)) string {
		call(of) // so that the scripts are loaded
		require.NoError(t, server.Raw.ConfigResetStat(ctx).Err())
		call(of)
		stats, err := server.Raw.Info(ctx, "commandstats").Result()
		require.NoError(t, err)
		return fmt.Sprint(regexp.MustCompile(`cmdstat_[a-z|]+:calls=\d+`).FindAllString(stats, -1))
	}
	for what, call := range map[string]func(of calls){
		"job":         func(of calls) { _, _ = of.Job(ctx, "", id(1)) },
		"no job":      func(of calls) { _, _ = of.Job(ctx, "", id(2)) },
		"replay":      func(of calls) { _, _ = of.Replay(ctx, "", id(1), jobs.NewID(), now) },
		"type":        func(of calls) { _, _ = of.Type(ctx, "ship") },
		"no type":     func(of calls) { _, _ = of.Type(ctx, "none") },
		"types":       func(of calls) { _, _ = of.Types(ctx) },
		"counts":      func(of calls) { _, _ = of.Counts(ctx, jobs.Type{Name: "ship"}) },
		"open":        func(of calls) { _, _, _ = of.Open(ctx, jobs.Filter{Limit: 3}) },
		"archived":    func(of calls) { _, _, _ = of.Archived(ctx, jobs.Filter{Limit: 3}) },
		"create":      func(of calls) { _ = of.CreateType(ctx, newType("ship", now)) },
		"change":      func(of calls) { _, _ = of.ChangeType(ctx, "none", func(*jobs.Type) error { return nil }) },
		"delete none": func(of calls) { _ = of.DeleteType(ctx, "none", false, now, nobodyRefuses) },
	} {
		assert.Equal(t, commands(one, call), commands(all, call), what)
	}
}
