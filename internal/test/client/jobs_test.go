package client_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/client/jobs"
)

func TestTypes(t *testing.T) {
	j := connectJobs(t)
	ctx := t.Context()
	made, err := j.AddType(ctx, jobs.Type{
		Name: "ship", Strategy: jobs.AtLeastOnce, Attempts: 3, Concurrency: 2, Retention: new(int64(0)),
		Schedule: "0 6 * * *", Timezone: "Europe/Berlin", ScheduleData: json.RawMessage(`{"n":1.50}`),
	})
	require.NoError(t, err)
	assert.Equal(t, "alice", made.Owner)
	assert.Nil(t, made.URL)
	assert.Equal(t, 5*time.Minute, made.Timeout.Duration())
	assert.EqualValues(t, 0, *made.Retention)
	assert.Equal(t, `{"n":1.50}`, string(made.ScheduleData))
	_, err = j.AddType(ctx, made.Type)
	assertRefused(t, err, 400, "invalid_parameter")

	changed, err := j.ChangeType(ctx, "ship", map[string]any{"paused": true, "schedule": nil, "url": "https://ship.example/"})
	require.NoError(t, err)
	assert.True(t, changed.Paused)
	assert.Empty(t, changed.Schedule)
	assert.Equal(t, "https://ship.example/", *changed.URL)
	_, err = j.Enqueue(ctx, "ship", jobs.NewJob{})
	require.NoError(t, err)
	all, err := j.Types(ctx)
	require.NoError(t, err)
	require.Len(t, all, 1)
	assert.Equal(t, jobs.Counts{Queued: 1, Waiting: all[0].Counts.Waiting}, all[0].Counts)

	assertRefused(t, j.DeleteType(ctx, "ship"), 409, "conflict")
	require.NoError(t, j.DeleteTypeAndJobs(ctx, "ship"))
	_, err = j.Type(ctx, "ship")
	assertRefused(t, err, 404, "job_type_not_found")
}

func TestAJobIsDone(t *testing.T) {
	j := connectJobs(t)
	ctx := t.Context()
	addType(t, j, "ship", jobs.AtLeastOnce, 3)
	id := jobs.NewID()
	expires := time.Now().Add(time.Hour).Truncate(time.Millisecond)
	queued, err := j.Enqueue(ctx, "ship", jobs.NewJob{ID: id, Data: json.RawMessage(`{"b":1.0,"a":2}`), ExpiresAt: expires})
	require.NoError(t, err)
	again, err := j.Enqueue(ctx, "ship", jobs.NewJob{ID: id})
	require.NoError(t, err)
	assert.Equal(t, queued, again, "it is enqueued once")
	assert.Equal(t, id, queued.ID)
	assert.True(t, expires.Equal(queued.ExpiresAt))

	fetched, err := j.Fetch(ctx, "ship", 5, 0)
	require.NoError(t, err)
	require.Len(t, fetched, 1)
	assert.Equal(t, `{"b":1.0,"a":2}`, string(fetched[0].Data))
	deadline, err := j.Extend(ctx, "ship", id, 3, time.Hour)
	require.NoError(t, err)
	assert.True(t, deadline.After(fetched[0].Deadline))
	assertRefused(t, j.Report(ctx, "ship", id, jobs.Report{Attempt: 2, Succeeded: true}), 409, "stale_attempt")
	require.NoError(t, j.Report(ctx, "ship", id, jobs.Report{Attempt: 3, Final: true}))
	ended, err := j.Job(ctx, id)
	require.NoError(t, err)
	assert.Equal(t, "failed", ended.Status)
	assert.True(t, ended.RunAfter.IsZero())

	replayed, err := j.Replay(ctx, id)
	require.NoError(t, err)
	assert.NotEqual(t, id, replayed.ID)
	inProgress, err := j.Cancel(ctx, "ship", replayed.ID)
	require.NoError(t, err)
	assert.False(t, inProgress)
	_, err = j.Cancel(ctx, "ship", id)
	assertRefused(t, err, 409, "job_already_archived")
	none, err := j.Fetch(ctx, "ship", 1, 0)
	require.NoError(t, err)
	assert.Empty(t, none)
}

// TestListsAreReadPageByPage has more jobs than a page.
func TestListsAreReadPageByPage(t *testing.T) {
	j := connectJobs(t)
	ctx := t.Context()
	addType(t, j, "ship", jobs.AtLeastOnce, 3)
	queued, err := j.EnqueueAll(ctx, "ship", make([]jobs.NewJob, 101))
	require.NoError(t, err)
	_, err = j.Cancel(ctx, "ship", queued[0].ID)
	require.NoError(t, err)
	var open []string
	for job, err := range j.Open(ctx, jobs.Filter{Type: "ship", Status: "queued"}) {
		require.NoError(t, err)
		open = append(open, job.ID)
	}
	require.Len(t, open, 100)
	assert.Equal(t, queued[100].ID, open[0])
	_, err = j.EnqueueAll(ctx, "ship", make([]jobs.NewJob, 1))
	require.NoError(t, err)
	next, sizes := "", []int{}
	for _, limit := range []int{2, 1000} {
		for page, err := range j.OpenPages(ctx, jobs.Filter{Type: "ship"}, next, limit) {
			require.NoError(t, err)
			next, sizes = page.Next, append(sizes, len(page.Jobs))
		}
	}
	assert.Equal(t, []int{2, 99}, sizes)
	assert.Empty(t, next)
	n := 0
	for _, err := range j.Open(ctx, jobs.Filter{}) {
		require.NoError(t, err)
		n++
	}
	assert.Equal(t, 101, n, "on two pages")
	for job, err := range j.Archived(ctx, jobs.Filter{Status: "cancelled"}) {
		require.NoError(t, err)
		assert.Equal(t, queued[0].ID, job.ID)
	}
	for _, err := range j.Archived(ctx, jobs.Filter{Status: "queued"}) {
		assertRefused(t, err, 400, "invalid_parameter")
	}
}
