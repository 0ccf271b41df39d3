// Package jobs enqueues work for services to do, and lets services fetch and report on it.
//
//	queue := jobs.New(bus) // a *client.Client
//	job, err := queue.Enqueue(ctx, "invoice-shipments", jobs.NewJob{Data: shipment})
//
// A service that fetches its jobs does them so:
//
//	err := queue.Work(ctx, "invoice-shipments", func(ctx context.Context, job jobs.Fetched) error {
//		…
//	}, jobs.WorkOptions{Concurrency: 8})
package jobs

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"routemaster/client"
	"routemaster/client/subscriber"
)

// Jobs are the jobs of a bus. It is safe for concurrent use.
type Jobs struct{ client *client.Client }

// New returns the jobs of a bus.
func New(c *client.Client) *Jobs { return &Jobs{c} }

// Job is work that exactly one service has to do, and report on. Its JSON is the bus's.
type Job struct {
	ID   string `json:"id"`
	Type string `json:"name"`
	// Status is "queued", "in-progress", "succeeded", "failed", "expired" or "cancelled".
	Status string `json:"status"`
	// Attempts is how many are left, the one in progress included.
	Attempts int `json:"attempts"`
	// RunAfter and UpdatedAt are zero once the job has ended; ExpiresAt is zero if it never expires.
	RunAfter  time.Time `json:"run_after,omitzero"`
	ExpiresAt time.Time `json:"expires_at,omitzero"`
	// CreatedAt is when the job was enqueued, or when it ended.
	CreatedAt time.Time `json:"created_at"`
	UpdatedAt time.Time `json:"updated_at,omitzero"`
	// Deadline is when the service that has the job must report; zero if none has it.
	Deadline time.Time `json:"deadline,omitzero"`
	// Reason says why the last attempt failed or was put off: the error that the service reported, or
	// the bus's own reason.
	Reason string `json:"reason,omitzero"`
	// EnqueuedAt is when the job was enqueued, StartedAt when its last attempt began, EndedAt when it
	// ended; zero if that has not happened.
	EnqueuedAt time.Time       `json:"enqueued_at"`
	StartedAt  time.Time       `json:"started_at,omitzero"`
	EndedAt    time.Time       `json:"ended_at,omitzero"`
	Data       json.RawMessage `json:"data"`
	// AutoID grows in the order of enqueueing.
	AutoID int64 `json:"auto_id"`
}

// NewJob is a job to enqueue.
type NewJob struct {
	// ID is job_ and a UUID, for example from [NewID]. Enqueueing the same ID again adds no second
	// job. If it is empty, one is made.
	ID string `json:"id"`
	// Data is sent as JSON, of at most 102,400 bytes.
	Data any `json:"data"`
	// RunAfter, unless zero, is when the job may be given to its service, ExpiresAt until when.
	RunAfter  time.Time `json:"run_after,omitzero"`
	ExpiresAt time.Time `json:"expires_at,omitzero"`
}

