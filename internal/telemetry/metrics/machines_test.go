package metrics_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"

	"routemaster/internal/bus"
	"routemaster/internal/machines"
	"routemaster/internal/telemetry"
	"routemaster/internal/telemetry/metrics"
)

func TestLabelsAreScraped(t *testing.T) {
	registry := metrics.NewRegistry()
	registry.AddMachines(telemetry.Machines{
		Count: func(context.Context) ([]machines.Count, error) {
			return []machines.Count{{
				Machine: `we"ird`, Errored: 2, States: []machines.StateCount{{State: "start", Labels: 3}, {State: "end"}},
			}}, nil
		},
		Counters: func(_ context.Context, asked []bus.Counter) (map[bus.Counter]int64, error) {
			assert.Len(t, asked, len(telemetry.BusOutcomes))
			return map[bus.Counter]int64{telemetry.LabelSteps(`we"ird`, "moved"): 4, telemetry.LabelSteps("another", "moved"): 5}, nil
		},
	})
	text := page(t, registry)
	assert.Contains(t, text, `routemaster_labels{machine="we\"ird",state="start"} 3`)
	assert.Contains(t, text, `routemaster_labels{machine="we\"ird",state="end"} 0`)
	assert.Contains(t, text, `routemaster_labels_errored{machine="we\"ird"} 2`)
	assert.Contains(t, text, `routemaster_bus_label_steps_total{machine="we\"ird",outcome="moved"} 4`)
	assert.Contains(t, text, `routemaster_bus_label_steps_total{machine="we\"ird",outcome="errored"} 0`)
	assert.NotContains(t, text, `outcome="closed"`)
	unavailable := metrics.NewRegistry()
	unavailable.AddMachines(telemetry.Machines{Count: func(context.Context) ([]machines.Count, error) { return nil, bus.ErrUnavailable }})
	assert.NotContains(t, page(t, unavailable), "routemaster_labels")
}
