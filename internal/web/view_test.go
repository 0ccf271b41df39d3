package web_test

import (
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/machines/machinestest"
	"routemaster/internal/rdb/rdbtest"
)

// TestWhyALabelWaits has gates with each kind of trigger. It is 22:13:20 UTC.
func TestWhyALabelWaits(t *testing.T) {
	a := newMachinesAPI(t, rdbtest.Embedded(t))
	a.apply(`
state_machines:
  m:
    states:
      - gate: start
        exit_condition: "metadata.a = 1 and 12h has passed since system.entered_state and metadata.b.c < 3"
        triggers:
          - metadata: b.c
          - {time: 18h30m, timezone: UTC}
          - {time: 18h30m, timezone: metadata.zone}
          - interval: 1h
          - event: entry
        next: end
      - {gate: end, exit_condition: false}
`)
	const one = "/state-machines/m/labels/one"
	a.require(201, "POST", one+"?wait=0", `{"metadata":{"a":1,"zone":"Asia/Tokyo"}}`)
	a.workers.Work()
	start := machinestest.Start
	at := func(day, hour, minute int) int64 {
		return time.Date(start.Year(), start.Month(), start.Day()+day, hour, minute, 0, 0, time.UTC).UnixMilli()
	}
	got := a.show(one)
	assert.Equal(t, start.UnixMilli(), got.EnteredAt)
	assert.Equal(t, []string{"end"}, got.Route)
	require.NotNil(t, got.WaitingFor)
	assert.Equal(t, []trigger{
		{Type: "metadata", Path: "b.c"}, {Type: "time", At: at(1, 18, 30)}, {Type: "time", At: at(1, 9, 30)},
		{Type: "interval", At: at(0, 23, 0)},
	}, got.WaitingFor.Triggers)
	require.NotNil(t, got.WaitingFor.Value)
	assert.False(t, *got.WaitingFor.Value)
	values := map[string]any{}
	for _, part := range got.WaitingFor.Parts {
		values[part.Text] = part.Value
	}
	assert.Equal(t, true, values["metadata.a = 1"])
	assert.Equal(t, false, values["12h has passed since system.entered_state"])

	// A change that does not open the gate has it evaluated again, and one that fails shows why.
	a.require(200, "PATCH", one+"?wait=0", `{"metadata":{"b":{"c":"x"},"zone":"Moon"}}`)
	a.workers.Pass(13 * time.Hour)
	got = a.show(one)
	assert.Nil(t, got.WaitingFor.Value)
	assert.NotEmpty(t, got.WaitingFor.Error)
	triggers := got.WaitingFor.Triggers
	assert.Equal(t, trigger{Type: "time"}, triggers[2], "the zone is unknown")
	assert.Equal(t, "retry", triggers[len(triggers)-1].Type)
	assert.Greater(t, triggers[len(triggers)-1].At, a.workers.Now.UnixMilli())
}

func TestRouteIsAsFarAsItIsDetermined(t *testing.T) {
	a := newMachinesAPI(t, rdbtest.Embedded(t))
	a.apply(`
state_machines:
  m:
    states:
      - {gate: a, exit_condition: metadata.go, triggers: [{metadata: go}], next: b}
      - gate: b
        exit_condition: metadata.go
        next: {type: context, path: metadata.arm, default: d, destinations: [{state: c, value: 1}]}
      - {gate: c, exit_condition: metadata.go, next: a}
      - gate: d
        exit_condition: metadata.go
        next: {type: context, path: history.previous_state, default: e, destinations: [{state: c, value: "b"}]}
      - {gate: e, exit_condition: false}
`)
	for metadata, want := range map[string][]string{
		`{}`: {"b"}, `{"arm":null}`: {"b"}, `{"arm":1}`: {"b", "c"}, `{"arm":2}`: {"b", "d"},
	} {
		name := "/state-machines/m/labels/" + url.PathEscape(metadata)
		a.require(201, "POST", name+"?wait=0", `{"metadata":`+metadata+`}`)
		assert.Equal(t, want, a.show(name).Route, metadata)
	}
}
