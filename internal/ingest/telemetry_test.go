package ingest_test

import (
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/ingest"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store"
	"routemaster/internal/store/storetest"
	"routemaster/internal/telemetry"
	"routemaster/internal/wire"
	"routemaster/internal/wire/wiretest"
)

// BenchmarkTelemetry publishes without and with a recorder, in turns on one Redis, so that other
// load of the host affects both. It reports how much longer publishing takes with a recorder.
func BenchmarkTelemetry(b *testing.B) {
	const publishers, each = 64, 50
	server := rdbtest.Real(b)
	st := storetest.Open(b, server)
	ctx := b.Context()
	require.NoError(b, st.PutToken(ctx, "publisher--1", "publisher"))
	require.NoError(b, st.PutToken(ctx, "subscriber--1", "subscriber"))
	timeout, maxEvents := time.Hour, 10_000
	require.NoError(b, st.Subscribe(ctx, "subscriber--1", bus.Subscription{
		Topics: []bus.TopicName{"widgets"}, Callback: "https://s.example/", Timeout: &timeout, MaxEvents: &maxEvents,
	}, time.Now()))
	recorder := telemetry.NewRecorder(telemetry.NewRegistry(), st, slog.New(slog.DiscardHandler))
	ingests := []*ingest.Ingest{ingest.New(store.NewBus(st), ingest.Options{}), ingest.New(store.NewBus(st), ingest.Options{Recorder: recorder})}
	var took [2]time.Duration
	events := []wire.PackedEvent{wiretest.Pack(b, "widgets", `{"type":"update","url":"https://x.example/12"}`)}
	round := func(in *ingest.Ingest) time.Duration {
		var publishing sync.WaitGroup
		begun := time.Now()
		for range publishers {
			publishing.Go(func() {
				for range each {
					if err := in.Publish(ctx, "publisher--1", "widgets", events, nil); err != nil {
						b.Error(err)
					}
				}
			})
		}
		publishing.Wait()
		return time.Since(begun)
	}
	n := 0
	for b.Loop() {
		for i := range ingests {
			which := (i + n) % 2 // neither is always the first
			took[which] += round(ingests[which])
		}
		if n++; n%20 == 0 {
			recorder.Flush(ctx)
		}
	}
	perPublish := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / float64(n*publishers*each) }
	b.ReportMetric(perPublish(took[0]), "ns/publish-without")
	b.ReportMetric(perPublish(took[1]), "ns/publish-with")
	b.ReportMetric(100*(took[1].Seconds()/took[0].Seconds()-1), "%-more")
}
