package engine_test

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"routemaster/internal/bus"
	"routemaster/internal/machines"
	"routemaster/internal/machines/engine"
	"routemaster/internal/machines/machinestest"
	"routemaster/internal/queue"
	"routemaster/internal/rdb/rdbtest"
)

// ring is a machine that labels go round in.
const ring = `
state_machines:
  m:
    states:
      - {gate: a, triggers: [{metadata: go}, {interval: 20m}], exit_condition: metadata.go, next: b}
      - {action: b, webhook: "http://127.0.0.1:9/b", next: c}
      - {gate: c, triggers: [{metadata: go}, {event: entry}], exit_condition: metadata.go, next: a}
`

var after = map[machines.StateName]machines.StateName{"a": "b", "b": "c", "c": "a"}

// model drives random steps, and knows their expected results.
type model struct {
	*machinestest.Fixture
	tasks map[bus.WorkerID]*queue.Task
	// dead are tasks of workers that were taken to be dead, deaths how often that came.
	dead   []*queue.Task
	deaths int
	// labels are the labels that are not deleted, with their state.
	labels map[machines.LabelName]machines.StateName
	// tokens are the idempotency tokens of the visits to the action.
	tokens map[string]bool
	made   int
}

func (m *model) label(rt *rapid.T) machines.LabelName {
	if len(m.labels) == 0 {
		rt.Skip("no label")
	}
	return rapid.SampledFrom(slices.Sorted(maps.Keys(m.labels))).Draw(rt, "label")
}

func (m *model) create(rt *rapid.T) {
	m.made++
	name := machines.LabelName(strings.Repeat("x", m.made))
	_, err := m.Add(m.T.Context(), "m", name, machines.Object{"go": rapid.Bool().Draw(rt, "go")}, m.Now)
	require.NoError(rt, err)
	m.labels[name] = "a"
}

func (m *model) patch(rt *rapid.T) {
	name := m.label(rt)
	patch := machines.Object{rapid.SampledFrom([]string{"go", "other"}).Draw(rt, "key"): rapid.Bool().Draw(rt, "value")}
	label, err := m.Merge(m.T.Context(), "m", name, patch, false)
	require.NoError(rt, err)
	require.Equal(rt, m.labels[name], label.State)
}

func (m *model) remove(rt *rapid.T) {
	name := m.label(rt)
	require.NoError(rt, m.Delete(m.T.Context(), m.Machine("m"), name, m.Now))
	delete(m.labels, name)
}

func (m *model) retry(rt *rapid.T) {
	err := m.Retry(m.T.Context(), "m", m.label(rt))
	require.True(rt, err == nil || errors.Is(err, machines.ErrNotErrored))
}

func (m *model) walk(rt *rapid.T) {
	state := machines.State{Gate: &machines.Gate{Triggers: []machines.Trigger{{Interval: 20 * time.Minute}}}}
	w := machines.Walk{Machine: "m", State: "a", Trigger: &state.Gate.Triggers[0]}
	labels, err := m.Slice(m.T.Context(), w, "", rapid.IntRange(1, 3).Draw(rt, "labels"))
	require.NoError(rt, err)
	var names []machines.LabelName
	for _, label := range labels {
		require.Equal(rt, machines.StateName("a"), m.labels[label.Name])
		names = append(names, label.Name)
	}
	definitions, err := m.Definitions(m.T.Context())
	require.NoError(rt, err)
	require.NoError(rt, m.Step(m.T.Context(), definitions, w, engine.Progress{}, names))
}

func (m *model) take(rt *rapid.T) {
	worker := bus.WorkerID(rapid.SampledFrom([]string{"ann", "ben"}).Draw(rt, "worker") + strings.Repeat("-", m.deaths))
	if m.tasks[worker] != nil {
		return
	}
	task := m.Take(worker)
	if task == nil {
		return
	}
	m.tasks[worker] = task
	if visit, ok := task.Payload.(*engine.Visit); ok {
		require.Equal(rt, m.labels[visit.Name], visit.State)
		require.True(rt, visit.ErroredAt.IsZero())
	}
}

// result draws a result that a worker may report for a label.
func (m *model) result(rt *rapid.T, visit *engine.Visit) queue.Result {
	later := m.Now.Add(time.Minute)
	outcomes := []engine.Outcome{engine.Moved, engine.Moved, engine.Attempted, engine.Errored}
	if visit.State != "b" {
		outcomes = []engine.Outcome{engine.Moved, engine.Moved, engine.Closed, engine.Failed, engine.Paused}
	}
	r := engine.Result{Outcome: rapid.SampledFrom(outcomes).Draw(rt, "outcome"), Failures: 1, Error: "why"}
	switch r.Outcome {
	case engine.Moved:
		r.To, r.Evaluated = after[visit.State], visit.State != "b"
		r.RunsOn = r.To != "a"
		return queue.Result{Detail: r}
	case engine.Closed:
		if !visit.Pending {
			later = time.Time{}
		}
	case engine.Errored:
		later = time.Time{}
	}
	return queue.Result{Detail: r, RetryAt: later}
}

