package metrics_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"

	"routemaster/internal/bus"
	"routemaster/internal/machines"
	"routemaster/internal/telemetry/metrics"
)

func TestLabelsAreScraped(t *testing.T) {
	registry := metrics.NewRegistry()
	registry.AddMachines(func(context.Context) ([]machines.Count, error) {
		return []machines.Count{{
			Machine: `we"ird`, Errored: 2, States: []machines.StateCount{{State: "start", Labels: 3}, {State: "end"}},
		}}, nil
	})
	text := page(t, registry)
	assert.Contains(t, text, `routemaster_labels{machine="we\"ird",state="start"} 3`)
	assert.Contains(t, text, `routemaster_labels{machine="we\"ird",state="end"} 0`)
	assert.Contains(t, text, `routemaster_labels_errored{machine="we\"ird"} 2`)
	unavailable := metrics.NewRegistry()
	unavailable.AddMachines(func(context.Context) ([]machines.Count, error) { return nil, bus.ErrUnavailable })
	assert.NotContains(t, page(t, unavailable), "routemaster_labels")
}
