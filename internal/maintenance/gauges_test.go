package maintenance_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/maintenance"
	"routemaster/internal/queue"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store"
	"routemaster/internal/store/storetest"
	"routemaster/internal/telemetry/vendors"
)

// sent is a metric service that keeps what it was sent last.
type sent map[string]int64

func (s sent) TakesIncrements() bool { return false }

func (s sent) Send(_ context.Context, measures []vendors.Measure) error {
	clear(s)
	for _, m := range measures {
		s[m.Name] = m.Value
	}
	return nil
}

func TestAMonitorSendsTheGaugesOfOthers(t *testing.T) {
	st := storetest.Open(t, rdbtest.Embedded(t))
	service := sent{}
	var failure error
	gauges := func(context.Context) ([]vendors.Measure, error) {
		return []vendors.Measure{{Counter: bus.NewCounter("depth"), Value: 7, Gauge: true}}, failure
	}
	monitor := maintenance.NewMonitor(store.NewBus(st), bus.MemoryLimits{}, service, slog.New(slog.DiscardHandler), frozen, gauges)
	assert.Equal(t, queue.Done, monitor.Monitor(t.Context(), nil))
	assert.EqualValues(t, 7, service["depth"])
	assert.Contains(t, service, "jobs.count")

	clear(service)
	failure = bus.ErrUnavailable
	monitor.Monitor(t.Context(), nil)
	assert.Empty(t, service, "half of it would look as if the rest were 0")
}

func TestDamagedKeysAreLoggedWithoutAMetricService(t *testing.T) {
	redis := rdbtest.Embedded(t)
	st := storetest.Open(t, redis)
	var lines bytes.Buffer
	monitor := maintenance.NewMonitor(store.NewBus(st), bus.MemoryLimits{}, nil, slog.New(slog.NewTextHandler(&lines, nil)), frozen)
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
