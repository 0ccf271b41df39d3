package engine

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"

	"routemaster/internal/bus"
	"routemaster/internal/machines"
)

// TestTheChangesOfALabelThatWaitAreBounded fills the queue of waiting changes.
func TestTheChangesOfALabelThatWaitAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		turns := newTurns(func(_ context.Context, _ labelID, requests []*request) error {
			<-release
			for _, r := range requests {
				r.end(machines.Label{}, nil)
			}
			return nil
		})
		id, other := labelID{"m", "ann"}, labelID{"m", "ben"}
		results := make(chan error, 1+turnLimits.Waiting)
		for range 1 + turnLimits.Waiting {
			go func() { results <- turns.do(t.Context(), id, &request{}) }()
			synctest.Wait()
		}
		err := turns.do(t.Context(), id, &request{})
		assert.ErrorIs(t, err, machines.ErrContended)
		assert.ErrorIs(t, err, bus.ErrUnavailable, "it may be tried again")
		go func() { results <- turns.do(t.Context(), other, &request{}) }()
		close(release)
		for range 2 + turnLimits.Waiting {
			assert.NoError(t, <-results)
		}
		assert.Empty(t, turns.of)
	})
}

func TestAContendedChangeIsTriedAFewTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tries := 0
		requests := []*request{{}, {}}
		err := inTurn(t.Context(), requests, func([]*request) error {
			tries++
			return machines.ErrChanged
		})
		assert.NoError(t, err, "others may fare better")
		assert.Equal(t, maxTries, tries)
		for _, r := range requests {
			assert.ErrorIs(t, r.err, machines.ErrContended)
		}

		away := errors.Join(bus.ErrUnavailable, errors.New("refused"))
		requests = []*request{{}}
		assert.Equal(t, away, inTurn(t.Context(), requests, func([]*request) error { return away }))
		assert.Equal(t, away, requests[0].err)
	})
}
