package client_test

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/client"
	"routemaster/client/machines"
	"routemaster/internal/machines/machinestest"
	"routemaster/internal/outbound"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/web"
	"routemaster/internal/web/webtest"
)

// machineBus is the API of a bus with its workers, and how a client and root see it.
type machineBus struct {
	alice, root *client.Client
	workers     *machinestest.Fixture
	service     *machinestest.Service
}

func connectMachines(t *testing.T) *machineBus {
	t.Helper()
	redis := rdbtest.Embedded(t)
	var requests *outbound.Client
	a := webtest.New(t, redis, func(c *web.Config) { requests = c.Machines.Client })
	b := &machineBus{workers: machinestest.Beside(t, a.Partitions(), requests), service: machinestest.NewService(t)}
	a.Clock = func() time.Time { return b.workers.Now }
	url := a.Run()
	b.alice, b.root = connect(t, url, webtest.Alice), connect(t, url, webtest.RootKey)
	return b
}

func (b *machineBus) yaml() []byte {
	return []byte(`
state_machines:
  on boarding:
    feeds: [{name: plans, url: "` + b.service.URL + `/plans"}]
    states:
      - {gate: start, exit_condition: feeds.plans.open or metadata.go = true, triggers: [{metadata: go}], next: mail}
      - {action: mail, webhook: "` + b.service.URL + `/mail", attempts: 1, next: end}
      - {gate: end, exit_condition: false}
`)
}

func TestDefinitions(t *testing.T) {
	b, ctx := connectMachines(t), t.Context()
	applied, err := machines.Apply(ctx, b.root, b.yaml())
	require.NoError(t, err)
	assert.EqualValues(t, 1, applied.Version)
	names, version, err := machines.Names(ctx, b.alice)
	require.NoError(t, err)
	assert.Equal(t, []string{"on boarding"}, names)
	assert.EqualValues(t, 1, version)

	_, err = machines.Apply(ctx, b.alice, b.yaml())
	assertRefused(t, err, 403, "forbidden")
	_, err = machines.Apply(ctx, b.root, []byte("state_machines:\n  m:\n    states: 7\n"))
	wrong := assertRefused(t, err, 400, "invalid_definitions")
	require.NotEmpty(t, wrong.Faults)
	assert.Equal(t, 3, wrong.Faults[0].Line)
	assert.NotEmpty(t, wrong.Faults[0].Message)

	m := machines.Of(b.alice, "on boarding").Waiting(0)
	_, err = m.Create(ctx, "x", nil)
	require.NoError(t, err)
	info, err := m.Show(ctx)
	require.NoError(t, err)
	assert.Equal(t, map[string]int64{"start": 1, "mail": 0, "end": 0}, info.Labels)
	assert.Equal(t, machinestest.Start.UnixMilli(), info.AppliedAt.UnixMilli())
	assert.Contains(t, string(info.Definition), `"gate":"start"`)
	picture, err := m.Graph(ctx, "svg")
	require.NoError(t, err)
	assert.Contains(t, string(picture), "<svg")

	other := []byte("state_machines:\n  on boarding:\n    states: [{gate: only, exit_condition: false}]\n")
	_, err = machines.Apply(ctx, b.root, other)
	resting := assertRefused(t, err, 409, "labels_rest")
	assert.Equal(t, []client.StateLabels{{Machine: "on boarding", State: "start", Labels: 1}}, resting.States)
	_, err = machines.Apply(ctx, b.root, other, machines.StateMove{Machine: "on boarding", From: "start", To: "only"})
	require.NoError(t, err)
	_, err = machines.Of(b.alice, "none").Show(ctx)
	assertRefused(t, err, 404, "not_found")
}

