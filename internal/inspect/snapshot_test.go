package inspect_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/inspect"
	"routemaster/internal/overview"
	"routemaster/internal/rdb"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store/storetest"
)

// snapshot is the backlog of a bus.
type snapshot struct {
	backlogs []inspect.Backlog
	damaged  []string
	jobs     map[bus.Queue]inspect.JobCounts
	due      int64
	memory   *rdb.Memory
}

// snapshotOf reads the backlog of a bus, as samples do.
func snapshotOf(ctx context.Context, f *storetest.Bus, until time.Time) (s snapshot, err error) {
	var errs [5]error
	s.memory, errs[0] = f.Memory(ctx)
	s.jobs, s.due, errs[1] = f.CountJobs(ctx, until)
	s.backlogs, s.damaged, errs[2] = f.Backlogs(ctx, &inspect.Conditions{})
	errs[3] = f.FindOldest(ctx, s.backlogs, nil)
	errs[4] = f.AddLanes(ctx, s.backlogs)
	return s, errors.Join(errs[:]...)
}

func TestSnapshot(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := storetest.NewBus(t, server)
		ctx := t.Context()
		f.AddSubscriber(storetest.Alice, 100*time.Millisecond, 2, "widgets")
		f.AddSubscriber(storetest.Bob, 100*time.Millisecond, 2, "gadgets")
		f.PublishEvents("widgets", 1, 3, 7)
		server.Raw.HSet(ctx, "subscriber:"+string(storetest.Alice), "health_points", 40, "last_attempted_at", storetest.After(50).UnixMilli())
		server.Raw.HSet(ctx, "delivery:"+string(storetest.Alice), "events_sent", 12)
		one := overview.Lanes{Count: 1}
		backlog := inspect.Backlog{
			Client: "alice", Token: storetest.Alice, Events: 3, Batches: 2, Subscribed: true, Timeout: 100 * time.Millisecond,
			Sent: 12, AttemptedAt: storetest.After(50),
			Health: 40, OldestAt: storetest.After(7), Lanes: one,
		}
		idle := inspect.Backlog{Client: "bob", Token: storetest.Bob, Subscribed: true, Timeout: 100 * time.Millisecond, Health: 100, Lanes: one}
		snapshot, err := snapshotOf(ctx, f, storetest.After(106))
		require.NoError(t, err)
		assert.Equal(t, []inspect.Backlog{backlog, idle}, snapshot.backlogs)
		assert.Equal(t, map[bus.Queue]inspect.JobCounts{
			bus.QueueMain: {Instant: 1, Scheduled: 1}, bus.QueueJobs: {}, bus.QueueMachines: {}, bus.QueueAux: {},
		}, snapshot.jobs)
		assert.Equal(t, int64(1), snapshot.due)
		if server.IsEmbedded() {
			assert.Nil(t, snapshot.memory)
		} else {
			assert.Positive(t, snapshot.memory.Used)
			cpu, err := f.Partition.CPU(ctx)
			require.NoError(t, err)
			assert.Positive(t, cpu.User+cpu.System)
		}
		require.NoError(t, f.Pause(ctx, storetest.Bob, bus.Forever))
		server.Raw.HSet(ctx, "delivery:"+string(storetest.Alice),
			"throttled_until", storetest.After(5000).UnixMilli(), "paced_until", fmt.Sprintf("%d.25", storetest.After(99).UnixMilli()))
		backlog.Holds = inspect.Holds{Throttled: storetest.After(5000), Paced: storetest.After(100)}
		idle.Holds = inspect.Holds{Paused: time.UnixMilli(bus.Forever.UnixMilli())}
		snapshot, err = snapshotOf(ctx, f, storetest.After(106))
		require.NoError(t, err)
		assert.Equal(t, []inspect.Backlog{backlog, idle}, snapshot.backlogs)

		require.NoError(t, f.DeleteSubscriber(ctx, storetest.Alice))
		snapshot, err = snapshotOf(ctx, f, storetest.After(107))
		require.NoError(t, err)
		backlog.Subscribed, backlog.Health, backlog.Lanes, backlog.Holds = false, 100, overview.Lanes{}, inspect.Holds{}
		backlog.Timeout, backlog.Sent, backlog.AttemptedAt = bus.DefaultTimeout, 0, time.Time{}
		assert.Equal(t, []inspect.Backlog{backlog, idle}, snapshot.backlogs)
		assert.Equal(t, int64(2), snapshot.due)
	})
}

