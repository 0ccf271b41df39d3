package telemetry_test

import (
	"log/slog"
	"testing"

	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store/storetest"
	"routemaster/internal/telemetry"
)

// BenchmarkRecorder measures the cost of a count: for the process alone, for the bus too, and with
// three labels.
func BenchmarkRecorder(b *testing.B) {
	r := telemetry.NewRecorder(telemetry.NewRegistry(), storetest.Open(b, rdbtest.Embedded(b)), slog.New(slog.DiscardHandler))
	b.Run("process", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			r.Count(telemetry.RejectedEvents, 1, "alice")
		}
	})
	b.Run("bus", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			r.Count(telemetry.Deliveries, 1, "alice", telemetry.Success)
		}
	})
	b.Run("labels", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			r.Count(telemetry.EndedJobs, 1, "ship", "succeeded", telemetry.Web)
		}
	})
	b.Run("tokens", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			r.CountFor(telemetry.EnqueuedEvents, 1, "alice--1 bob--1 carol--1")
		}
	})
}
