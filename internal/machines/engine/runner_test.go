package engine_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/machines"
	"routemaster/internal/machines/engine"
	"routemaster/internal/machines/machinestest"
	"routemaster/internal/queue"
	"routemaster/internal/rdb/rdbtest"
)

type states = []machines.StateName

// eachServed runs a test on every engine, with a service for the webhooks and feeds, whose URL
// takes the place of URL in the definitions.
func eachServed(t *testing.T, yaml string, test func(t *testing.T, f *machinestest.Fixture, s *machinestest.Service)) {
	t.Parallel()
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f, s := machinestest.New(t, server), machinestest.NewService(t)
		f.Apply(strings.ReplaceAll(yaml, "URL", s.URL))
		test(t, f, s)
		f.RequireSound(t)
	})
}

// m is the machine of the original's acceptance cases.
const m = `
state_machines:
  m:
    webhooks:
      - match: /act
        headers: {X-Key: secret, X-Also: this}
      - match: /a[b-d]t/
        headers: {X-Key: later}
      - match: /elsewhere
        headers: {X-Key: other}
    states:
      - gate: start
        triggers:
          - metadata: go
          - event: entry
        exit_condition: metadata.go = true
        next: act
      - action: act
        webhook: URL/act/<state_machine>/<label>
        attempts: 3
        next: {type: constant, state: end}
      - gate: end
        exit_condition: false
`

func TestAPatchOpensAGate(t *testing.T) {
	eachServed(t, m, func(t *testing.T, f *machinestest.Fixture, s *machinestest.Service) {
		const ann = "ann+1@x é"
		f.Create("m", ann, `{"big":12345678901234567890,"tag":"<b>"}`)
		f.Change("m", ann, `{"go":false}`)
		assert.Empty(t, s.Calls())
		assert.Equal(t, states{"start"}, f.Route("m", ann))
		f.Change("m", ann, `{"go":true}`)
		calls := s.Calls()
		require.Len(t, calls, 1)
		assert.Equal(t, "/act/m/ann%2B1%40x%20%C3%A9", calls[0].Path)
		assert.Equal(t, ann, calls[0].Body.Label)
		assert.Equal(t, map[string]any{"big": 12345678901234567890.0, "go": true, "tag": "<b>"}, calls[0].Body.Metadata)
		assert.Equal(t, "application/json", calls[0].Header.Get("Content-Type"))
		assert.Len(t, calls[0].Header.Get("X-Idempotency-Token"), 64)
		assert.Equal(t, "later", calls[0].Header.Get("X-Key"))
		assert.Equal(t, "this", calls[0].Header.Get("X-Also"))
		assert.Equal(t, states{"start", "act", "end"}, f.Route("m", ann))
		assert.JSONEq(t, `{"big":12345678901234567890,"tag":"<b>","go":true}`, string(f.Show("m", ann).Metadata))
		label := f.Show("m", ann)
		assert.True(t, label.Resting && label.NextAt.IsZero())
		moves, count, err := f.History(t.Context(), &label)
		require.NoError(t, err)
		assert.Equal(t, int64(3), count)
		assert.Equal(t, machines.Why{Status: 200}, moves[0].Why)
		assert.Equal(t, "metadata go", moves[1].Why.Trigger)
		assert.Equal(t, true, moves[1].Why.Values["metadata.go"])
		w := httptest.NewRecorder()
		f.Metrics.Handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
		for _, line := range []string{
			`routemaster_label_steps_total{machine="m",outcome="closed",state="start"} 2`,
			`routemaster_label_steps_total{machine="m",outcome="moved",state="start"} 1`,
			`routemaster_machine_webhooks_total{machine="m",state="act",status="200"} 1`,
			`routemaster_machine_webhook_duration_seconds_count{machine="m",state="act"} 1`,
		} {
			assert.Contains(t, w.Body.String(), line)
		}
	})
}

