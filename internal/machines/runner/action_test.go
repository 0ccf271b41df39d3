package runner_test

import (
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/machines"
	"routemaster/internal/machines/machinestest"
	"routemaster/internal/queue"
)

func TestANextThatFailsCountsAsAnAttempt(t *testing.T) {
	each(t, `
state_machines:
  n:
    states:
      - action: a
        webhook: URL
        attempts: 2
        next: {type: context, path: metadata.plan.name, destinations: [{value: x, state: b}], default: b}
      - {gate: b, exit_condition: false}
`, func(t *testing.T, f *machinestest.Fixture, s *machinestest.Service) {
		f.Create("n", "ann", `{"plan":"gold"}`)
		label := f.Show("n", "ann")
		assert.Equal(t, 1, label.Attempts)
		assert.Equal(t, 200, label.LastStatus)
		assert.Contains(t, label.LastError, "next: ")
		f.Pass(10 * time.Second)
		assert.Equal(t, f.Now, f.Show("n", "ann").ErroredAt)
		f.Pass(time.Hour)
		assert.Len(t, s.Calls(), 2)
		f.Change("n", "ann", `{"plan":{"name":"x"}}`)
		require.NoError(t, f.Retry(t.Context(), "n", "ann"))
		f.Work()
		assert.Equal(t, states{"a", "b"}, f.Route("n", "ann"))
	})
}

func TestAnEndIsNotPending(t *testing.T) {
	const end = `
state_machines:
  n:
    states:
      - {gate: a, triggers: [{metadata: go}], exit_condition: metadata.go > 1NEXT}
`
	next := strings.Replace(end, "NEXT", ", next: b", 1) + "      - {gate: b, exit_condition: false}\n"
	each(t, next, func(t *testing.T, f *machinestest.Fixture, _ *machinestest.Service) {
		f.Create("n", "ann", `{}`)
		f.Change("n", "ann", `{"go":1}`)
		assert.Equal(t, 1, f.Pass(time.Minute))
		f.Apply(strings.Replace(end, "NEXT", "", 1))
		f.Pass(time.Minute)
		assert.Zero(t, f.Pass(time.Hour), "it has become an end")
		_, err := f.Merge(t.Context(), "n", "ann", machines.Object{"go": 1}, false)
		require.NoError(t, err)
		assert.Zero(t, f.Work(), "whose condition is not evaluated")
	})
}

func TestAGateWithoutFeedsIsProven(t *testing.T) {
	const action = `
state_machines:
  v:
    states:
      - {action: a, webhook: "URL", next: b}
      - {gate: b, exit_condition: false}
`
	each(t, action, func(t *testing.T, f *machinestest.Fixture, s *machinestest.Service) {
		s.Answer(machinestest.With(503, ""))
		f.Create("v", "ann", `{}`)
		standing := func() string { return f.Server.Raw.HGet(t.Context(), f.Keys.Standings("v"), "a").Val() }
		failing := standing()
		f.Apply(strings.Replace(action, `action: a, webhook: "URL"`, `gate: a, exit_condition: metadata.go`, 1))
		f.Work()
		assert.NotEqual(t, failing, standing())
		assert.Equal(t, strconv.Itoa(int(bus.Proven)), standing())
	})
}

func TestASlowWebhookLeavesThreadsToOthers(t *testing.T) {
	each(t, `
state_machines:
  slow:
    states: [{action: a, webhook: URL/slow, next: b}, {gate: b, exit_condition: false}]
  quick:
    states: [{action: a, webhook: URL/quick, next: b}, {gate: b, exit_condition: false}]
`, func(t *testing.T, f *machinestest.Fixture, s *machinestest.Service) {
		arrived, answered := make(chan bool, 2*machinestest.Threads), make(chan bool)
		answer := sync.OnceFunc(func() { close(answered) })
		defer answer()
		s.Answer(func(_ http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/slow" {
				arrived <- true
				<-answered
			}
		})
		add := func(machine machines.Name, name machines.LabelName) *queue.Task {
			_, err := f.Add(t.Context(), machine, name, machines.Object{}, f.Now)
			require.NoError(t, err)
			return f.Take(bus.WorkerID(name))
		}
		complete := func(task *queue.Task, result queue.Result) {
			owned, err := f.Queue().Complete(t.Context(), task, result, f.Now)
			require.NoError(t, err)
			require.True(t, owned)
		}
		f.Work()
		var under sync.WaitGroup
		tasks, results := make([]*queue.Task, machinestest.Threads/2), make([]queue.Result, machinestest.Threads/2)
		for i := range tasks {
			tasks[i] = add("slow", machines.LabelName(strconv.Itoa(i)))
			under.Go(func() { results[i] = f.Runner.Run(t.Context(), tasks[i]) })
			<-arrived
		}
		next := add("slow", "next")
		complete(next, f.Runner.Run(t.Context(), next))
		label := f.Show("slow", "next")
		assert.Equal(t, f.Now.Add(time.Second), label.NextAt)
		assert.Zero(t, label.Attempts)
		f.Finish(add("quick", "x"))
		assert.Equal(t, states{"a", "b"}, f.Route("quick", "x"))

		answer()
		under.Wait()
		for i, task := range tasks {
			complete(task, results[i])
		}
		f.Pass(time.Second)
		for _, name := range []machines.LabelName{"0", "1", "next"} {
			assert.Equal(t, states{"a", "b"}, f.Route("slow", name))
		}
	})
}
