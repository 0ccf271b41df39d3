package ingest_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/ingest"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store"
	"routemaster/internal/store/storetest"
	"routemaster/internal/wire"
	"routemaster/internal/wire/wiretest"
)

func TestMain(m *testing.M) { rdbtest.Main(m) }

func TestEventsAreDueByTheirTimeOfReceipt(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		ctx := t.Context()
		st := storetest.Open(t, server)
		received := time.UnixMilli(1_700_000_000_000)
		in := ingest.New(store.NewBus(st), ingest.Options{Now: func() time.Time { return received }})
		require.NoError(t, st.PutToken(ctx, "p", "publisher"))
		require.NoError(t, st.PutToken(ctx, "s", "subscriber"))
		timeout := 250 * time.Millisecond
		require.NoError(t, st.Subscribe(ctx, "s", bus.Subscription{
			Topics: []bus.TopicName{"widgets"}, Callback: "https://s.example/", Timeout: &timeout,
		}, received))

		event := wiretest.Pack(t, "widgets", `{"type":"noop","url":"https://x.example/","timestamp":9000000000000000}`)
		require.NoError(t, in.Publish(ctx, "p", "widgets", []wire.PackedEvent{event}, nil))
		due, err := storetest.NewQueue(st, 1).Due(ctx, bus.QueueMain, received.Add(timeout))
		require.NoError(t, err)
		assert.Equal(t, int64(1), due, "not by its timestamp")
	})
}