func TestALabelMayRunToTheEndAtOnce(t *testing.T) {
	eachServed(t, m, func(t *testing.T, f *machinestest.Fixture, s *machinestest.Service) {
		f.Create("m", "ann", `{"go":true}`)
		assert.Equal(t, states{"start", "act", "end"}, f.Route("m", "ann"))
		f.Create("m", "ben", `{"go":1}`) // as there, 1 = true
		assert.Equal(t, states{"start", "act", "end"}, f.Route("m", "ben"))
		assert.Len(t, s.Calls(), 2)
	})
}

func TestRetriesOfAVisitHaveOneToken(t *testing.T) {
	eachServed(t, m, func(t *testing.T, f *machinestest.Fixture, s *machinestest.Service) {
		s.Answer(machinestest.With(503, ""))
		f.Create("m", "ann", `{"go":true}`)
		f.Create("m", "ben", `{"go":true}`)
		label := f.Show("m", "ann")
		assert.Equal(t, 1, label.Attempts)
		assert.Equal(t, 503, label.LastStatus)
		assert.Contains(t, label.LastError, "503")
		assert.WithinDuration(t, f.Now.Add(9*time.Second), label.NextAt, time.Second)
		f.Change("m", "ann", `{"more":1}`) // only changes are sent
		first := s.Calls()
		require.Len(t, first, 2)
		f.Pass(10 * time.Second)
		s.Answer(machinestest.With(204, ""))
		second := s.Calls()
		require.Len(t, second, 2)
		f.Pass(20 * time.Second)
		third := s.Calls()
		require.Len(t, third, 2)
		tokens := map[string]string{}
		for _, call := range append(append(first, second...), third...) {
			token := call.Header.Get("X-Idempotency-Token")
			if tokens[call.Body.Label] == "" {
				tokens[call.Body.Label] = token
			}
			assert.Equal(t, tokens[call.Body.Label], token)
		}
		assert.NotEqual(t, tokens["ann"], tokens["ben"])
		assert.Equal(t, machines.StateName("end"), f.Show("m", "ann").State)
		label = f.Show("m", "ann")
		assert.Zero(t, label.Attempts+label.LastStatus)
		assert.Empty(t, label.LastError)
	})
}

func TestAttemptsEnd(t *testing.T) {
	eachServed(t, m, func(t *testing.T, f *machinestest.Fixture, s *machinestest.Service) {
		for _, status := range []int{302, 401, 404, 500} {
			name := machines.LabelName(fmt.Sprint(status))
			s.Answer(machinestest.With(status, ""))
			f.Create("m", name, `{"go":true}`)
			f.Pass(10 * time.Second)
			assert.True(t, f.Show("m", name).ErroredAt.IsZero())
			f.Pass(20 * time.Second)
			label := f.Show("m", name)
			assert.Equal(t, f.Now, label.ErroredAt)
			assert.Equal(t, status, label.LastStatus)
			assert.Len(t, s.Calls(), 3)
			assert.Zero(t, f.Pass(time.Hour), "no worker looks at it any more")
		}
		s.Answer(machinestest.With(410, ""))
		f.Create("m", "gone", `{"go":true}`)
		assert.Len(t, s.Calls(), 1)
		label := f.Show("m", "gone")
		assert.False(t, label.ErroredAt.IsZero())
		s.Answer(machinestest.With(200, ""))
		require.NoError(t, f.Retry(t.Context(), "m", "gone"))
		f.Work()
		again := s.Calls()
		require.Len(t, again, 1)
		assert.Equal(t, label.IdempotencyToken(), again[0].Header.Get("X-Idempotency-Token"))
		assert.Equal(t, states{"start", "act", "end"}, f.Route("m", "gone"))
		require.ErrorIs(t, f.Retry(t.Context(), "m", "gone"), machines.ErrNotErrored)
		list, _, err := f.List(t.Context(), "m", engine.Filter{Errored: true, Limit: 10})
		require.NoError(t, err)
		assert.Len(t, list, 4)
	})
}

