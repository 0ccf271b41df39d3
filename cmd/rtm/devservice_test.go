package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/client/jobs"
)

func TestDevMakesItsJobTypeAsItWas(t *testing.T) {
	b := newJobBus(t)
	require.NoError(t, addDevJobType(t.Context(), b.jobs))
	made, err := b.jobs.Type(t.Context(), devJobType)
	require.NoError(t, err)
	_, err = b.jobs.ChangeType(t.Context(), devJobType, map[string]any{
		"delivery_strategy": jobs.AtMostOnce, "attempts": 1, "concurrency": 1, "url": nil, "timeout": 1000, "retention": 0,
		"paused": true, "schedule": "0 6 * * *", "timezone": "Europe/Berlin", "schedule_data": 7,
	})
	require.NoError(t, err)
	require.NoError(t, addDevJobType(t.Context(), b.jobs))
	restored, err := b.jobs.Type(t.Context(), devJobType)
	require.NoError(t, err)
	assert.Equal(t, made.Type, restored.Type)
}
