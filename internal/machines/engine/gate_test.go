package engine_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/machines"
	"routemaster/internal/machines/engine"
	"routemaster/internal/machines/machinestest"
)

// TestAnEndIsNotEvaluated has an end whose condition fails, and triggers that would evaluate it.
func TestAnEndIsNotEvaluated(t *testing.T) {
	eachServed(t, `
state_machines:
  m:
    states:
      - {gate: start, triggers: [event: entry], exit_condition: true, next: end}
      - {gate: end, triggers: [event: entry, interval: 1m, metadata: n], exit_condition: metadata.n < 5}
`, func(t *testing.T, f *machinestest.Fixture, _ *machinestest.Service) {
		f.Create("m", "ann", `{}`)
		f.Change("m", "ann", `{"n":"x"}`)
		assert.Zero(t, f.Pass(time.Hour))
		assert.Empty(t, f.Show("m", "ann").Error)
	})
}

func TestChangesWhileAFeedIsAskedDoNotKeepAGateShut(t *testing.T) {
	eachServed(t, `
state_machines:
  f:
    feeds: [{name: tests, url: URL/tests}, {name: more, url: URL/more}]
    states:
      - gate: one
        triggers: [{metadata: go}]
        exit_condition: metadata.go and feeds.tests.ok and (metadata.plain or feeds.more.ok)
        next: {type: context, path: metadata.to, destinations: [{value: 3, state: three}], default: two}
      - {gate: two, exit_condition: false}
      - {gate: three, exit_condition: false}
`, func(t *testing.T, f *machinestest.Fixture, s *machinestest.Service) {
		for _, c := range []struct {
			patch machines.Object
			state machines.StateName
			calls int
		}{
			{machines.Object{"other": 1}, "two", 1},
			{machines.Object{"to": 3}, "three", 1},
			{machines.Object{"go": false}, "one", 1},
			{machines.Object{"plain": false}, "two", 3}, // takes a feed that was not asked: all is evaluated again
		} {
			name, changed := machines.LabelName(fmt.Sprint(c.patch)), false
			s.Answer(func(w http.ResponseWriter, r *http.Request) {
				if !changed {
					_, err := f.Merge(t.Context(), "f", name, c.patch, false)
					assert.NoError(t, err)
				}
				changed = true
				machinestest.With(http.StatusOK, `{"ok":true}`)(w, r)
			})
			f.Create("f", name, `{"plain":true}`)
			f.Change("f", name, `{"go":true}`)
			assert.Equal(t, c.state, f.Show("f", name).State, name)
			assert.Len(t, s.Calls(), c.calls, name)
		}
	})
}

// TestAnEntryThatFailsIsTriedAgain has nothing else that would have the gate evaluated.
func TestAnEntryThatFailsIsTriedAgain(t *testing.T) {
	eachServed(t, `
state_machines:
  f:
    feeds: [{name: tests, url: URL}]
    states:
      - {gate: a, triggers: [{event: entry}], exit_condition: feeds.tests.open, next: b}
      - {gate: b, exit_condition: false}
`, func(t *testing.T, f *machinestest.Fixture, s *machinestest.Service) {
		s.Answer(machinestest.With(503, ""))
		f.Create("f", "ann", `{}`)
		assert.Contains(t, f.Show("f", "ann").Error, "503")
		s.Answer(machinestest.With(200, `{"open":true}`))
		f.Pass(10 * time.Second)
		assert.Equal(t, states{"a", "b"}, f.Route("f", "ann"))
	})
}

// TestWorkersShareTheClock looks for due triggers in two processes.
func TestWorkersShareTheClock(t *testing.T) {
	eachServed(t, `
state_machines:
  f:
    feeds: [{name: tests, url: URL}]
    states:
      - {gate: a, triggers: [{interval: 20m}], exit_condition: feeds.tests.open, next: b}
      - {gate: b, exit_condition: false}
`, func(t *testing.T, f *machinestest.Fixture, s *machinestest.Service) {
		other := engine.NewTender(f.Stores, func() time.Time { return f.Now })
		f.Create("f", "ann", `{}`)
		for range 3 {
			f.Now = f.Now.Add(20 * time.Minute)
			require.NoError(t, other.Tick(t.Context()))
			f.Work()
			assert.Equal(t, []string{"GET /"}, requests(s))
		}
	})
}
