package runner_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/machines"
	"routemaster/internal/machines/machinestest"
)

func TestTimes(t *testing.T) {
	each(t, `
state_machines:
  t:
    states:
      - gate: wait
        triggers:
          - time: 13h00m
            timezone: Europe/London
          - time: 12h00m
            timezone: Europe/London
          - interval: 20m
        exit_condition: metadata.open
        next: end
      - gate: end
        exit_condition: false
  z:
    states:
      - gate: wait
        triggers: [{time: 13h00m, timezone: metadata.zone}]
        exit_condition: system.time >= 13:00
        next: end
      - gate: end
        exit_condition: false
`, func(t *testing.T, f *machinestest.Fixture, _ *machinestest.Service) {
		f.Now = time.Date(2026, 8, 4, 11, 50, 0, 0, time.UTC)
		f.Work()
		f.Create("t", "ann", `{"open":true}`)
		for _, zone := range []string{"Europe/London", "UTC", "Asia/Tokyo", "America/New_York", "nowhere"} {
			f.Create("z", machines.LabelName(strings.ReplaceAll(zone, "/", "-")), fmt.Sprintf(`{"zone":%q}`, zone))
		}
		f.Create("z", "none", `{}`)
		f.Pass(9 * time.Minute)
		assert.Equal(t, states{"wait"}, f.Route("t", "ann"))
		f.Pass(time.Minute) // 12:00 UTC, 13:00 in London
		assert.Equal(t, states{"wait", "end"}, f.Route("t", "ann"))
		at := func(name machines.LabelName) machines.StateName { return f.Show("z", name).State }
		assert.Equal(t, machines.StateName("end"), at("Europe-London"))
		assert.Equal(t, machines.StateName("wait"), at("UTC"))
		assert.Contains(t, f.Show("z", "nowhere").Error, `"nowhere" is not the name of a time zone`)
		f.Pass(time.Hour)
		assert.Equal(t, machines.StateName("end"), at("UTC"))
		assert.Equal(t, machines.StateName("wait"), at("America-New_York"))
		f.Pass(4 * time.Hour)
		assert.Equal(t, machines.StateName("end"), at("America-New_York"))
		assert.Equal(t, machines.StateName("wait"), at("Asia-Tokyo"))
		f.Pass(11 * time.Hour) // what was missed is made up for
		assert.Equal(t, machines.StateName("end"), at("Asia-Tokyo"))
		assert.Equal(t, machines.StateName("wait"), at("none"))
	})
}

func TestStatesMayVanish(t *testing.T) {
	old := `
state_machines:
  v:
    states:
      - {gate: a, triggers: [{metadata: go}], exit_condition: metadata.go, next: b}
      - {gate: b, exit_condition: false}
`
	each(t, old, func(t *testing.T, f *machinestest.Fixture, _ *machinestest.Service) {
		f.Create("v", "ann", `{}`)
		f.Create("v", "ben", `{"x":1}`)
		f.Change("v", "ben", `{"go":1}`)
		renamed := strings.ReplaceAll(strings.ReplaceAll(old, "gate: b", "gate: c"), "next: b", "next: c")
		err := f.TryApply(renamed)
		var resting *machines.LabelsRestError
		require.ErrorAs(t, err, &resting)
		assert.Equal(t, []machines.StateCount{{Machine: "v", State: "b", Labels: 1}}, resting.States)
		require.ErrorAs(t, f.TryApply("state_machines: {o: {states: [{gate: g, exit_condition: true}]}}"), &resting)
		assert.Len(t, resting.States, 2)
		f.Apply(renamed, machines.StateMove{Machine: "v", From: "b", To: "c"})
		assert.Equal(t, machines.StateName("b"), f.Show("v", "ben").State)
		f.Work()
		f.Pass(time.Second)
		assert.Equal(t, states{"a", "b", "c"}, f.Route("v", "ben"))
		f.Apply(strings.Replace(renamed, "exit_condition: false", "exit_condition: true", 1))
		f.Work()
		assert.Zero(t, f.Pass(time.Hour))
	})
}

func TestAStateMayBecomeAnother(t *testing.T) {
	gate := `
state_machines:
  v:
    states:
      - {gate: a, triggers: [{metadata: go}], exit_condition: metadata.go, next: b}
      - {gate: b, exit_condition: false}
`
	action := strings.Replace(gate, `gate: a, triggers: [{metadata: go}], exit_condition: metadata.go`, `action: a, attempts: 1, webhook: "URL"`, 1)
	each(t, gate, func(t *testing.T, f *machinestest.Fixture, s *machinestest.Service) {
		for i := range 250 {
			f.Create("v", machines.LabelName(fmt.Sprint(i)), `{}`)
		}
		s.Answer(machinestest.With(500, ""))
		f.Apply(strings.ReplaceAll(action, "URL", s.URL))
		f.Work()
		assert.Len(t, s.Calls(), 250, "each is acted on")
		assert.Equal(t, f.Now, f.Show("v", "7").ErroredAt)
		f.Apply(gate)
		f.Work()
		assert.Zero(t, f.Show("v", "7").ErroredAt)
		f.Change("v", "7", `{"go":true}`)
		assert.Equal(t, []machines.StateName{"a", "b"}, f.Route("v", "7"))
		definitions, err := f.Definitions(t.Context())
		require.NoError(t, err)
		_, errored, err := f.Counts(t.Context(), definitions, "v")
		require.NoError(t, err)
		assert.Zero(t, errored)
	})
}

// TestAMoveByOldDefinitionsIsVoid has a worker with the definitions of before move a label to a
// state that is gone.
func TestAMoveByOldDefinitionsIsVoid(t *testing.T) {
	old := `
state_machines:
  v:
    states:
      - {gate: a, triggers: [{metadata: go}], exit_condition: metadata.go, next: b}
      - {gate: b, exit_condition: false}
`
	each(t, old, func(t *testing.T, f *machinestest.Fixture, _ *machinestest.Service) {
		f.Create("v", "ann", `{}`)
		_, err := f.Merge(t.Context(), "v", "ann", machines.Object{"go": true}, false)
		require.NoError(t, err)
		task := f.Take("ben")
		result := f.Runner.Run(t.Context(), task)
		f.Apply(strings.ReplaceAll(strings.ReplaceAll(old, "gate: b", "gate: c"), "next: b", "next: c"))
		_, err = f.Queue().Complete(t.Context(), task, result, f.Now)
		require.NoError(t, err)
		f.RequireSound(t)
		assert.Equal(t, []machines.StateName{"a"}, f.Route("v", "ann"))
		f.Work()
		assert.Equal(t, []machines.StateName{"a", "c"}, f.Route("v", "ann"))
	})
}
