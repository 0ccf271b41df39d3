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

// BenchmarkCompleteAndAcquire is what a delivery costs beside its POST, while its subscriber's
// queue is long. Script-µs is what Redis spends on it.
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
				// While one batch is delivered, another thread sends all the others to their lane.
				first := f.Take("worker-1", 0)
				for f.Redis.LLen(b.Context(), "jobs:instant:main").Val() > 0 {
					require.Nil(b, f.Take("worker-2", 0))
				}
				return first
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

// scriptTime is what Redis has spent in scripts.
func scriptTime(b *testing.B, f *fixture) time.Duration {
	info, err := f.Redis.Info(b.Context(), "commandstats").Result()
	require.NoError(b, err)
	_, after, _ := strings.Cut(info, "\ncmdstat_evalsha:")
	var calls, microseconds int64
	_, err = fmt.Sscanf(after, "calls=%d,usec=%d", &calls, &microseconds)
	require.NoError(b, err)
	return time.Duration(microseconds) * time.Microsecond
}
