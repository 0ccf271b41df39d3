package queue_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/queue"
	"routemaster/internal/rdb/rdbtest"
)

func TestLook(t *testing.T) {
	t.Parallel()
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		d, ctx := newDepot(t, server, 2), t.Context()
		look := queue.NewLook(server.Open(t).Partition("q:"))
		some, err := look.Next(ctx, bus.QueueMain, 5)
		require.NoError(t, err)
		assert.Empty(t, some)

		d.post("home", "1", "2", "3")
		d.post("away", "4")
		d.complete(d.take(ann, "1"), queue.Result{RetryAt: after(50), Detail: 1}, "2")
		d.take(ben, "3")
		require.NoError(t, server.Raw.LPush(ctx, d.keys.Instant(bus.QueueMain), "not a job").Err())
		parcel := func(id string, due time.Time, worker bus.WorkerID) queue.Entry {
			return queue.Entry{Job: parcelJob(id), DueAt: due, Worker: worker}
		}
		all := []queue.Entry{parcel("4", time.Time{}, ""), {}, parcel("1", after(50), "")}
		for limit := 1; limit <= 5; limit++ {
			some, err := look.Next(ctx, bus.QueueMain, limit)
			require.NoError(t, err)
			assert.Equal(t, all[:min(limit, len(all))], some)
		}

		running, more, err := look.Running(ctx, bus.QueueMain, 5)
		require.NoError(t, err)
		assert.Zero(t, more)
		assert.Equal(t, []queue.Entry{parcel("2", time.Time{}, ann), parcel("3", time.Time{}, ben)}, running)
		running, more, err = look.Running(ctx, bus.QueueMain, 1)
		require.NoError(t, err)
		assert.Equal(t, 1, more)
		assert.Len(t, running, 1)

		require.NoError(t, d.Heartbeat(ctx, after(10), ann))
		require.NoError(t, d.Heartbeat(ctx, after(20), ben))
		active, silent, err := look.Workers(ctx, after(10))
		require.NoError(t, err)
		assert.Equal(t, [2]int{1, 1}, [2]int{active, silent})

		thread := bus.NewWorkerID()
		spares := []bus.WorkerID{thread[:19] + "A", thread[:19] + "B", thread[:19] + "C"}
		require.NoError(t, d.Heartbeat(ctx, after(20), spares...))
		active, silent, err = look.Workers(ctx, after(10))
		require.NoError(t, err)
		assert.Equal(t, [2]int{2, 1}, [2]int{active, silent}, "one thread")
	})
}

// TestLookAtDamage overwrites the queue's keys by values of other types.
func TestLookAtDamage(t *testing.T) {
	t.Parallel()
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		d, ctx := newDepot(t, server, 1), t.Context()
		look := queue.NewLook(server.Open(t).Partition("q:"))
		for _, key := range []string{d.keys.Instant(bus.QueueMain), d.keys.Scheduled(bus.QueueMain), d.keys.PendingIndex(bus.QueueMain), d.keys.Workers()} {
			require.NoError(t, server.Raw.Set(ctx, key, "x", 0).Err())
		}
		some, err := look.Next(ctx, bus.QueueMain, 5)
		require.NoError(t, err)
		assert.Empty(t, some)
		running, _, err := look.Running(ctx, bus.QueueMain, 5)
		require.NoError(t, err)
		assert.Empty(t, running)
		_, _, err = look.Workers(ctx, start)
		require.NoError(t, err)
	})
}