// NewID makes a random id.
func NewID() string {
	var b [16]byte
	_, _ = rand.Read(b[:])                      // it never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80 // version 4, variant 10 (RFC 9562, 5.4)
	return fmt.Sprintf("job_%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// Enqueue adds a job of a type. If a job with its id has not ended, Enqueue returns that one.
func (j *Jobs) Enqueue(ctx context.Context, name string, job NewJob) (queued Job, err error) {
	if job.ID == "" {
		job.ID = NewID()
	}
	err = j.call(ctx, client.Request{Operation: "enqueue a job of " + name, Method: http.MethodPut, Path: jobPath(name, job.ID), Body: job}, &queued)
	return queued, err
}

// EnqueueAll adds up to 1,000 jobs of a type: all of them, or none.
func (j *Jobs) EnqueueAll(ctx context.Context, name string, jobs []NewJob) (queued []Job, err error) {
	sent := append([]NewJob{}, jobs...)
	for i := range sent {
		if sent[i].ID == "" {
			sent[i].ID = NewID()
		}
	}
	err = j.call(ctx, client.Request{Operation: "enqueue jobs of " + name, Method: http.MethodPost, Path: "/v1/jobs/" + url.PathEscape(name), Body: sent}, &queued)
	return queued, err
}

// Job looks a job up by its id, which begins with job_: 404 if there is none. On a bus with
// partitions it is 409 if jobs of several types have the id: [Jobs.JobOf] names the type.
func (j *Jobs) Job(ctx context.Context, id string) (job Job, err error) {
	err = j.call(ctx, client.Request{Operation: "show job " + id, Method: http.MethodGet, Path: "/v1/jobs/" + url.PathEscape(id)}, &job)
	return job, err
}

// JobOf looks a job of a type up: 404 if there is none, or it is of another type.
func (j *Jobs) JobOf(ctx context.Context, name, id string) (job Job, err error) {
	err = j.call(ctx, client.Request{Operation: "show job " + id, Method: http.MethodGet, Path: jobPath(name, id)}, &job)
	return job, err
}

// Attempt is one time that a job was given to its service, or should have been.
type Attempt struct {
	// Attempt is how many attempts were left, this one included. Reports name this number.
	Attempt int `json:"attempt"`
	// BeganAt and EndedAt are zero if that is not known, or has not happened. Duration is the time
	// between them.
	BeganAt  time.Time               `json:"began_at,omitzero"`
	EndedAt  time.Time               `json:"ended_at,omitzero"`
	Duration subscriber.Milliseconds `json:"duration,omitzero"`
	// Outcome is "succeeded", "failed", "held" if the service asked for time, or "in-progress".
	Outcome string `json:"outcome"`
	// Status is the HTTP status with which the service answered the bus, 0 for none; Error says why
	// the attempt failed, and Excerpt is the beginning of the answer.
	Status  int    `json:"status,omitzero"`
	Error   string `json:"error,omitzero"`
	Excerpt string `json:"excerpt,omitzero"`
}

// Attempts lists the last attempts at a job of a type, at most 20, the latest first.
func (j *Jobs) Attempts(ctx context.Context, name, id string) (attempts []Attempt, err error) {
	err = j.call(ctx, client.Request{Operation: "list attempts at job " + id, Method: http.MethodGet, Path: jobPath(name, id) + "/attempts"}, &attempts)
	return attempts, err
}

// Cancel ends a job of a type: 409 if it has ended otherwise. It reports whether the job was in
// progress: then its service has it, and may do the work all the same. After a lost response that
// is unknown, and Cancel returns false.
func (j *Jobs) Cancel(ctx context.Context, name, id string) (inProgress bool, err error) {
	got, err := j.client.Call(ctx, client.Request{Operation: "cancel job " + id, Method: http.MethodDelete, Path: jobPath(name, id)}, nil)
	return err == nil && got.Status == http.StatusAccepted, err
}

// Replay enqueues a copy, with another id and all attempts, of a job that is in progress or has
// ended: 400 if it is queued. Each call makes one copy, also if its response was lost and it was
// sent again.
func (j *Jobs) Replay(ctx context.Context, id string) (replayed Job, err error) {
	return j.replay(ctx, id, "/v1/jobs/"+url.PathEscape(id))
}

// ReplayOf is [Jobs.Replay] of a job of a type.
func (j *Jobs) ReplayOf(ctx context.Context, name, id string) (replayed Job, err error) {
	return j.replay(ctx, id, jobPath(name, id))
}

func (j *Jobs) replay(ctx context.Context, id, path string) (replayed Job, err error) {
	path += "/replay"
	err = j.call(ctx, client.Request{Operation: "replay job " + id, Method: http.MethodPost, Path: path, IdempotencyKey: rand.Text()}, &replayed)
	return replayed, err
}

// Report is a service's report on an attempt.
type Report struct {
	// Attempt is the attempt number that came with the job.
	Attempt   int
	Succeeded bool
	// Final means that a job that failed is not tried again.
	Final bool
	// Error says why it failed, in at most 4,096 bytes; more is cut.
	Error string
}

// MarshalJSON writes the report as the bus takes it.
func (r Report) MarshalJSON() ([]byte, error) {
	status := "failed"
	if r.Succeeded {
		status = "succeeded"
	}
	return json.Marshal(struct {
		Status    string `json:"status"`
		Attempt   int    `json:"attempt"`
		Retryable bool   `json:"retryable"`
		Error     string `json:"error,omitempty"`
	}{status, r.Attempt, !r.Final, r.Error})
}

// Report reports on an attempt of a job: 409 if it is not the job's attempt any more. The same
// report may be sent again.
func (j *Jobs) Report(ctx context.Context, name, id string, r Report) error {
	return j.call(ctx, client.Request{Operation: "report on job " + id, Method: http.MethodPost, Path: jobPath(name, id), Body: r}, nil)
}

// Extend moves the deadline of an attempt to a time from now, 1 s to 24 h.
func (j *Jobs) Extend(ctx context.Context, name, id string, attempt int, timeout time.Duration) (deadline time.Time, err error) {
	body := struct {
		Attempt int                     `json:"attempt"`
		Timeout subscriber.Milliseconds `json:"timeout"`
	}{attempt, subscriber.Milliseconds(timeout.Milliseconds())}
	var extended struct {
		Deadline time.Time `json:"deadline"`
	}
	err = j.call(ctx, client.Request{Operation: "extend job " + id, Method: http.MethodPost, Path: jobPath(name, id) + "/extend", Body: body}, &extended)
	return extended.Deadline, err
}

// Fetched is a job that a service has taken. It has to report on the attempt by the deadline, by
// the bus's clock.
type Fetched struct {
	ID       string          `json:"id"`
	Data     json.RawMessage `json:"data"`
	Attempt  int             `json:"attempt"`
	Deadline time.Time       `json:"deadline"`
}

// Fetch takes up to 100 jobs of a type whose services fetch them. It waits up to 30 s for the
// first, and returns none if none came. The timeout of the HTTP client (30 s) has to be longer than
// wait. The request is not sent again.
func (j *Jobs) Fetch(ctx context.Context, name string, limit int, wait time.Duration) (fetched []Fetched, err error) {
	body := struct {
		Max  int                     `json:"max"`
		Wait subscriber.Milliseconds `json:"wait"`
	}{limit, subscriber.Milliseconds(wait.Milliseconds())}
	path := "/v1/jobs/" + url.PathEscape(name) + "/fetch"
	err = j.call(ctx, client.Request{Operation: "fetch jobs of " + name, Method: http.MethodPost, Path: path, Body: body, NoRetry: true}, &fetched)
	return fetched, err
}

func (j *Jobs) call(ctx context.Context, r client.Request, into any) error {
	_, err := j.client.Call(ctx, r, into)
	return err
}

func jobPath(name, id string) string {
	return "/v1/jobs/" + url.PathEscape(name) + "/" + url.PathEscape(id)
}
