package jobs

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"time"

	"routemaster/client"
	"routemaster/client/internal/header"
	"routemaster/client/subscriber"
)

// The strategies of a [Type].
const (
	// AtLeastOnce jobs are tried again until they succeed or have no attempt left.
	AtLeastOnce = "at_least_once"
	// AtMostOnce jobs are tried once, whatever happens.
	AtMostOnce = "at_most_once"
)

// Type says where jobs go, how often they are tried, and how many are in progress at once.
type Type struct {
	Name     string `json:"name"`
	Strategy string `json:"delivery_strategy"`
	// Attempts is how often a job is tried at most, 1 for [AtMostOnce]; Concurrency is how many are in
	// progress at most, over all workers. Both are 1 to 32,767.
	Attempts    int `json:"attempts"`
	Concurrency int `json:"concurrency"`
	// URL is where jobs are POSTed. If it is nil, services fetch the jobs; if it is empty, they go to
	// the URL that the bus's operator has set.
	URL *string `json:"url"`
	// Timeout is from when a service has taken a job until it has to report, 0 for 5 minutes.
	Timeout subscriber.Milliseconds `json:"timeout,omitzero"`
	// Retention is how long a job is kept that has ended, in s; nil is 7 days.
	Retention *int64 `json:"retention,omitzero"`
	// Paused means that no job is taken.
	Paused bool `json:"paused"`
	// Schedule, a cron expression of five fields in a time zone (UTC if that is empty), says when a
	// job with ScheduleData is enqueued.
	Schedule     string          `json:"schedule,omitzero"`
	Timezone     string          `json:"timezone,omitzero"`
	ScheduleData json.RawMessage `json:"schedule_data,omitempty"`
	// Clients are the names of 1 to 32 clients that may enqueue, cancel, replay, fetch, extend and
	// report its jobs, besides root; nil allows all.
	Clients []string `json:"clients,omitzero"`
}

// TypeInfo is a type as the bus has it.
type TypeInfo struct {
	Type
	// Owner is the name of the client that made it, and may change it.
	Owner     string    `json:"owner"`
	CreatedAt time.Time `json:"created_at"`
	UpdatedAt time.Time `json:"updated_at"`
	// NextAt is the next time of its schedule; zero without one.
	NextAt time.Time `json:"next_at,omitzero"`
	// HeldUntil is until when its jobs are held back, because the service asked for time; zero if they
	// are not.
	HeldUntil time.Time `json:"held_until,omitzero"`
	// SkippedAt is the last time that its schedule has skipped; zero if it has enqueued one since.
	SkippedAt time.Time `json:"skipped_at,omitzero"`
	// SkipReason says why: "jobs_open" if too many of its jobs had not ended, "account_full" if its
	// owner's account was full; empty if it has not.
	SkipReason string `json:"skip_reason,omitempty"`
	Counts     Counts `json:"counts"`
	// Causes are why jobs that have not ended are not in progress, or stay there: "no_worker",
	// "no_job_threads", "paused", "held_type", "concurrency", "awaiting_fetch" or "not_due".
	Causes []string `json:"causes"`
}

// Counts are the numbers of a type's jobs that have not ended.
type Counts struct {
	// Queued counts all jobs that wait, Waiting the ones among them that are due and held back by the
	// limit or a pause.
	Queued     int64 `json:"queued"`
	Waiting    int64 `json:"waiting"`
	InProgress int64 `json:"in_progress"`
}

// AddType makes a type: 400 if its name is taken. The request is not sent again when its response
// was lost.
func (j *Jobs) AddType(ctx context.Context, t Type) (made TypeInfo, err error) {
	err = j.call(ctx, client.Request{Operation: "add job type " + t.Name, Method: http.MethodPost, Path: "/v2/job-types", Body: t, NoRetry: true}, &made)
	return made, err
}

// Type returns a type: 404 if there is none.
func (j *Jobs) Type(ctx context.Context, name string) (t TypeInfo, err error) {
	err = j.call(ctx, client.Request{Operation: "show job type " + name, Method: http.MethodGet, Path: typePath(name)}, &t)
	return t, err
}

// Types returns all types, newest first, without the data of their schedules.
func (j *Jobs) Types(ctx context.Context) (all []TypeInfo, err error) {
	path, after := "/v2/job-types", ""
	for {
		var page []TypeInfo
		got, err := j.client.Call(ctx, client.Request{Operation: "list job types", Method: http.MethodGet, Path: path}, &page)
		if err != nil {
			return nil, err
		}
		all = append(all, page...)
		next := header.Next(got.Header, "after")
		if next == "" || next == after {
			return all, nil
		}
		after, path = next, "/v2/job-types?"+url.Values{"after": {next}}.Encode()
	}
}

// ChangeType changes some fields of a type, by their names in the JSON of [Type]. A nil value makes
// a field its default. Only the client that made the type and root may.
func (j *Jobs) ChangeType(ctx context.Context, name string, fields map[string]any) (t TypeInfo, err error) {
	err = j.call(ctx, client.Request{Operation: "change job type " + name, Method: http.MethodPatch, Path: typePath(name), Body: fields}, &t)
	return t, err
}

// DeleteType removes a type: 409 while jobs of it have not ended.
func (j *Jobs) DeleteType(ctx context.Context, name string) error {
	return j.call(ctx, client.Request{Operation: "delete job type " + name, Method: http.MethodDelete, Path: typePath(name)}, nil)
}

// DeleteTypeAndJobs removes a type, and cancels the jobs of it that have not ended.
func (j *Jobs) DeleteTypeAndJobs(ctx context.Context, name string) error {
	return j.call(ctx, client.Request{Operation: "delete job type " + name, Method: http.MethodDelete, Path: typePath(name) + "?force=true"}, nil)
}

func typePath(name string) string { return "/v2/job-types/" + url.PathEscape(name) }