func TestADeletedLabelIsLeftAlone(t *testing.T) {
	eachServed(t, m, func(t *testing.T, f *machinestest.Fixture, s *machinestest.Service) {
		ctx := t.Context()
		s.Answer(func(w http.ResponseWriter, r *http.Request) { // in the middle of its run
			assert.NoError(t, f.Delete(ctx, f.Machine("m"), "ann", f.Now))
		})
		f.Create("m", "ann", `{"go":true}`)
		assert.Len(t, s.Calls(), 1)
		assert.Equal(t, states{"start", "act", ""}, f.Route("m", "ann"))
		s.Answer(machinestest.With(500, ""))
		f.Create("m", "ben", `{"go":true}`)
		require.NoError(t, f.Delete(ctx, f.Machine("m"), "ben", f.Now)) // while its next attempt waits
		require.NoError(t, f.Delete(ctx, f.Machine("m"), "ben", f.Now))
		require.NoError(t, f.Delete(ctx, f.Machine("m"), "nobody", f.Now))
		s.Calls()
		f.Pass(time.Hour)
		assert.Empty(t, s.Calls())
		assert.Equal(t, states{"start", "act", ""}, f.Route("m", "ben"))
		_, _, err := f.Label(ctx, "m", "ben")
		require.ErrorIs(t, err, machines.ErrLabelDeleted)
		_, err = f.Add(ctx, "m", "ben", machines.Object{}, f.Now)
		require.ErrorIs(t, err, machines.ErrLabelDeleted)
		_, err = f.Merge(ctx, "m", "ben", machines.Object{}, false)
		require.ErrorIs(t, err, machines.ErrLabelDeleted)
	})
}

func TestFeeds(t *testing.T) {
	eachServed(t, `
state_machines:
  f:
    feeds:
      - {name: tests, url: "URL/tests/<label>"}
      - {name: unused, url: "URL/unused"}
    states:
      - gate: one
        triggers: [{metadata: go}]
        exit_condition: metadata.go and (feeds.tests.variant = 2 or feeds.tests.variant = 3)
        next:
          type: context
          path: feeds.tests.variant
          destinations: [{value: 2, state: two}]
          default: one
      - {gate: two, exit_condition: false}
`, func(t *testing.T, f *machinestest.Fixture, s *machinestest.Service) {
		f.Create("f", "ann", `{}`)
		f.Create("f", "ben", `{}`)
		f.Change("f", "ann", `{"go":false}`)
		assert.Empty(t, s.Calls(), "the feed is not needed")
		for i, answer := range []string{`[]`, `{"a":`, `{"a":"` + strings.Repeat("x", 300<<10) + `"}`} {
			s.Answer(machinestest.With(200, answer))
			f.Change("f", "ann", `{"go":true}`)
			label := f.Show("f", "ann")
			assert.Equal(t, i+1, label.Failures)
			assert.Contains(t, label.Error, "feed tests: the body ")
			assert.Equal(t, f.Now.Add(10*time.Second<<i), label.NextAt)
		}
		s.Calls()
		s.Answer(machinestest.With(503, `{"variant":2}`))
		f.Pass(40 * time.Second)
		calls := s.Calls()
		require.Len(t, calls, 1, "only ann, and one request")
		assert.Equal(t, http.MethodGet, calls[0].Method)
		assert.Equal(t, "/tests/ann", calls[0].Path)
		assert.Contains(t, f.Show("f", "ann").Error, "503")
		s.Answer(machinestest.With(200, `{"variant":4}`))
		f.Pass(80 * time.Second)
		label := f.Show("f", "ann")
		assert.Zero(t, label.Failures)
		assert.Empty(t, label.Error)
		assert.Equal(t, f.Now.Add(time.Minute), label.NextAt, "a client has asked for it")
		s.Answer(machinestest.With(200, `{"variant":2}`))
		f.Pass(time.Minute)
		assert.Equal(t, states{"one", "two"}, f.Route("f", "ann"))
		assert.Equal(t, states{"one"}, f.Route("f", "ben"))
	})
}

// pairs is two gates in a row with the same trigger.
const pairs = `
state_machines:
  p:
    states:
      - gate: one
        triggers: [{metadata: go}]
        exit_condition: metadata.go
        next: two
      - gate: two
        triggers: [{metadata: go}]
        exit_condition: metadata.go
        next: three
      - gate: three
        exit_condition: true
        triggers: [{metadata: go}, {event: entry}]
`

