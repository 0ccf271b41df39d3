package store_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store"
	"routemaster/internal/store/storetest"
	"routemaster/internal/wire"
	"routemaster/internal/wire/wiretest"
)

// usual is an event of a usual size.
const usual = `{"type":"update","url":"https://warehouse.example/widgets/1234567890",` +
	`"timestamp":1700000000000,"data":{"stock":3,"colour":"red"}}`

// BenchmarkCommit is one publish, up to Redis' answer.
func BenchmarkCommit(b *testing.B) {
	for _, size := range []struct{ events, subscribers int }{{1, 0}, {1, 1}, {1, 2}, {100, 1}} {
		b.Run(fmt.Sprintf("events=%d/subscribers=%d", size.events, size.subscribers), func(b *testing.B) {
			f := newFixture(b, rdbtest.Real(b))
			for _, token := range []bus.Token{storetest.Alice, storetest.Bob}[:size.subscribers] {
				f.AddSubscriber(token, time.Hour, 100, "widgets")
			}
			event := wiretest.Pack(b, "widgets", usual)
			p := store.Publication{Topic: "widgets", Publisher: storetest.Publisher, ReceivedAt: storetest.Start.UnixMilli()}
			for range size.events {
				p.Events = append(p.Events, event)
			}
			b.ReportAllocs()
			for b.Loop() {
				if err := f.Publish(b.Context(), p); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkCompleteAndAcquire measures the cost of a delivery without its POST, while its
// subscriber's queue is long. Script-µs is the time spent in Redis.
func BenchmarkCompleteAndAcquire(b *testing.B) {
	for _, events := range []int{1, 100} {
		b.Run(fmt.Sprintf("events=%d", events), func(b *testing.B) {
			f := newFixture(b, rdbtest.Real(b))
			f.AddSubscriber(storetest.Alice, 0, events, "widgets")
			event := wiretest.Pack(b, "widgets", usual)
			fill := func() *storetest.Task {
				for range 10 {
					require.NoError(b, f.Publish(b.Context(), store.Publication{
						Topic: "widgets", Publisher: storetest.Publisher, ReceivedAt: storetest.Start.UnixMilli(), Events: slices.Repeat([]wire.PackedEvent{event}, 1000),
					}))
				}
				return waitInLane(b, f)
			}
			task := fill()
			before := scriptTime(b, f)
			b.ReportAllocs()
			for b.Loop() {
				_, next, err := f.CompleteAndAcquire(b.Context(), task, storetest.Result{Delivered: events}, bus.Failing, storetest.Start)
				if err != nil || next.Err != nil {
					b.Fatal(err, next.Err)
				}
				if task = next.Task; task == nil {
					b.StopTimer()
					filling := scriptTime(b, f)
					task = fill()
					before += scriptTime(b, f) - filling
					b.StartTimer()
				}
			}
			b.ReportMetric(float64((scriptTime(b, f)-before).Nanoseconds())/1000/float64(b.N), "script-µs/op")
		})
	}
}

// waitInLane takes a batch. While that is delivered, another thread sends all the others to their
// lane, where batches published meanwhile wait, too.
func waitInLane(b *testing.B, f *fixture) (first *storetest.Task) {
	first = f.Take("worker-1", 0)
	for f.Redis.LLen(b.Context(), "jobs:instant:main").Val() > 0 {
		require.Nil(b, f.Take("worker-2", 0))
	}
	return first
}

// BenchmarkMemory measures the memory in Redis of an event in a batch of its own: before a worker
// has looked at the batch, and while it waits in its lane.
func BenchmarkMemory(b *testing.B) {
	for _, state := range []string{"instant", "lane"} {
		b.Run(state, func(b *testing.B) {
			f := newFixture(b, rdbtest.Real(b))
			f.AddSubscriber(storetest.Alice, 0, 1, "widgets")
			event := wiretest.Pack(b, "widgets", usual)
			const array = 1000
			publish := func() {
				require.NoError(b, f.Publish(b.Context(), store.Publication{
					Topic: "widgets", Publisher: storetest.Publisher, ReceivedAt: storetest.Start.UnixMilli(), Events: slices.Repeat([]wire.PackedEvent{event}, array),
				}))
			}
			publish()
			if state == "lane" {
				waitInLane(b, f)
			}
			var events, before, after float64
			_, err := fmt.Sscanf(infoAfter(b, f, "memory", "used_memory:"), "%f", &before)
			require.NoError(b, err)
			for b.Loop() {
				publish()
				events += array
			}
			_, err = fmt.Sscanf(infoAfter(b, f, "memory", "used_memory:"), "%f", &after)
			require.NoError(b, err)
			b.ReportMetric((after-before)/events, "redis-B/event")
			b.ReportMetric((after-before)/events/float64(len(event)), "redis-B/packed-B")
		})
	}
}

// scriptTime returns the time that Redis has spent in scripts.
func scriptTime(b *testing.B, f *fixture) time.Duration {
	var calls, microseconds int64
	_, err := fmt.Sscanf(infoAfter(b, f, "commandstats", "cmdstat_evalsha:"), "calls=%d,usec=%d", &calls, &microseconds)
	require.NoError(b, err)
	return time.Duration(microseconds) * time.Microsecond
}

// infoAfter returns the text after a name in a section of INFO.
func infoAfter(b *testing.B, f *fixture, section, name string) string {
	info, err := f.Redis.Info(b.Context(), section).Result()
	require.NoError(b, err)
	_, after, found := strings.Cut(info, "\n"+name)
	require.True(b, found)
	return after
}
