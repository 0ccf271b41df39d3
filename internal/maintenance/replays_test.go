package maintenance_test

import (
	"bytes"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/maintenance"
	"routemaster/internal/queue"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store"
	"routemaster/internal/store/storetest"
)

// TestScrubQueuesCopiesReplays replays to a subscriber that receives nothing meanwhile.
func TestScrubQueuesCopiesReplays(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		b, ctx := storetest.NewBus(t, server), t.Context()
		b.PublishEvents("widgets", 1, 1, 0)
		require.NoError(t, store.NewHistory(b.Store).Put(ctx, "widgets", "", store.HistoryLimits{Events: 5000}, storetest.Start))
		b.PublishEvents("widgets", 2, 1501, 0)
		b.AddSubscriber(storetest.Alice, time.Hour, 1000, "widgets")
		started, err := store.NewReplays(store.NewBus(b.Store), b.Store).Start(ctx, storetest.Alice, "widgets", store.ReplayRange{From: 1}, storetest.Start)
		require.NoError(t, err)

		var log bytes.Buffer
		recorder := newRecorder(b.Store)
		keeper := maintenance.New(store.NewBus(b.Store), b.Store, b.Queue, bus.MemoryLimits{}, recorder, slog.New(slog.NewTextHandler(&log, nil)), time.Now)
		for range 2 {
			require.Equal(t, queue.Done, keeper.ScrubQueues(ctx, nil))
		}
		assert.Contains(t, log.String(), `level=INFO msg="a replay ended" replay=`+string(started.ID)+
			" topic=widgets state=done copied=1500 skipped=0 subscriber=alice\n")
		assert.Equal(t, int64(1500), flushed(t, b.Store, recorder)[bus.NewCounter("events.added", bus.Tag{Name: "queue", Value: "alice"})])
		b.RequireSound()
	})
}
