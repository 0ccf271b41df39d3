package store_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store"
	"routemaster/internal/store/storetest"
	"routemaster/internal/wire"
	"routemaster/internal/wire/wiretest"
)

func TestPublishReportsTheReceivers(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		event := wiretest.Pack(t, "widgets", `{"type":"noop","url":"https://x.example/"}`)
		p := store.Publication{
			Topic: "widgets", Publisher: storetest.Publisher, Events: []wire.PackedEvent{event}, ReceivedAt: 1, IdempotencyKey: &bus.IdempotencyKey{Key: "k", Digest: "d"},
		}
		q := p
		q.IdempotencyKey = nil
		receipts := f.PublishAll(t.Context(), q)
		assert.Equal(t, []store.Receipt{{Stored: true}}, receipts, "nobody")
		assert.Zero(t, receipts[0].Receivers.Len())
		f.AddSubscriber(storetest.Alice, 0, 1, "widgets")
		f.AddSubscriber(storetest.Bob, 0, 1, "widgets")
		receipts = f.PublishAll(t.Context(), p, p)
		assert.Equal(t, 2, receipts[0].Receivers.Len())
		var tokens []string
		for token := range receipts[0].Receivers.All() {
			tokens = append(tokens, token)
		}
		assert.ElementsMatch(t, []string{string(storetest.Alice), string(storetest.Bob)}, tokens)
		assert.Equal(t, store.Receipt{}, receipts[1], "the second was stored before")
	})
}

func TestAcquireReportsWhenABatchWasDue(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		f.AddSubscriber(storetest.Alice, 100*time.Millisecond, 2, "widgets")
		f.PublishEvents("widgets", 1, 3, 7)
		_, err := f.Schedule(t.Context(), bus.QueueMain, storetest.After(200), 10)
		require.NoError(t, err)
		full := f.Take("w", 200)
		assert.Zero(t, full.Delivery.DueAt, "nobody knows when a batch became full")
		_, next, err := f.CompleteAndAcquire(t.Context(), full, storetest.Done, bus.Failing, storetest.After(200))
		require.NoError(t, err)
		require.NoError(t, next.Err)
		late := next.Task
		assert.Equal(t, storetest.After(107), late.Delivery.DueAt)
		_, err = f.CompleteAt(t.Context(), late, storetest.Result{RetryAt: storetest.After(200)}, storetest.After(200))
		require.NoError(t, err)
		_, err = f.Schedule(t.Context(), bus.QueueMain, storetest.After(200), 10)
		require.NoError(t, err)
		assert.Zero(t, f.Take("w", 201).Delivery.DueAt, "nor when a retry was due")
	})
}

func TestSnapshot(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		ctx := t.Context()
		f.AddSubscriber(storetest.Alice, 100*time.Millisecond, 2, "widgets")
		f.AddSubscriber(storetest.Bob, 100*time.Millisecond, 2, "gadgets")
		f.PublishEvents("widgets", 1, 3, 7)
		server.Raw.HSet(ctx, "subscriber:"+string(storetest.Alice), "health_points", 40)
		backlog := store.Backlog{Client: "alice", Events: 3, Batches: 2, Subscribed: true, Health: 40, OldestAt: storetest.After(7)}
		idle := store.Backlog{Client: "bob", Subscribed: true, Health: 100}
		snapshot, err := f.Snapshot(ctx, storetest.After(106))
		require.NoError(t, err)
		assert.Equal(t, []store.Backlog{backlog, idle}, snapshot.Backlogs)
		assert.Equal(t, map[bus.Queue]store.JobCounts{bus.QueueMain: {Instant: 1, Scheduled: 1}, bus.QueueAux: {}}, snapshot.Jobs)
		assert.Equal(t, int64(1), snapshot.Due)
		if server.IsEmbedded() {
			assert.Nil(t, snapshot.Memory)
		} else {
			assert.Positive(t, snapshot.Memory.Used)
			cpu, err := f.Partition.Client().CPU(ctx)
			require.NoError(t, err)
			assert.Positive(t, cpu.User+cpu.System)
		}
		require.NoError(t, f.DeleteSubscriber(ctx, storetest.Alice))
		snapshot, err = f.Snapshot(ctx, storetest.After(107))
		require.NoError(t, err)
		backlog.Subscribed, backlog.Health = false, 100
		assert.Equal(t, []store.Backlog{backlog, idle}, snapshot.Backlogs)
		assert.Equal(t, int64(2), snapshot.Due)
	})
}

// TestASnapshotGetsPastWhatIsPoisoned looks at everybody else when the data of one has been
// tampered with.
func TestASnapshotGetsPastWhatIsPoisoned(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		for _, c := range poisons {
			require.NoError(t, server.Raw.FlushAll(t.Context()).Err())
			f := newFixture(t, server)
			f.AddSubscriber(storetest.Alice, time.Hour, 3, "widgets")
			f.AddSubscriber(storetest.Bob, time.Hour, 3, "widgets")
			f.PublishEvents("widgets", 1, 1, 7)
			c.poison(t, f.Redis)
			require.NoError(t, f.Redis.ZAdd(t.Context(), "batches:index", redis.Z{Member: "ABCDEFGHIJKLMNOPQRST"}).Err())
			require.NoError(t, f.Redis.Set(t.Context(), "batch:ABCDEFGHIJKLMNOPQRST", "x", 0).Err())
			snapshot, err := f.Snapshot(t.Context(), storetest.After(0))
			require.NoError(t, err, c.name)
			alices := store.Backlog{Client: "alice", Events: 1, Batches: 1, Subscribed: true, Health: 100, OldestAt: storetest.After(7)}
			assert.Contains(t, snapshot.Backlogs, alices, c.name)
			if c.name == "the subscriber is no hash" {
				bobs := store.Backlog{Client: "bob", Events: 1, Batches: 1, OldestAt: storetest.After(7)}
				assert.Contains(t, snapshot.Backlogs, bobs, "nobody knows its health")
				assert.Equal(t, []string{"subscriber:bob"}, snapshot.Damaged)
			} else {
				assert.Empty(t, snapshot.Damaged, c.name)
			}
		}
	})
}
