package engine_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/machines"
	"routemaster/internal/machines/machinestest"
)

func TestANextThatFailsCountsAsAnAttempt(t *testing.T) {
	eachServed(t, `
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

// TestAnAcknowledgedWebhookIsNotCalledAgain although the definitions were replaced before its
// worker could say so.
func TestAnAcknowledgedWebhookIsNotCalledAgain(t *testing.T) {
	eachServed(t, reviewedGate, func(t *testing.T, f *machinestest.Fixture, s *machinestest.Service) {
		s.Answer(machinestest.With(202, ""))
		f.Apply(reviewedAction(s, 9))
		replacedMeanwhile := func(name machines.LabelName, yaml string) {
			f.Work()
			_, err := f.Add(t.Context(), "v", name, machines.Object{}, f.Now)
			require.NoError(t, err)
			task := f.Take("worker")
			result := f.Runner.Run(t.Context(), task)
			f.Apply(yaml)
			_, err = f.Queue().Complete(t.Context(), task, result, f.Now)
			require.NoError(t, err)
			assert.Equal(t, states{"a"}, f.Route("v", name))
			f.Work()
		}
		replacedMeanwhile("ann", reviewedAction(s, 8))
		assert.Equal(t, states{"a", "b"}, f.Route("v", "ann"))
		assert.Len(t, s.Calls(), 1)
		label := f.Show("v", "ann")
		moves, _, err := f.History(t.Context(), &label)
		require.NoError(t, err)
		assert.Equal(t, 202, moves[0].Why.Status)

		replacedMeanwhile("ben", reviewedGate)
		assert.Equal(t, states{"a"}, f.Route("v", "ben"), "the gate is closed")
		f.Apply(reviewedAction(s, 9))
		f.Work()
		assert.Equal(t, states{"a", "b"}, f.Route("v", "ben"))
		assert.Len(t, s.Calls(), 2, "it is called again after the label was in a gate")
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
	eachServed(t, next, func(t *testing.T, f *machinestest.Fixture, _ *machinestest.Service) {
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
	eachServed(t, action, func(t *testing.T, f *machinestest.Fixture, s *machinestest.Service) {
		s.Answer(machinestest.With(503, ""))
		f.Create("v", "ann", `{}`)
		standing := func() string { return f.Server.Raw.HGet(t.Context(), f.Keys.MachineStandings("v"), "a").Val() }
		failing := standing()
		f.Apply(strings.Replace(action, `action: a, webhook: "URL"`, `gate: a, exit_condition: metadata.go`, 1))
		f.Work()
		assert.NotEqual(t, failing, standing())
		assert.Equal(t, strconv.Itoa(int(bus.Proven)), standing())
		require.NoError(t, f.Delete(t.Context(), f.Machine("v"), "ann", f.Now))
		f.Apply("state_machines: {}")
		assert.Empty(t, standing(), "it goes with its state")
	})
}

func TestAWebhookHasTheMetadataAsTheyAre(t *testing.T) {
	eachServed(t, `
state_machines:
  w:
    states:
      - {action: a, webhook: URL, next: b}
      - {gate: b, exit_condition: false}
`, func(t *testing.T, f *machinestest.Fixture, s *machinestest.Service) {
		f.Create("w", "a&b", `{"n":1.50,"text":"<b> & é"}`)
		calls := s.Calls()
		require.Len(t, calls, 1)
		assert.Equal(t, `{"label":"a&b","metadata":{"n":1.50,"text":"<b> & é"}}`, calls[0].Text)
	})
}

func TestAServiceThatDoesNotAnswerFails(t *testing.T) {
	eachServed(t, `
state_machines:
  v:
    feeds: [{name: slow, url: URL/feed, timeout: 20ms}]
    states:
      - {gate: a, triggers: [{event: entry}], exit_condition: metadata.acts or feeds.slow.open, next: b}
      - {action: b, webhook: URL/hook, timeout: 20ms, next: c}
      - {gate: c, exit_condition: false}
`, func(t *testing.T, f *machinestest.Fixture, s *machinestest.Service) {
		s.Answer(hang)
		f.Create("v", "asks", `{}`)
		label := f.Show("v", "asks")
		assert.Equal(t, 1, label.Failures)
		assert.Contains(t, label.Error, "feed slow: ")
		assert.Contains(t, label.Error, "no answer within 20ms")
		assert.Equal(t, f.Now.Add(10*time.Second), label.NextAt)
		f.Create("v", "acts", `{"acts":true}`)
		label = f.Show("v", "acts")
		assert.Equal(t, machines.StateName("b"), label.State)
		assert.Equal(t, 1, label.Attempts)
		assert.Contains(t, label.LastError, "no answer within 20ms")
		assert.WithinDuration(t, f.Now.Add(9*time.Second), label.NextAt, time.Second)
	})
}

// TestEachVisitHasItsToken has a worker die after it has called the webhook, and a label come back.
func TestEachVisitHasItsToken(t *testing.T) {
	eachServed(t, `
state_machines:
  v:
    states:
      - {action: a, webhook: URL, next: b}
      - {gate: b, triggers: [{metadata: again}], exit_condition: true, next: a}
`, func(t *testing.T, f *machinestest.Fixture, s *machinestest.Service) {
		_, err := f.Add(t.Context(), "v", "ann", machines.Object{}, f.Now)
		require.NoError(t, err)
		dead := f.Take("dead")
		result := f.Runner.Run(t.Context(), dead)
		_, err = f.Queue().Scrub(t.Context(), f.Now.Add(time.Minute), bus.QueueMachines)
		require.NoError(t, err)
		f.Work()
		owned, err := f.Queue().Complete(t.Context(), dead, result, f.Now)
		require.NoError(t, err)
		assert.False(t, owned)
		f.Change("v", "ann", `{"again":true}`)
		assert.Equal(t, states{"a", "b", "a", "b"}, f.Route("v", "ann"))
		var tokens []string
		for _, call := range s.Calls() {
			tokens = append(tokens, call.Header.Get("X-Idempotency-Token"))
		}
		require.Len(t, tokens, 3)
		assert.Equal(t, tokens[0], tokens[1])
		assert.NotEqual(t, tokens[1], tokens[2])
		assert.Zero(t, f.Pass(time.Hour), "none after the label has left")
	})
}

// TestLabelsOfOneNameAreApart has two machines with a label of the same name.
func TestLabelsOfOneNameAreApart(t *testing.T) {
	const machine = `
    states:
      - {gate: a, triggers: [{metadata: go}], exit_condition: metadata.go > 1, next: b}
      - {action: b, webhook: "URL/<state_machine>", next: c}
      - {gate: c, exit_condition: false}
`
	eachServed(t, "state_machines:\n  one:"+machine+"  two:"+machine, func(t *testing.T, f *machinestest.Fixture, s *machinestest.Service) {
		f.Create("one", "ann", `{}`)
		f.Create("two", "ann", `{}`)
		f.Change("one", "ann", `{"go":1}`)
		assert.Equal(t, 1, f.Pass(time.Minute), "one is pending")
		assert.True(t, f.Show("two", "ann").NextAt.IsZero())
		s.Answer(machinestest.With(500, ""))
		f.Change("one", "ann", `{"go":2}`)
		assert.Equal(t, []string{"POST /one"}, requests(s))
		f.Change("two", "ann", `{"go":2}`)
		assert.Equal(t, []string{"POST /two"}, requests(s))
		s.Answer(machinestest.With(200, ""))
		f.Pass(10 * time.Second)
		assert.ElementsMatch(t, []string{"POST /one", "POST /two"}, requests(s))
		require.NoError(t, f.Delete(t.Context(), f.Machine("one"), "ann", f.Now))
		assert.Equal(t, states{"a", "b", "c", ""}, f.Route("one", "ann"))
		assert.Equal(t, states{"a", "b", "c"}, f.Route("two", "ann"))
	})
}
