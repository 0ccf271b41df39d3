package main

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

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

// TestDevShowsAJobThatIsNotKept has a job of a type that keeps none that has ended.
func TestDevShowsAJobThatIsNotKept(t *testing.T) {
	b := newJobBus(t)
	b.rtm(t, "type", "add", devJobType, "--strategy", "at_least_once", "--attempts", "3", "--concurrency", "1", "--pull", "--retention", "0s")
	var screen strings.Builder
	dev := devBus{out: &screen, jobs: make(chan devJob)}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	go func() {
		fetched, err := b.jobs.Fetch(ctx, devJobType, 1, 20*time.Second)
		if assert.NoError(t, err) && assert.Len(t, fetched, 1) {
			dev.jobs <- devJob{devJobType, fetched[0].ID, fetched[0].Attempt, json.RawMessage("{}")}
		}
	}()
	require.NoError(t, dev.showJob(ctx, b.jobs))
	assert.Contains(t, screen.String(), "-> reported: attempt 3 succeeded\n   ended after ")
}