// TestBatchesThatWereMetAreNotReadAgain changes them, until another token has them.
func TestBatchesThatWereMetAreNotReadAgain(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := storetest.NewBus(t, server)
		ctx := t.Context()
		f.AddSubscriber(storetest.Alice, time.Hour, 3, "widgets")
		f.PublishEvents("widgets", 1, 1, 7)
		batch := "batch:" + server.Raw.ZRange(ctx, "batches:index", 0, 0).Val()[0]
		known := inspect.Batches{}
		oldest := func(token bus.Token) time.Time {
			backlogs := []inspect.Backlog{{Token: token, Events: 1}, {Token: "other--1"}}
			require.NoError(t, f.FindOldest(ctx, backlogs, known))
			assert.Zero(t, backlogs[1].OldestAt)
			return backlogs[0].OldestAt
		}
		assert.Equal(t, storetest.After(7), oldest(storetest.Alice))
		require.NoError(t, server.Raw.LSet(ctx, batch, 1, storetest.After(9).UnixMilli()).Err())
		assert.Equal(t, storetest.After(7), oldest(storetest.Alice))
		require.NoError(t, server.Raw.LSet(ctx, batch, 0, "alice--2").Err())
		assert.Equal(t, storetest.After(9), oldest("alice--2"))
	})
}

// TestASnapshotGetsPastWhatIsPoisoned reads all other subscribers when the data of one is corrupt.
func TestASnapshotGetsPastWhatIsPoisoned(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		bob := string(storetest.Bob)
		for name, poison := range map[string]func(rdb.Commands) error{
			"gauges": func(raw rdb.Commands) error {
				return errors.Join(raw.HSet(t.Context(), "batches:gauges:event", bob, "abc").Err(),
					raw.HSet(t.Context(), "batches:gauges:batch", bob, "1.5").Err())
			},
			"hash": func(raw rdb.Commands) error { return raw.Set(t.Context(), "subscriber:"+bob, "x", 0).Err() },
		} {
			require.NoError(t, server.Raw.FlushAll(t.Context()).Err())
			f := storetest.NewBus(t, server)
			f.AddSubscriber(storetest.Alice, time.Hour, 3, "widgets")
			f.AddSubscriber(storetest.Bob, time.Hour, 3, "widgets")
			f.PublishEvents("widgets", 1, 1, 7)
			require.NoError(t, poison(f.Redis))
			require.NoError(t, f.Redis.ZAdd(t.Context(), "batches:index", redis.Z{Member: "ABCDEFGHIJKLMNOPQRST"}).Err())
			require.NoError(t, f.Redis.Set(t.Context(), "batch:ABCDEFGHIJKLMNOPQRST", "x", 0).Err())
			snapshot, err := snapshotOf(t.Context(), f, storetest.After(0))
			require.NoError(t, err, name)
			alices := inspect.Backlog{Client: "alice", Token: storetest.Alice, Timeout: time.Hour, Events: 1, Batches: 1, Subscribed: true, Health: 100, OldestAt: storetest.After(7), Lanes: overview.Lanes{Count: 1}}
			assert.Contains(t, snapshot.backlogs, alices, name)
			if name == "hash" {
				bobs := inspect.Backlog{Client: "bob", Token: storetest.Bob, Events: 1, Batches: 1, OldestAt: storetest.After(7)}
				assert.Contains(t, snapshot.backlogs, bobs, "nobody knows its health")
				assert.Equal(t, []string{"subscriber:bob"}, snapshot.damaged)
			} else {
				assert.Contains(t, snapshot.backlogs, inspect.Backlog{Client: "bob", Token: storetest.Bob, Timeout: time.Hour, Subscribed: true, Health: 100, Lanes: overview.Lanes{Count: 1}})
				assert.Empty(t, snapshot.damaged)
			}
		}
	})
}
