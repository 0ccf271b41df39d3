package engine_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/machines"
	"routemaster/internal/machines/machinestest"
	"routemaster/internal/queue"
)

// TestAnErroredLabelIsFreeInAGate has the state of an errored label become a gate, and something
// come between the review of the labels and the look at this one.
func TestAnErroredLabelIsFreeInAGate(t *testing.T) {
	const action = `
state_machines:
  v:
    states:
      - {action: a, attempts: 1, webhook: "URL", next: b}
      - {gate: b, exit_condition: false}
`
	gate := strings.Replace(action, `action: a, attempts: 1, webhook: "URL"`, `gate: a, triggers: [{metadata: go}], exit_condition: metadata.go`, 1)
	eachServed(t, action, func(t *testing.T, f *machinestest.Fixture, s *machinestest.Service) {
		s.Answer(machinestest.With(410, ""))
		for name, meanwhile := range map[machines.LabelName]func(*queue.Task){
			"nothing": func(task *queue.Task) { f.Finish(task) },
			"the worker dies": func(*queue.Task) {
				_, err := f.Queue().Scrub(t.Context(), f.Now.Add(time.Minute), bus.QueueMachines)
				require.NoError(t, err)
			},
			"the worker panics": func(task *queue.Task) {
				_, err := f.Queue().Complete(t.Context(), task, queue.Result{RetryAt: f.Now.Add(time.Second)}, f.Now)
				require.NoError(t, err)
			},
			"a patch comes": func(task *queue.Task) {
				_, err := f.Merge(t.Context(), "v", "a patch comes", machines.Object{"go": false}, false)
				require.NoError(t, err)
				f.Finish(task)
			},
		} {
			f.Apply(strings.ReplaceAll(action, "URL", s.URL))
			f.Work()
			f.Create("v", name, `{}`)
			require.Equal(t, f.Now, f.Show("v", name).ErroredAt)
			f.Apply(gate)
			f.Finish(f.Take("worker")) // the walk over the labels of the state
			task := f.Take("worker")
			require.NotNil(t, task, name)
			meanwhile(task)
			f.Pass(time.Minute)
			assert.Zero(t, f.Show("v", name).ErroredAt, name)
			f.Change("v", name, `{"go":true}`)
			assert.Equal(t, states{"a", "b"}, f.Route("v", name), name)
		}
	})
}

func TestA410ThatComesLateHarmsNobody(t *testing.T) {
	eachServed(t, `
state_machines:
  v:
    states:
      - {action: a, webhook: "URL", next: b}
      - {gate: b, exit_condition: false}
`, func(t *testing.T, f *machinestest.Fixture, s *machinestest.Service) {
		s.Answer(machinestest.With(410, ""))
		_, err := f.Add(t.Context(), "v", "ann", machines.Object{}, f.Now)
		require.NoError(t, err)
		task := f.Take("slow")
		result := f.Runner.Run(t.Context(), task)
		f.Apply(`
state_machines:
  v:
    states:
      - {gate: c, exit_condition: false}
`, machines.StateMove{Machine: "v", From: "a", To: "c"}, machines.StateMove{Machine: "v", From: "b", To: "c"})
		f.Work() // the walks
		_, err = f.Queue().Complete(t.Context(), task, result, f.Now)
		require.NoError(t, err)
		f.Work()
		label := f.Show("v", "ann")
		assert.Equal(t, machines.StateName("c"), label.State)
		assert.Zero(t, label.ErroredAt)
	})
}