func (m *model) finish(rt *rapid.T) {
	if len(m.tasks) == 0 {
		return
	}
	worker := rapid.SampledFrom(slices.Sorted(maps.Keys(m.tasks))).Draw(rt, "worker")
	task := m.tasks[worker]
	delete(m.tasks, worker)
	visit, ok := task.Payload.(*engine.Visit)
	if !ok {
		m.Finish(task)
		return
	}
	result := m.result(rt, visit)
	owned, next, err := m.Queue().CompleteAndAcquire(m.T.Context(), task, result, bus.Failing, m.Now)
	require.NoError(rt, err)
	require.True(rt, owned)
	m.finished(rt, visit, result.Detail.(engine.Result))
	for range rapid.IntRange(0, 2).Draw(rt, "lost replies") {
		owned, next, err = m.Queue().CompleteAndAcquire(m.T.Context(), task, result, bus.Failing, m.Now)
		require.NoError(rt, err)
		require.False(rt, owned)
	}
	if next.Task != nil {
		m.tasks[worker] = next.Task
	}
}

// finished records the effect of a result on a label.
func (m *model) finished(rt *rapid.T, visit *engine.Visit, result engine.Result) {
	if _, there := m.labels[visit.Name]; !there || result.Outcome != engine.Moved {
		return
	}
	now, _, err := m.Label(m.T.Context(), "m", visit.Name)
	require.NoError(rt, err)
	if now.Moves == visit.Moves {
		require.True(rt, result.Evaluated && now.Version != visit.Version, "the move is void")
		require.False(rt, now.Resting)
		return
	}
	require.True(rt, !result.Evaluated || now.Version == visit.Version, "the move should be void")
	require.Equal(rt, result.To, now.State)
	require.Equal(rt, visit.Moves+1, now.Moves)
	m.labels[visit.Name] = now.State
	if visit.State == "b" {
		require.False(rt, m.tokens[visit.IdempotencyToken()], "two visits had one token")
		m.tokens[visit.IdempotencyToken()] = true
	}
}

// die makes the queue take all workers for dead, and starts new ones.
func (m *model) die(rt *rapid.T) {
	m.deaths++
	_, err := m.Queue().Scrub(m.T.Context(), m.Now.Add(time.Hour), bus.QueueMachines)
	require.NoError(rt, err)
	for _, task := range m.tasks {
		m.dead = append(m.dead, task)
	}
	clear(m.tasks)
}

func (m *model) finishLate(rt *rapid.T) {
	if len(m.dead) == 0 {
		return
	}
	task := m.dead[0]
	m.dead = m.dead[1:]
	result := queue.Result{}
	if visit, ok := task.Payload.(*engine.Visit); ok {
		result = m.result(rt, visit)
	}
	owned, err := m.Queue().Complete(m.T.Context(), task, result, m.Now)
	require.NoError(rt, err)
	require.False(rt, owned)
}

func (m *model) check(rt *rapid.T) {
	m.RequireSound(rt)
	for name, state := range m.labels {
		label, _, err := m.Label(m.T.Context(), "m", name)
		require.NoError(rt, err)
		require.Equal(rt, state, label.State)
		if state == "b" {
			busy := !label.Resting || !label.NextAt.IsZero()
			require.NotEqual(rt, label.ErroredAt.IsZero(), !busy, "an action is at work, or errored")
		}
		if label.Pending {
			require.True(rt, !label.Resting || !label.NextAt.IsZero(), "a pending label is evaluated again")
		}
		m.Route("m", name)
	}
}

func TestRandomStepsAgainstAModel(t *testing.T) {
	t.Parallel()
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		t.Parallel()
		f := machinestest.New(t, server)
		rapid.Check(t, func(rt *rapid.T) {
			require.NoError(rt, server.Raw.FlushAll(t.Context()).Err())
			f.Now = machinestest.Start
			f.Apply(ring)
			m := &model{
				Fixture: f, tasks: map[bus.WorkerID]*queue.Task{}, labels: map[machines.LabelName]machines.StateName{}, tokens: map[string]bool{},
			}
			rt.Repeat(map[string]func(*rapid.T){
				"create": m.create, "patch": m.patch, "patch more": m.patch, "delete": m.remove, "retry": m.retry, "walk": m.walk,
				"take": m.take, "take more": m.take, "finish": m.finish, "finish more": m.finish, "finish late": m.finishLate,
				"die":           m.die,
				"let time pass": func(*rapid.T) { m.Now = m.Now.Add(time.Minute) },
			})
			m.check(rt)
		})
	})
}
