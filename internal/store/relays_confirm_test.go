package store_test

import (
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/rdb"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store"
	"routemaster/internal/store/storetest"
)

// TestARelayIsHandedOverOnceReplicasKnowOfIt: at first no replica confirms that it was taken.
func TestARelayIsHandedOverOnceReplicasKnowOfIt(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		w, to, ctx := storetest.NewPartitions(t, server.Open(t)), rdb.Number(1), t.Context()
		var confirming []*store.Relays
		client := server.Open(t, func(o *rdb.Options) { o.MinReplicas = 1 })
		for _, p := range client.Partitions("", storetest.PartitionCount) {
			confirming = append(confirming, store.NewRelays(storetest.OpenOn(p)))
		}
		relayer := store.NewRelayer(confirming, slog.New(slog.DiscardHandler), w.Now)
		name := w.TopicIn(0, 0)
		token, other := w.AddSubscriber(to, 100, name), w.AddSubscriber(to+1, 100, name)
		w.PublishEvents(name, 1, 3)
		for _, worker := range []bus.WorkerID{"worker", "other"} {
			task := w.TakeRelay(0, worker)
			result := relayer.Relay(ctx, task) // the second, to another partition, is put off without a try
			assert.Equal(t, w.Now().Add(50*time.Millisecond), result.RetryAt)
			owned, err := w.Queues[0].Complete(ctx, task, result, w.Now())
			require.NoError(t, err)
			assert.True(t, owned)
		}
		assert.Empty(t, w.Received(to, token, name))
		assert.Empty(t, w.Received(to+1, other, name))
		w.MS += 50
		assert.Equal(t, 2, w.Relay(0))
		assert.Equal(t, storetest.UpTo(1, 3), w.Received(to, token, name))
		assert.Equal(t, storetest.UpTo(1, 3), w.Received(to+1, other, name))
	})
}
