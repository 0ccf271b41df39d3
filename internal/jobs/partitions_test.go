package jobs_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/jobs"
	"routemaster/internal/rdb"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store/storetest"
	"routemaster/internal/telemetry"
)

// TestHousekeepingOfPartitions: each partition does its own housekeeping, also while one is held,
// and counts cover all partitions that can be read.
func TestHousekeepingOfPartitions(t *testing.T) {
	t.Parallel()
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		p, ctx, now := storetest.NewPartitions(t, server.Open(t)), t.Context(), clock(t, "10:00:30")
		all, log := jobs.NewBus(p.All), slog.New(slog.DiscardHandler)
		clockNow := func() time.Time { return now }
		recorder := telemetry.NewRecorder(telemetry.NewRegistry(), p.First(), log)
		archives, tasks := jobs.SpareTasksOf(all, recorder, log, clockNow)
		require.Len(t, archives, 3)
		run := func() (errs []error) {
			for _, task := range tasks {
				errs = append(errs, task.Work(ctx))
			}
			return errs
		}
		var names []jobs.TypeName
		put := func(name jobs.TypeName) jobs.ID {
			id := jobs.NewID()
			_, err := all.Of(name).Enqueue(ctx, name, []jobs.NewJob{{ID: id, Data: []byte("1")}}, "", now)
			require.NoError(t, err)
			return id
		}
		ended := map[jobs.TypeName]jobs.ID{}
		for number := range p.All {
			name := jobs.TypeName(p.TypeIn(rdb.Number(number), 0))
			names = append(names, name)
			require.NoError(t, all.CreateType(ctx, jobs.Type{
				Name: name, Strategy: jobs.AtLeastOnce, Attempts: 1, Concurrency: 1, URL: "https://x.example/", Timeout: time.Minute,
				Retention: time.Minute, Schedule: "* * * * *", CreatedAt: now.Add(time.Duration(number) * time.Millisecond), UpdatedAt: now,
			}))
			ended[name] = put(name)
			_, err := all.Of(name).Cancel(ctx, name, ended[name], now)
			require.NoError(t, err)
		}
		queued := func() string {
			counted, err := jobs.CountsOf(all)(ctx)
			require.NoError(t, err)
			text := ""
			for _, t := range counted {
				text += fmt.Sprint(slices.Index(names, t.Name), ":", t.Queued, " ")
			}
			return text
		}
		assert.Equal(t, slices.Repeat([]error{nil}, len(tasks)), run())
		assert.Equal(t, "2:0 1:0 0:0 ", queued(), "the newest first")

		now = clock(t, "10:01:31")
		_, err := p.All[1].Hold(ctx, 0)
		require.NoError(t, err)
		failed := slices.DeleteFunc(run(), func(err error) bool { return err == nil })
		for _, err := range failed {
			require.ErrorIs(t, err, bus.ErrUnavailable)
		}
		assert.Len(t, failed, 2, "the archive and the scheduler of one")
		assert.Equal(t, "2:1 0:1 ", queued())
		_, err = jobs.NamesOf(all)(ctx)
		require.ErrorIs(t, err, bus.ErrUnavailable, "or counters of its types would be removed")
		for number, name := range names {
			_, err := all.Job(ctx, name, ended[name])
			if number == 1 {
				require.ErrorIs(t, err, bus.ErrUnavailable)
			} else {
				require.ErrorIs(t, err, jobs.ErrUnknownJob, "it was kept for a minute")
			}
		}

		require.NoError(t, p.All[1].Release(ctx))
		assert.Equal(t, slices.Repeat([]error{nil}, len(tasks)), run())
		assert.Equal(t, "2:1 1:1 0:1 ", queued())
		found, err := jobs.NamesOf(all)(ctx)
		require.NoError(t, err)
		assert.Len(t, found, 3)
		put(names[0])
		put(names[2])
		// To make room, each partition drops archived jobs of its own.
		_, err = all.Of(names[2]).Cancel(ctx, names[2], newest(ctx, t, all.Of(names[2])), now)
		require.NoError(t, err)
		for number, archive := range archives {
			n, err := archive.DropOldest(ctx)
			require.NoError(t, err)
			assert.Equal(t, number == 2, n == 1)
		}
		p.RequireSound()
	})
}

// newest returns the newest job of a partition.
func newest(ctx context.Context, t *testing.T, st *jobs.Store) jobs.ID {
	t.Helper()
	list, _, err := st.Open(ctx, jobs.Filter{Limit: 1})
	require.NoError(t, err)
	require.Len(t, list, 1)
	return list[0].ID
}

// TestCountsOfNothing have all partitions away.
func TestCountsOfNothing(t *testing.T) {
	t.Parallel()
	all, servers := storetest.Apart(t, 2)
	partitions := rdb.Partitions{all[0].Partition(), all[1].Partition()}
	count := jobs.CountsOf(jobs.NewBus(partitions))
	servers[0].Kill(t)
	counted, err := count(t.Context())
	require.NoError(t, err)
	assert.Empty(t, counted)
	servers[1].Kill(t)
	_, err = count(t.Context())
	require.ErrorIs(t, err, bus.ErrUnavailable)
}
