package web_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/jobs"
	"routemaster/internal/queue"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/web"
	"routemaster/internal/web/webtest"
)

// start is the initial time of an api's clock.
var start = time.Date(2026, 1, 31, 18, 0, 0, 123_456_000, time.UTC)

// newJobs makes an API whose clock stands at the start.
func newJobs(t *testing.T, redis *rdbtest.Server, adjust ...func(*web.Config)) *jobsAPI {
	t.Helper()
	a := newJobsAPI(t, redis, adjust...)
	a.Clock = func() time.Time { return start }
	return &a
}

// add makes a type whose services fetch its jobs, of three attempts and a limit of one, with
// changes. "ship", "pay" and "bill" are always in the same partition, where an id is of one job.
func (a *jobsAPI) add(name jobs.TypeName, changes ...func(*jobs.Type)) {
	a.T.Helper()
	t := jobs.Type{
		Name: name, Strategy: jobs.AtLeastOnce, Attempts: 3, Concurrency: 1, Pull: true,
		Timeout: time.Minute, Retention: time.Hour, CreatedAt: start, UpdatedAt: start,
	}
	for _, change := range changes {
		change(&t)
	}
	require.NoError(a.T, a.jobs.CreateType(a.T.Context(), t))
}

func atMostOnce(t *jobs.Type) { t.Strategy, t.Attempts = jobs.AtMostOnce, 1 }

func attempts(n int) func(*jobs.Type) { return func(t *jobs.Type) { t.Attempts = n } }

func limit(n int) func(*jobs.Type) { return func(t *jobs.Type) { t.Concurrency = n } }

// jobID is the id of the job with a number, as clients see it.
func jobID(n int) string { return fmt.Sprintf("job_00000000-0000-4000-8000-%012d", n) }

// job is a job as a response shows it.
type job struct {
	ID, Name, Status            string
	Attempts                    int
	RunAfter                    string  `json:"run_after"`
	ExpiresAt                   *string `json:"expires_at"`
	CreatedAt                   string  `json:"created_at"`
	UpdatedAt, Deadline, Reason string
	Data                        json.RawMessage
	AutoID                      int64 `json:"auto_id"`
}

// require sends a request, and requires a status. It returns the body.
func (a *jobsAPI) require(status int, method, path, body string) string {
	a.T.Helper()
	got := a.Do(alice, method, path, body)
	require.Equal(a.T, status, got.Status, "%s %s %s: %s", method, path, body, got.Body)
	return got.Body
}

// put enqueues the job of a type with a number, for now.
func (a *jobsAPI) put(name string, n int) (path string) {
	a.T.Helper()
	path = "/v1/jobs/" + name + "/" + jobID(n)
	a.require(202, "PUT", path, `{"data":null}`)
	return path
}

// show looks a job up.
func (a *jobsAPI) show(path string) (shown job) {
	a.T.Helper()
	require.NoError(a.T, json.Unmarshal([]byte(a.require(200, "GET", path, "")), &shown))
	return shown
}

// fetch takes a job of a type.
func (a *jobsAPI) fetch(name string) (attempt int) {
	a.T.Helper()
	var fetched []struct{ Attempt int }
	require.NoError(a.T, json.Unmarshal([]byte(a.require(200, "POST", "/v1/jobs/"+name+"/fetch", "")), &fetched))
	require.Len(a.T, fetched, 1)
	return fetched[0].Attempt
}

// pass moves the clock on, and a worker takes the due jobs. None of them may need to be sent.
func (a *jobsAPI) pass(d time.Duration) {
	a.T.Helper()
	a.Ahead += d
	now := start.Add(a.Ahead)
	for _, q := range a.jobs.Queues() {
		_, err := q.Schedule(a.T.Context(), bus.QueueJobs, now, 1000)
		require.NoError(a.T, err)
	}
	_, task := a.acquire("worker", now)
	require.Nil(a.T, task)
}

// acquire has a worker take a job, nil if there is none, from the queue that it returns.
func (a *jobsAPI) acquire(worker bus.WorkerID, now time.Time) (*queue.Queue, *queue.Task) {
	a.T.Helper()
	for _, q := range a.jobs.Queues() {
		taken, err := q.Acquire(a.T.Context(), bus.QueueJobs, worker, bus.Failing, now)
		require.NoError(a.T, err)
		if taken.Task != nil {
			return q, taken.Task
		}
	}
	return nil, nil
}

// refuse requires that requests are refused with a status and an id.
func (a *jobsAPI) refuse(method, path, body string, status int, id string) webtest.Problem {
	a.T.Helper()
	got := a.Problem(alice, method, path, body)
	assert.Equal(a.T, status, got.Status, "%s %s %s: %s", method, path, body, got.Detail)
	assert.Equal(a.T, id, got.ID, "%s %s %s: %s", method, path, body, got.Detail)
	instance, _, _ := strings.Cut(path, "?")
	assert.Equal(a.T, instance, got.Instance)
	return got
}
