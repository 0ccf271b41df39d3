package ingest_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/ingest"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store/storetest"
	"routemaster/internal/wire"
)

func TestMain(m *testing.M) { rdbtest.Main(m) }

func TestPackAndPublish(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		ctx := t.Context()
		st := storetest.Open(t, server)
		received := time.UnixMilli(1_700_000_000_000)
		in := ingest.New(st, 8, nil, func() time.Time { return received })
		require.NoError(t, st.PutToken(ctx, "p", "publisher"))
		require.NoError(t, st.PutToken(ctx, "s", "subscriber"))
		timeout := 250 * time.Millisecond
		require.NoError(t, st.Subscribe(ctx, "s", bus.Subscription{
			Topics: []bus.TopicName{"widgets"}, Callback: "https://s.example/", Timeout: &timeout,
		}, received))

		event := bus.Event{Topic: "widgets", Type: bus.Noop, URL: "https://x.example/", Timestamp: 9e15, Data: []byte(`"1234567"`)}
		packed, err := in.Pack(&event)
		require.NoError(t, err)
		require.NoError(t, in.Publish(ctx, "p", "widgets", []wire.PackedEvent{packed}, nil))
		due, err := st.DueJobs(ctx, bus.QueueMain, received.Add(timeout))
		require.NoError(t, err)
		assert.Equal(t, int64(1), due, "it is due by its time of receipt, not by its timestamp")

		for pointer, change := range map[string]func(*bus.Event){
			"/data": func(e *bus.Event) { e.Data = []byte(`"12345678"`) },
			"/type": func(e *bus.Event) { e.Type = "changed" },
			"/url":  func(e *bus.Event) { e.URL = "http://x.example/" },
		} {
			wrong := event
			change(&wrong)
			_, err := in.Pack(&wrong)
			var invalid *bus.Invalid
			require.ErrorAs(t, err, &invalid)
			assert.Equal(t, pointer, invalid.Pointer)
		}
	})
}
