package telemetry_test

import (
	"log/slog"
	"testing"
	"time"

	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store"
	"routemaster/internal/store/storetest"
	"routemaster/internal/telemetry"
	"routemaster/internal/telemetry/metrics"
)

// BenchmarkRecorder is what one publish, one delivery, and one job cost the process.
func BenchmarkRecorder(b *testing.B) {
	r := telemetry.NewRecorder(metrics.NewRegistry(), storetest.Open(b, rdbtest.Embedded(b)), slog.New(slog.DiscardHandler))
	b.Run("publish", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			r.Published("widgets", "shop--1", 1, 60, "alice--1 bob--1 carol--1")
			r.PublishTook(time.Millisecond)
			r.Committed(1)
		}
	})
	b.Run("delivery", func(b *testing.B) {
		b.ReportAllocs()
		now := time.Now()
		batch := &store.Delivery{Client: "alice", Attempts: 1, CreatedAt: now, DueAt: now}
		for b.Loop() {
			r.Taken(batch, now)
			r.Delivered(batch, 10, now, time.Millisecond, nil)
			r.Removed("alice", 10)
		}
	})
	b.Run("job", func(b *testing.B) { // in web and in the worker together
		b.ReportAllocs()
		for b.Loop() {
			r.JobsEnqueued("ship", 1)
			r.JobTried("ship", "accepted", time.Millisecond)
			r.JobReported("ship", "succeeded")
		}
	})
}
