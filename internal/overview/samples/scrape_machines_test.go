package samples_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"routemaster/internal/bus"
	"routemaster/internal/machines"
	"routemaster/internal/overview/samples"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store/storetest"
	"routemaster/internal/telemetry"
)

func TestLabelsAreScraped(t *testing.T) {
	config := busOf(storetest.Open(t, rdbtest.Embedded(t)))
	config.Machines = samples.Machines{
		Count: func(context.Context) ([]machines.Count, error) {
			return []machines.Count{{
				Machine: `we"ird`, Errored: 2, States: []machines.StateCount{{State: "start", Labels: 3}, {State: "end"}},
			}}, nil
		},
		Counters: func(_ context.Context, asked []bus.Counter) (map[bus.Counter]int64, error) {
			assert.Len(t, asked, len(telemetry.BusOutcomes))
			return map[bus.Counter]int64{telemetry.BusLabelSteps.Bus(`we"ird`, "moved"): 4, telemetry.BusLabelSteps.Bus("another", "moved"): 5}, nil
		},
	}
	text := page(t, scraped(config, time.Now))
	assert.Contains(t, text, `routemaster_labels{machine="we\"ird",state="start"} 3`)
	assert.Contains(t, text, `routemaster_labels{machine="we\"ird",state="end"} 0`)
	assert.Contains(t, text, `routemaster_labels_errored{machine="we\"ird"} 2`)
	assert.Contains(t, text, `routemaster_bus_label_steps_total{machine="we\"ird",outcome="moved"} 4`)
	assert.Contains(t, text, `routemaster_bus_label_steps_total{machine="we\"ird",outcome="errored"} 0`)
	assert.NotContains(t, text, `outcome="closed"`)
	config.Machines.Count = func(context.Context) ([]machines.Count, error) { return nil, bus.ErrUnavailable }
	assert.NotContains(t, page(t, scraped(config, time.Now)), "routemaster_labels")
}
