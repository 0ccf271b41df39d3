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

// TestDevGoesOnBesideJobsThatWereFetched starts after a run that left as many jobs in progress as
// its limit.
func TestDevGoesOnBesideJobsThatWereFetched(t *testing.T) {
	b := newJobBus(t)
	require.NoError(t, addDevJobType(t.Context(), b.jobs))
	b.rtm(t, "type", "set", devJobType, "--pull")
	for range 10 {
		b.rtm(t, "put", devJobType)
	}
	fetched, err := b.jobs.Fetch(t.Context(), devJobType, 100, 0)
	require.NoError(t, err)
	require.Len(t, fetched, 10)
	require.NoError(t, addDevJobType(t.Context(), b.jobs))
	b.rtm(t, "put", devJobType)
	restored, err := b.jobs.Type(t.Context(), devJobType)
	require.NoError(t, err)
	assert.Equal(t, jobs.Counts{Queued: 1, InProgress: 10}, restored.Counts, "the new one has its turn")
}
