package web_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store/storetest"
)

func TestPulseScalingIsSlowWhenThereIsMuchToDo(t *testing.T) {
	a := newAPI(t, rdbtest.Embedded(t))
	ctx := t.Context()
	pulse := func() time.Duration {
		return rdbtest.Took(func() { a.RequireDone(alice, "GET", "/pulse/scaling", "") })
	}
	rdbtest.Promptly(t, time.Second, pulse)
	for _, name := range []bus.JobName{"x", "y"} {
		_, err := storetest.NewQueue(a.First(), 1).Enqueue(ctx, bus.QueueMain, bus.Job{Name: name})
		require.NoError(t, err)
	}
	assert.GreaterOrEqual(t, pulse(), time.Second)
}

func TestStatus(t *testing.T) {
	a := newAPI(t, rdbtest.Embedded(t))
	got := a.Do("", "GET", "/", "")
	assert.Equal(t, 200, got.Status)
	assert.JSONEq(t, `{"status":"ok","state-machines":"/state-machines","version":"1.2.3"}`, got.Body)
}