func TestAPatchPassesOneGate(t *testing.T) {
	eachServed(t, pairs, func(t *testing.T, f *machinestest.Fixture, _ *machinestest.Service) {
		f.Create("p", "ann", `{}`)
		f.Change("p", "ann", `{"go":1}`)
		assert.Equal(t, states{"one", "two"}, f.Route("p", "ann"))
		f.Change("p", "ann", `{"other":1}`)
		assert.Equal(t, states{"one", "two"}, f.Route("p", "ann"))
		f.Change("p", "ann", `{"go":1}`) // unchanged, and yet a trigger
		assert.Equal(t, states{"one", "two", "three"}, f.Route("p", "ann"))
		f.Change("p", "ann", `{"go":1}`) // an end whose condition holds is an end
		assert.Equal(t, states{"one", "two", "three"}, f.Route("p", "ann"))
		assert.Zero(t, f.Pass(24*time.Hour))
	})
}

func TestAPendingLabelIsEvaluatedEachMinute(t *testing.T) {
	eachServed(t, `
state_machines:
  w:
    states:
      - gate: wait
        triggers: [{metadata: go}]
        exit_condition: metadata.go and 1d12h has passed since history.entered_state
        next: end
      - gate: end
        exit_condition: false
`, func(t *testing.T, f *machinestest.Fixture, _ *machinestest.Service) {
		f.Create("w", "ann", `{}`)
		f.Create("w", "ben", `{}`)
		assert.Zero(t, f.Pass(time.Hour), "nothing has asked for it")
		f.Change("w", "ann", `{"go":true}`)
		f.Change("w", "ann", `{"unrelated":true}`)
		for range 3 {
			assert.Equal(t, 1, f.Pass(time.Minute))
		}
		f.Pass(23 * time.Hour)
		assert.Equal(t, states{"wait"}, f.Route("w", "ann"))
		f.Pass(24 * time.Hour)
		assert.Equal(t, states{"wait", "end"}, f.Route("w", "ann"))
		assert.Equal(t, states{"wait"}, f.Route("w", "ben"))
		assert.Zero(t, f.Pass(time.Hour))
	})
}

func TestAnEndlessRunPauses(t *testing.T) {
	eachServed(t, `
state_machines:
  loop:
    states:
      - {gate: a, triggers: [{event: entry}], exit_condition: true, next: b}
      - {gate: b, triggers: [{event: entry}], exit_condition: true, next: a}
`, func(t *testing.T, f *machinestest.Fixture, _ *machinestest.Service) {
		f.Create("loop", "ann", `{}`)
		assert.Equal(t, int64(50), f.Show("loop", "ann").Moves)
		assert.Equal(t, 1, strings.Count(f.Log.String(), "too many moves"))
		f.Pass(time.Minute)
		assert.Equal(t, int64(100), f.Show("loop", "ann").Moves)
		f.Pass(time.Minute)
		assert.Len(t, f.Route("loop", "ann"), machines.Kept)
	})
}

// TestRedisIsUnavailable: labels and walks are retried; other parts log that Redis is unavailable,
// once.
func TestRedisIsUnavailable(t *testing.T) {
	t.Parallel()
	server := rdbtest.Real(t)
	f := machinestest.New(t, server)
	f.Apply(strings.ReplaceAll(m, "URL", "https://app.example"))
	f.Create("m", "ann", `{}`)
	_, err := f.Merge(t.Context(), "m", "ann", machines.Object{"go": true}, false)
	require.NoError(t, err)
	visit := f.Take("worker")
	require.NotNil(t, visit)
	server.Kill(t)
	f.Stores = engine.NewBus(f.Partitions) // of a process that knows no definitions yet
	f.Configure(func(*engine.RunnerConfig) {})
	walk := &queue.Task{Job: bus.Job{Name: bus.JobWalk, Args: []string{"m", "start"}}}
	assert.True(t, f.Runner.Run(t.Context(), visit).RetryAt.After(f.Now))
	assert.True(t, f.Runner.Walk(t.Context(), walk).RetryAt.After(f.Now))
	assert.Empty(t, f.Log.String())
}
