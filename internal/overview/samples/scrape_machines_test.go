package samples_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/machines"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store/storetest"
	"routemaster/internal/telemetry"
)

func TestLabelsAreScraped(t *testing.T) {
	st := storetest.Open(t, rdbtest.Embedded(t))
	require.NoError(t, st.AddCounters(t.Context(), map[bus.Counter]int64{
		telemetry.BusLabelSteps.Bus(`we"ird`, "moved"): 4, telemetry.BusLabelSteps.Bus("another", "moved"): 5,
	}))
	config := busOf(st)
	config.CountLabels = func(context.Context) ([]machines.Count, error) {
		return []machines.Count{{
			Machine: `we"ird`, Errored: 2, States: []machines.StateCount{{State: "start", Labels: 3}, {State: "end"}},
		}}, nil
	}
	text := shownOf(t, config, time.Now)
	assert.Contains(t, text, `routemaster_labels{machine="we\"ird",state="start"} 3`)
	assert.Contains(t, text, `routemaster_labels{machine="we\"ird",state="end"} 0`)
	assert.Contains(t, text, `routemaster_labels_errored{machine="we\"ird"} 2`)
	assert.Contains(t, text, `routemaster_bus_label_steps_total{machine="we\"ird",outcome="moved"} 4`)
	assert.Contains(t, text, `routemaster_bus_label_steps_total{machine="we\"ird",outcome="errored"} 0`)
	assert.NotContains(t, text, `outcome="closed"`)
	assert.NotContains(t, text, "another")
	config.CountLabels = func(context.Context) ([]machines.Count, error) { return nil, bus.ErrUnavailable }
	assert.NotContains(t, shownOf(t, config, time.Now), "routemaster_labels")
}
