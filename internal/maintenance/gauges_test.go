package maintenance_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/jobs"
	"routemaster/internal/layout"
	"routemaster/internal/maintenance"
	"routemaster/internal/overview/samples"
	"routemaster/internal/queue"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store"
	"routemaster/internal/store/storetest"
	"routemaster/internal/telemetry/vendors"
)

// sent is a metric service that keeps the last values it received.
type sent map[string]int64

func (s sent) TakesIncrements() bool { return false }

func (s sent) Send(_ context.Context, measures []vendors.Measure) error {
	clear(s)
	for _, m := range measures {
		s[m.Name] = m.Value
	}
	return nil
}

// monitored are samples of a bus with some job types.
func monitored(st *store.Store, types func() ([]jobs.CountedType, error)) *samples.Collector {
	return samples.NewCollector(samples.Config{
		Stores: store.NewBus(st), CountJobs: func(context.Context) ([]jobs.CountedType, error) { return types() },
	}, frozen)
}

// TestAMonitorSendsWhatWaitsForServices as the service that jobs replace did.
func TestAMonitorSendsWhatWaitsForServices(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		st, ctx := storetest.Open(t, server), t.Context()
		service := sent{}
		var types []jobs.CountedType
		var failure error
		collector := monitored(st, func() ([]jobs.CountedType, error) { return types, failure })
		monitor := maintenance.NewMonitor(store.NewBus(st), collector, service, slog.New(slog.DiscardHandler))
		ofJobs := func() map[string]int64 {
			t.Helper()
			clear(service)
			require.Eventually(t, func() bool { // Redis has half a second for each part
				assert.Equal(t, queue.Done, monitor.Monitor(ctx, nil))
				return len(service) > 0
			}, time.Minute, time.Millisecond)
			assert.Contains(t, service, "jobs.count")
			found := map[string]int64{}
			for name, n := range service {
				if depth, ok := strings.CutPrefix(name, "rickover.dequeuer."); ok {
					found[depth] = n
				}
			}
			return found
		}
		assert.Empty(t, ofJobs(), "there is no type")

		keys, now := layout.Keys{Namespace: st.Partition().Namespace()}, float64(frozen().UnixMilli())
		require.NoError(t, server.Raw.LPush(ctx, keys.Instant(bus.QueueJobs), "a").Err())
		require.NoError(t, server.Raw.ZAdd(ctx, keys.Scheduled(bus.QueueJobs),
			redis.Z{Member: "b", Score: now}, redis.Z{Member: "c", Score: now + 1}).Err())
		types = []jobs.CountedType{
			{Type: jobs.Type{Name: "pay"}, Counts: jobs.Counts{Queued: 2, Waiting: 1}},
			{Type: jobs.Type{Name: "ship"}, Counts: jobs.Counts{Queued: 3, Waiting: 2, InProgress: 3}},
		}
		assert.Equal(t, map[string]int64{
			"queue_depth.all": 8, "queue_depth.ready": 3 + 3 + 2, "queued_jobs.in_progress": 3,
			"queued_jobs.ship.in_progress": 3, "queued_jobs.pay.in_progress": 0,
		}, ofJobs())

		clear(service)
		failure = bus.ErrUnavailable
		monitor.Monitor(ctx, nil)
		assert.Empty(t, service, "half of it would look as if the rest were 0")
	})
}

func TestDamagedKeysAreLoggedWithoutAMetricService(t *testing.T) {
	redis := rdbtest.Embedded(t)
	st := storetest.Open(t, redis)
	var lines bytes.Buffer
	monitor := maintenance.NewMonitor(store.NewBus(st), monitored(st, nil), nil, slog.New(slog.NewTextHandler(&lines, nil)))
	monitor.Monitor(t.Context(), nil)
	assert.Empty(t, lines.String())
	require.NoError(t, st.PutToken(t.Context(), "alice--1", "alice"))
	subscription := bus.Subscription{Topics: []bus.TopicName{"widgets"}, Callback: "https://alice.example/events"}
	require.NoError(t, st.Subscribe(t.Context(), "alice--1", subscription, frozen()))
	require.NoError(t, st.Partition().Set(t.Context(), st.Partition().Namespace()+"subscriber:alice--1", "x", 0).Err())
	monitor.Monitor(t.Context(), nil)
	monitor.Monitor(t.Context(), nil)
	assert.Equal(t, 1, strings.Count(lines.String(), "subscriber data is damaged"), "%s", &lines)
}
