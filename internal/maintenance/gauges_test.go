package maintenance_test

import (
	"context"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/assert"

	"routemaster/internal/bus"
	"routemaster/internal/maintenance"
	"routemaster/internal/queue"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store/stores"
	"routemaster/internal/store/storetest"
	"routemaster/internal/telemetry/metricservice"
)

// sent is a metric service that keeps what it was sent last.
type sent map[string]int64

func (s sent) TakesIncrements() bool { return false }

func (s sent) Send(_ context.Context, measures []metricservice.Measure) error {
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
	gauges := func(context.Context) ([]metricservice.Measure, error) {
		return []metricservice.Measure{{Counter: bus.NewCounter("depth"), Value: 7, Gauge: true}}, failure
	}
	monitor := maintenance.NewMonitor(stores.New(st), bus.MemoryLimits{}, service, slog.New(slog.DiscardHandler), frozen, gauges)
	assert.Equal(t, queue.Done, monitor.Monitor(t.Context(), nil))
	assert.EqualValues(t, 7, service["depth"])
	assert.Contains(t, service, "jobs.count")

	clear(service)
	failure = bus.ErrUnavailable
	monitor.Monitor(t.Context(), nil)
	assert.Empty(t, service, "half of it would look as if the rest were 0")
}
