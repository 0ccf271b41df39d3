package runner_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"

	"routemaster/internal/machines"
	"routemaster/internal/machines/machinestest"
)

func TestChangesWhileAFeedIsAskedDoNotKeepAGateShut(t *testing.T) {
	each(t, `
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