func TestLabels(t *testing.T) {
	b, ctx := connectMachines(t), t.Context()
	_, err := machines.Apply(ctx, b.root, b.yaml())
	require.NoError(t, err)
	m := machines.Of(b.alice, "on boarding").Waiting(0)
	const name = "user 7?é"
	made, err := m.Create(ctx, name, map[string]any{"plan": "free", "id": json.Number("12345678901234567891")})
	require.NoError(t, err)
	assert.Equal(t, machines.Label{Metadata: machines.Object{"plan": "free", "id": json.Number("12345678901234567891")}, State: "start"}, made)
	_, err = m.Create(ctx, name, nil)
	assertRefused(t, err, 409, "conflict")

	status, err := m.Label(ctx, name)
	require.NoError(t, err)
	require.NotNil(t, status.Waiting)
	assert.True(t, status.Waiting.Unknown)
	assert.Equal(t, []machines.Trigger{{Type: "metadata", Path: "go"}}, status.Waiting.Triggers)
	assert.Equal(t, []string{"mail", "end"}, status.Route)
	assert.Equal(t, machinestest.Start.UnixMilli(), status.EnteredAt.UnixMilli())
	would, err := m.DryRun(ctx, name)
	require.NoError(t, err)
	assert.Equal(t, false, *would.Value)
	_, err = m.Evaluate(ctx, name)
	require.NoError(t, err)
	b.workers.Work()

	b.service.Answer(machinestest.With(http.StatusGone, ""))
	merged, err := m.Merge(ctx, name, map[string]any{"plan": nil, "id": nil, "go": true})
	require.NoError(t, err)
	assert.Equal(t, machines.Object{"go": true}, merged.Metadata)
	b.workers.Work()
	b.workers.Pass(time.Hour) // the feed has failed, and is asked again
	_, err = m.Merge(ctx, name, map[string]any{"go": true})
	require.NoError(t, err)
	status, err = m.Label(ctx, name)
	require.NoError(t, err)
	assert.Equal(t, "start", status.State)
	assert.NotEmpty(t, status.Waiting.Triggers)

	b.service.Answer(func(w http.ResponseWriter, r *http.Request) {
		answer := machinestest.With(http.StatusOK, `{"open":true}`)
		if r.Method == http.MethodPost {
			answer = machinestest.With(http.StatusGone, "")
		}
		answer(w, r)
	})
	b.workers.Pass(time.Hour)
	status, err = m.Label(ctx, name)
	require.NoError(t, err)
	require.NotNil(t, status.Errored)
	assert.Equal(t, 410, status.Action.LastStatus)
	b.service.Answer(machinestest.With(http.StatusOK, "{}"))
	_, err = m.Retry(ctx, name)
	require.NoError(t, err)
	b.workers.Work()

	var moves []string
	history, err := m.History(ctx, name)
	require.NoError(t, err)
	assert.Equal(t, int64(3), history.Count)
	for _, move := range history.Moves {
		if move.To != nil {
			moves = append(moves, *move.To)
		}
	}
	assert.Equal(t, []string{"end", "mail", "start"}, moves)
	require.NoError(t, m.Delete(ctx, name))
	_, err = m.Label(ctx, name)
	assertRefused(t, err, 410, "gone")
	_, err = m.Retry(ctx, name)
	assertRefused(t, err, 410, "gone")
}

func TestListsOfLabels(t *testing.T) {
	b, ctx := connectMachines(t), t.Context()
	_, err := machines.Apply(ctx, b.root, b.yaml())
	require.NoError(t, err)
	m := machines.Of(b.alice, "on boarding").Waiting(0)
	for _, name := range []string{"b", "c", "a"} {
		_, err := m.Create(ctx, name, nil)
		require.NoError(t, err)
	}
	list := func(f machines.Filter, after string) (names []string) {
		for label, err := range m.Labels(ctx, f, after) {
			require.NoError(t, err)
			assert.Equal(t, "start", label.State)
			names = append(names, label.Name)
		}
		return names
	}
	assert.Equal(t, []string{"a", "b", "c"}, list(machines.Filter{}, ""))
	assert.Equal(t, []string{"b", "c"}, list(machines.Filter{State: "start"}, "a"))
	assert.Empty(t, list(machines.Filter{Errored: true}, ""))
	for _, err := range machines.Of(b.alice, "none").Labels(ctx, machines.Filter{}, "") {
		assertRefused(t, err, 404, "not_found")
	}
}
