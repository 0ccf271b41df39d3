package samples

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/overview"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store"
	"routemaster/internal/store/storetest"
	"routemaster/internal/wire"
)

// BenchmarkSample takes samples of a large bus.
func BenchmarkSample(b *testing.B) {
	f := newLargeFixture(b)
	var sample overview.Sample
	f.repeat(b, func(ctx context.Context) { sample = f.Collect(ctx, Look) })
	require.Len(b, sample.Subscribers, 1000)
	require.Len(b, sample.Topics, 500)
	require.Empty(b, sample.Unread)
}

// BenchmarkLive takes samples of a large bus, and makes the figures that people look at.
func BenchmarkLive(b *testing.B) {
	f := newLargeFixture(b)
	live := NewLive(f.Collector)
	f.repeat(b, func(ctx context.Context) { live.refresh(ctx, 0) })
	require.Len(b, live.figures.Subscribers, 1000)
	require.Len(b, live.figures.Topics, 500)
	require.Empty(b, live.figures.Unread)
}

// newLargeFixture makes a bus with 1,000 subscribers, all of them with queued events, and 500
// topics.
func newLargeFixture(b *testing.B) *fixture {
	server := rdbtest.Real(b)
	f := &fixture{Bus: storetest.NewBus(b, server), server: server, at: storetest.After(10_000)}
	f.Collector = f.collectorOf(f.Store)
	for i := range 1000 {
		token := bus.Token(fmt.Sprintf("service%d--1", i))
		require.NoError(b, f.PutToken(b.Context(), token, bus.ClientName(fmt.Sprintf("service%d", i))))
		f.AddSubscriber(token, time.Hour, 100, bus.TopicName(fmt.Sprintf("topic%d", i%500)))
		f.attempted(token, wire.AttemptRecord{Outcome: bus.OutcomeFailed, Status: 503})
	}
	for i := range 500 {
		topic := bus.TopicName(fmt.Sprintf("topic%d", i))
		require.NoError(b, f.Publish(b.Context(), store.Publication{
			Topic: topic, Publisher: storetest.Publisher, Events: []wire.PackedEvent{storetest.Packed(b, topic, 1)},
			ReceivedAt: storetest.Start.UnixMilli(),
		}))
	}
	return f
}

// repeat measures work that is repeated while the bus is watched. It also reports Redis's share of
// the processor time.
func (f *fixture) repeat(b *testing.B, do func(context.Context)) {
	b.ReportAllocs()
	before, err := f.Partition.CPU(b.Context())
	require.NoError(b, err)
	for b.Loop() {
		f.at = f.at.Add(Interval(1500))
		do(b.Context())
	}
	after, err := f.Partition.CPU(b.Context())
	require.NoError(b, err)
	spent := after.User + after.System - before.User - before.System
	b.ReportMetric(float64(spent.Milliseconds())/float64(b.N), "redis-ms/op")
}
