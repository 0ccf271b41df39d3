package engine_test

import (
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/machines/machinestest"
)

// hang answers nothing until its client has gone.
func hang(_ http.ResponseWriter, r *http.Request) {
	<-r.Context().Done()
	panic(http.ErrAbortHandler) // to return would answer 200, which may be read all the same
}

// silentOnce answers requests, except the second, which is over a connection that was used before.
func silentOnce(answer http.HandlerFunc) http.HandlerFunc {
	var calls atomic.Int64
	return func(w http.ResponseWriter, r *http.Request) {
		if calls.Add(1) == 2 {
			hang(w, r)
		}
		answer(w, r)
	}
}

// TestAWebhookInDoubtIsCalledAgain with the same token, though it has one attempt.
func TestAWebhookInDoubtIsCalledAgain(t *testing.T) {
	eachServed(t, `
state_machines:
  n:
    states:
      - {action: a, webhook: URL, timeout: 3s, attempts: 1, next: b}
      - {gate: b, exit_condition: false}
`, func(t *testing.T, f *machinestest.Fixture, s *machinestest.Service) {
		s.Answer(silentOnce(machinestest.With(200, "")))
		f.Create("n", "ann", `{}`)
		f.Create("n", "ben", `{}`)
		label := f.Show("n", "ben")
		assert.Zero(t, label.Attempts)
		assert.Contains(t, label.LastError, "over a connection that was used before")
		f.Pass(time.Millisecond)
		assert.Equal(t, states{"a", "b"}, f.Route("n", "ben"))
		calls := s.Calls()
		require.Len(t, calls, 3)
		assert.Equal(t, calls[1], calls[2])
	})
}

func TestAFeedInDoubtIsAskedAgain(t *testing.T) {
	eachServed(t, `
state_machines:
  n:
    feeds: [{name: f, url: URL, timeout: 3s}]
    states:
      - {gate: a, triggers: [{event: entry}], exit_condition: feeds.f.v = 1, next: b}
      - {gate: b, exit_condition: false}
`, func(t *testing.T, f *machinestest.Fixture, s *machinestest.Service) {
		s.Answer(silentOnce(machinestest.With(200, `{"v":1}`)))
		f.Create("n", "ann", `{}`)
		f.Create("n", "ben", `{}`)
		assert.Equal(t, states{"a", "b"}, f.Route("n", "ben"))
		assert.NotContains(t, f.Log.String(), "could not evaluate")
		assert.Len(t, s.Calls(), 3)
	})
}
