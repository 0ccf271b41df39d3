package rest

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
)

func TestOneClientHasAQuarterOfThePlaces(t *testing.T) {
	p := NewPlaces(8, "jobs")
	var leaves []func()
	take := func(name bus.ClientName) {
		t.Helper()
		leave, err := p.Take(name)
		require.NoError(t, err)
		leaves = append(leaves, leave)
	}
	refuses := func(name bus.ClientName, detail string) {
		t.Helper()
		_, err := p.Take(name)
		var problem *Problem
		require.ErrorAs(t, err, &problem)
		assert.Equal(t, http.StatusTooManyRequests, problem.Status)
		assert.Contains(t, problem.Detail, detail)
	}
	take("a")
	take("a")
	refuses("a", "2 requests of yours wait for jobs")
	for i := range 6 {
		take(bus.ClientName(fmt.Sprint("b", i)))
	}
	refuses("c", "too many requests wait for jobs")
	leaves[0]()
	leaves[0]() // this changes nothing
	take("a")
	refuses("a", "requests of yours")
	for _, leave := range leaves {
		leave()
	}
	assert.Zero(t, p.taken)
	assert.Empty(t, p.by)
}
