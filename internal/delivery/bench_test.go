package delivery_test

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"routemaster/internal/delivery"
	"routemaster/internal/outbound"
	"routemaster/internal/queue"
	"routemaster/internal/store"
	"routemaster/internal/telemetry"
	"routemaster/internal/wire"
	"routemaster/internal/wire/wiretest"
)

// BenchmarkDeliver delivers a batch of one event over a connection that is kept, with the telemetry
// that a worker has. Half of it is the receiver's.
func BenchmarkDeliver(b *testing.B) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }))
	defer server.Close()
	log := slog.New(slog.DiscardHandler)
	client := outbound.New(outbound.Config{ConnectTimeout: time.Minute, Timeout: time.Minute, MaxIdle: 4}, time.Now)
	defer client.Close()
	d := delivery.New(delivery.Config{
		Client:   client,
		Policy:   delivery.Policy{HealRate: 1, DamageRate: -2, MaxBackoff: time.Minute},
		Recorder: telemetry.NewRecorder(telemetry.NewRegistry(), nil, log),
	}, log, time.Now)
	event := wiretest.Pack(b, "widgets", `{"type":"create","url":"https://x.example/1","timestamp":5}`)
	b.ReportAllocs()
	for b.Loop() {
		task := &queue.Task{Payload: &store.Delivery{Client: "alice", Callback: server.URL, Attempts: 1, Health: 100, Events: []wire.PackedEvent{event}}}
		if result := d.Deliver(b.Context(), task); result.Detail.(store.DeliveryResult).Delivered != 1 {
			b.Fatal(result)
		}
	}
}
