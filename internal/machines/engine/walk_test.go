package engine_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/machines"
	"routemaster/internal/machines/engine"
	"routemaster/internal/machines/machinestest"
)

func TestTimes(t *testing.T) {
	eachServed(t, `
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
		f.Create("z", "long", `{"zone":"`+strings.Repeat("x", 30_000)+`"}`)
		f.Pass(9 * time.Minute)
		assert.Equal(t, states{"wait"}, f.Route("t", "ann"))
		f.Pass(time.Minute) // 12:00 UTC, 13:00 in London
		assert.Equal(t, states{"wait", "end"}, f.Route("t", "ann"))
		at := func(name machines.LabelName) machines.StateName { return f.Show("z", name).State }
		assert.Equal(t, machines.StateName("end"), at("Europe-London"))
		assert.Equal(t, machines.StateName("wait"), at("UTC"))
		assert.Contains(t, f.Show("z", "nowhere").Error, "metadata.zone is not the name of a time zone")
		assert.LessOrEqual(t, len(f.Show("z", "long").Error), bus.MaxReason)
		f.Pass(time.Hour)
		assert.Equal(t, machines.StateName("end"), at("UTC"))
		assert.Equal(t, machines.StateName("wait"), at("America-New_York"))
		f.Pass(4 * time.Hour)
		assert.Equal(t, machines.StateName("end"), at("America-New_York"))
		assert.Equal(t, machines.StateName("wait"), at("Asia-Tokyo"))
		f.Pass(11 * time.Hour) // missed triggers are made up for
		assert.Equal(t, machines.StateName("end"), at("Asia-Tokyo"))
		assert.Equal(t, machines.StateName("wait"), at("none"))
	})
}

// TestATimeIsThatOfTheTrigger evaluates labels with a worker whose clock is behind the walking
// one's, and a little later, when system.time would be another day's.
func TestATimeIsThatOfTheTrigger(t *testing.T) {
	for _, c := range []struct {
		name, trigger, gate string
		walked              time.Time
		later               time.Duration
		opens               bool
	}{
		{"the clock is behind", "18:30", "", time.Date(2026, 8, 4, 18, 30, 0, 1e6, time.UTC), -5 * time.Millisecond, true},
		{"over midnight", "23:59", "", time.Date(2026, 8, 4, 23, 59, 59, 9e8, time.UTC), time.Second, true},
		{"too long over midnight", "23:59", "", time.Date(2026, 8, 4, 23, 59, 59, 9e8, time.UTC), time.Hour, false},
		{"of the gate's zone too", "18:30", "timezone: Asia/Tokyo", time.Date(2026, 8, 4, 18, 30, 1, 0, time.UTC), 0, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			eachServed(t, fmt.Sprintf(`
state_machines:
  t:
    states:
      - gate: wait
        %s
        triggers: [{time: %sm, timezone: UTC}]
        exit_condition: system.time >= %s and system.time < 23:59:30
        next: end
      - {gate: end, exit_condition: false}
`, c.gate, strings.Replace(c.trigger, ":", "h", 1), c.trigger), func(t *testing.T, f *machinestest.Fixture, _ *machinestest.Service) {
				f.Now = time.Date(2026, 8, 4, 18, 0, 0, 0, time.UTC)
				f.Create("t", "ann", `{}`)
				f.Now = c.walked
				f.Finish(f.Take("walker"))
				visit := f.Take("other")
				require.NotNil(t, visit)
				require.Equal(t, bus.JobLabel, visit.Job.Name)
				f.Now = f.Now.Add(c.later)
				f.Finish(visit)
				want := machines.StateName("wait")
				if c.opens {
					want = "end"
				}
				assert.Equal(t, want, f.Show("t", "ann").State)
			})
		})
	}
}

func TestStatesMayVanish(t *testing.T) {
	old := `
state_machines:
  v:
    states:
      - {gate: a, triggers: [{metadata: go}], exit_condition: metadata.go, next: b}
      - {gate: b, exit_condition: false}
`
	eachServed(t, old, func(t *testing.T, f *machinestest.Fixture, _ *machinestest.Service) {
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

const reviewedGate = `
state_machines:
  v:
    states:
      - {gate: a, triggers: [{metadata: go}], exit_condition: metadata.go, next: b}
      - {gate: b, exit_condition: false}
`

// reviewedAction has an action where reviewedGate has a gate.
func reviewedAction(s *machinestest.Service, attempts int) string {
	action := fmt.Sprintf("action: a, attempts: %d, webhook: %q", attempts, s.URL)
	return strings.Replace(reviewedGate, "gate: a, triggers: [{metadata: go}], exit_condition: metadata.go", action, 1)
}

func TestAStateMayBecomeAnother(t *testing.T) {
	eachServed(t, reviewedGate, func(t *testing.T, f *machinestest.Fixture, s *machinestest.Service) {
		for i := range 250 {
			f.Create("v", machines.LabelName(fmt.Sprint(i)), `{}`)
		}
		s.Answer(machinestest.With(500, ""))
		f.Apply(reviewedAction(s, 1))
		f.Work()
		assert.Len(t, s.Calls(), 250, "each is acted on")
		assert.Equal(t, f.Now, f.Show("v", "7").ErroredAt)
		f.Apply(reviewedGate)
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
	eachServed(t, old, func(t *testing.T, f *machinestest.Fixture, _ *machinestest.Service) {
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

// TestDefinitionsAreRolledBackDuringAReview has a label that waits in a gate return to its action.
func TestDefinitionsAreRolledBackDuringAReview(t *testing.T) {
	eachServed(t, reviewedGate, func(t *testing.T, f *machinestest.Fixture, s *machinestest.Service) {
		s.Answer(machinestest.With(500, ""))
		f.Apply(reviewedAction(s, 9))
		f.Create("v", "ann", `{}`)
		f.Apply(reviewedGate)
		review := f.Take("ben")
		result := f.Runner.Walk(t.Context(), review)
		f.Finish(f.Take("worker")) // the gate is closed
		f.Apply(reviewedAction(s, 9))
		_, err := f.Queue().Complete(t.Context(), review, result, f.Now)
		require.NoError(t, err)
		s.Answer(machinestest.With(200, ""))
		f.Work()
		assert.Equal(t, machines.StateName("b"), f.Show("v", "ann").State)
	})
}

// TestAReviewLooksAtAllLabels starts while a review of earlier definitions is under way.
func TestAReviewLooksAtAllLabels(t *testing.T) {
	eachServed(t, reviewedGate, func(t *testing.T, f *machinestest.Fixture, s *machinestest.Service) {
		for _, name := range []machines.LabelName{"ann", "ben", "cem"} {
			f.Create("v", name, `{}`)
		}
		f.Apply(reviewedAction(s, 9))
		definitions, err := f.Definitions(t.Context())
		require.NoError(t, err)
		review := machines.Walk{Machine: "v", State: "a", Version: definitions.Version}
		require.NoError(t, f.Step(t.Context(), definitions, review, engine.Progress{After: "ben"}, nil))
		f.Apply(reviewedGate)
		f.Apply(reviewedAction(s, 9))
		f.Work()
		for _, name := range []machines.LabelName{"ann", "ben", "cem"} {
			assert.Equal(t, machines.StateName("b"), f.Show("v", name).State)
		}
	})
}

const everyMinute = `
state_machines:
  t:
    states:
      - {gate: a, triggers: [{interval: 1m}], exit_condition: metadata.go, next: b}
      - {gate: b, exit_condition: false}
`

// TestATriggerComesBack restores a trigger while its walk ends because it is gone.
func TestATriggerComesBack(t *testing.T) {
	eachServed(t, everyMinute, func(t *testing.T, f *machinestest.Fixture, _ *machinestest.Service) {
		f.Create("t", "ann", `{"go":true}`)
		f.Apply(strings.Replace(everyMinute, "triggers: [{interval: 1m}], ", "", 1))
		f.Now = f.Now.Add(time.Minute)
		walk := f.Take("ben")
		result := f.Runner.Walk(t.Context(), walk)
		require.Zero(t, result.RetryAt)
		f.Apply(everyMinute)
		require.NoError(t, f.Tender.Tick(t.Context()))
		_, err := f.Queue().Complete(t.Context(), walk, result, f.Now)
		require.NoError(t, err)
		f.Pass(time.Minute)
		assert.Equal(t, machines.StateName("b"), f.Show("t", "ann").State)
	})
}

func TestAWalkGoesOnByNewDefinitions(t *testing.T) {
	eachServed(t, everyMinute, func(t *testing.T, f *machinestest.Fixture, _ *machinestest.Service) {
		old, err := f.Definitions(t.Context())
		require.NoError(t, err)
		f.Create("t", "ann", `{}`)
		f.Apply(everyMinute + "# again")
		err = f.Step(t.Context(), old, old.Walks()[0], engine.Progress{}, []machines.LabelName{"ann"})
		require.ErrorIs(t, err, machines.ErrChanged)
		assert.True(t, f.Show("t", "ann").Resting)
	})
}

// TestAClockThatIsAhead has a worker's clock show next month for once.
func TestAClockThatIsAhead(t *testing.T) {
	eachServed(t, everyMinute, func(t *testing.T, f *machinestest.Fixture, _ *machinestest.Service) {
		f.Work()
		right := f.Now
		f.Pass(30 * 24 * time.Hour)
		f.Now = right
		f.Create("t", "ann", `{"go":true}`)
		f.Pass(2 * time.Minute)
		assert.Equal(t, machines.StateName("b"), f.Show("t", "ann").State)
	})
}
