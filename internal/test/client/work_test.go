package client_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/client/jobs"
)

// work runs a worker until stop is called, which waits for its end.
func work(t *testing.T, j *jobs.Jobs, handle jobs.Handler, options jobs.WorkOptions) (stop func()) {
	t.Helper()
	options.Wait = 20 * time.Millisecond
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- j.Work(ctx, "ship", handle, options) }()
	return func() {
		cancel()
		assert.NoError(t, <-ended)
	}
}

func TestAWorkerReportsWhatBecameOfJobs(t *testing.T) {
	j := connectJobs(t)
	ctx := t.Context()
	addType(t, j, "ship", jobs.AtLeastOnce, 3)
	queued, err := j.EnqueueAll(ctx, "ship", []jobs.NewJob{{Data: "fine"}, {Data: "fails"}, {Data: "hopeless"}})
	require.NoError(t, err)
	began := make(chan struct{}, 3)
	stop := work(t, j, func(_ context.Context, job jobs.Fetched) error {
		began <- struct{}{}
		switch string(job.Data) {
		case `"fails"`:
			return errors.New("not now")
		case `"hopeless"`:
			return jobs.Final(errors.New("never"))
		}
		return nil
	}, jobs.WorkOptions{Concurrency: 2})
	for range queued {
		<-began
	}
	stop()
	for i, want := range []struct {
		status   string
		attempts int
	}{{"succeeded", 3}, {"queued", 2}, {"failed", 2}} {
		job, err := j.Job(ctx, queued[i].ID)
		require.NoError(t, err)
		assert.Equal(t, want.status, job.Status)
		assert.Equal(t, want.attempts, job.Attempts)
	}
	tries, err := j.Attempts(ctx, "ship", queued[2].ID)
	require.NoError(t, err)
	require.Len(t, tries, 1)
	assert.Equal(t, []any{3, "failed", "never"}, []any{tries[0].Attempt, tries[0].Outcome, tries[0].Error})
	assert.False(t, tries[0].EndedAt.Before(tries[0].BeganAt))
}

// TestAStoppedWorkerFinishes stops one that has a job in hand, for longer than its timeout.
func TestAStoppedWorkerFinishes(t *testing.T) {
	j := connectJobs(t)
	ctx := t.Context()
	addType(t, j, "ship", jobs.AtLeastOnce, 3)
	queued, err := j.Enqueue(ctx, "ship", jobs.NewJob{})
	require.NoError(t, err)
	began, finish := make(chan jobs.Fetched), make(chan struct{})
	stop := work(t, j, func(ctx context.Context, job jobs.Fetched) error {
		began <- job
		<-finish
		return ctx.Err()
	}, jobs.WorkOptions{})
	first := (<-began).Deadline
	stopped := make(chan struct{})
	go func() { stop(); close(stopped) }()
	require.Eventually(t, func() bool {
		job, err := j.Job(ctx, queued.ID)
		return err == nil && job.Deadline.After(first)
	}, time.Minute, 20*time.Millisecond, "the deadline is moved")
	select {
	case <-stopped:
		t.Fatal("it did not wait for its job")
	default:
	}
	close(finish)
	<-stopped
	done, err := j.Job(ctx, queued.ID)
	require.NoError(t, err)
	assert.Equal(t, "succeeded", done.Status)
}

func TestACancelledJobEndsItsHandler(t *testing.T) {
	j := connectJobs(t)
	addType(t, j, "ship", jobs.AtLeastOnce, 3)
	queued, err := j.Enqueue(t.Context(), "ship", jobs.NewJob{})
	require.NoError(t, err)
	began, ended := make(chan struct{}), make(chan struct{})
	stop := work(t, j, func(ctx context.Context, _ jobs.Fetched) error {
		began <- struct{}{}
		<-ctx.Done()
		close(ended)
		return ctx.Err()
	}, jobs.WorkOptions{})
	<-began
	inProgress, err := j.Cancel(t.Context(), "ship", queued.ID)
	require.NoError(t, err)
	assert.True(t, inProgress)
	<-ended
	stop()
	job, err := j.Job(t.Context(), queued.ID)
	require.NoError(t, err)
	assert.Equal(t, "cancelled", job.Status)
}

func TestAWorkerEndsWhenTheBusRefuses(t *testing.T) {
	j := connectJobs(t)
	_, err := j.AddType(t.Context(), jobs.Type{Name: "ship", Strategy: jobs.AtMostOnce, Attempts: 1, Concurrency: 1, URL: new("https://ship.example/")})
	require.NoError(t, err)
	assertRefused(t, j.Work(t.Context(), "ship", nil, jobs.WorkOptions{}), 409, "conflict")
	assertRefused(t, j.Work(t.Context(), "other", nil, jobs.WorkOptions{}), 404, "job_type_not_found")
}
