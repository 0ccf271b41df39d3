package web

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"routemaster/internal/bus"
	"routemaster/internal/jobs"
	"routemaster/internal/telemetry"
	"routemaster/internal/web/rest"
)

// maxJobBody is the maximum size of a body with one job, in bytes: its data with as much white
// space, and room for the other members.
const maxJobBody = 2*jobs.MaxData + 4<<10

// randomID in place of an id requests a random one, for load tests.
const randomID = "random_id"

// sentJob is a job as clients send it.
type sentJob struct {
	// ID is a string in an array of jobs. In a request for one job, whose id is in the path, existing
	// clients send anything.
	ID        jsontext.Value `json:"id"`
	Data      jsontext.Value `json:"data"`
	RunAfter  *string        `json:"run_after"`
	ExpiresAt *string        `json:"expires_at"`
}

// read returns the job, whose id is read by a function. The pointer is where it is in the request.
func (s *sentJob) read(pointer string, readID func() (jobs.ID, error)) (job jobs.NewJob, err error) {
	job.Data = jobs.FitData(s.Data)
	if job.RunAfter, err = readTime(pointer+"/run_after", s.RunAfter); err != nil {
		return job, err
	}
	if job.ExpiresAt, err = readTime(pointer+"/expires_at", s.ExpiresAt); err != nil {
		return job, err
	}
	if s.Data == nil {
		return job, missing(pointer+"/data", "any JSON value, null included")
	}
	if job.ID, err = readID(); err != nil {
		return job, err
	}
	if len(job.Data) > jobs.MaxData {
		return job, &rest.Problem{
			Status: http.StatusRequestEntityTooLarge, Pointer: pointer + "/data",
			Detail: fmt.Sprintf("has %d bytes without white space; at most %d are allowed", len(job.Data), jobs.MaxData),
		}
	}
	if bus.IsTooDeep(s.Data) {
		return job, invalidParameter(pointer+"/data", "%s", bus.TooDeep)
	}
	return job, nil
}

// readTime reads a time as in RFC 3339. The zero time stands for none.
func readTime(pointer string, text *string) (t time.Time, err error) {
	if text == nil {
		return t, nil
	}
	t, ok := bus.ParseTime(*text)
	if !ok {
		return t, bus.Invalidf(pointer, "must be a time as in RFC 3339, such as 2026-01-31T18:00:00.000Z")
	}
	if first := time.UnixMilli(1); t.Before(first) {
		return first, nil // it is as past as any
	}
	if t.UTC().Year() > 9999 { // which RFC 3339 cannot say
		return t, bus.Invalidf(pointer, "must be a time before the year 10000 in UTC")
	}
	return t, nil
}

// putJob enqueues a job.
func (h *jobHandlers) putJob(w http.ResponseWriter, r *http.Request) {
	var sent sentJob
	err := h.ReadJSON(w, r, maxJobBody, &sent)
	var job jobs.NewJob
	if err == nil {
		job, err = sent.read("", func() (jobs.ID, error) {
			if chi.URLParam(r, "id") == randomID {
				return jobs.NewID(), nil
			}
			return idParam(r)
		})
	}
	var queued []jobs.Job
	if err == nil {
		queued, err = h.enqueue(r, []jobs.NewJob{job})
	}
	if err != nil {
		h.Fail(w, r, err)
		return
	}
	rest.WriteJSON(w, http.StatusAccepted, viewJob(r, queued[0]))
}

// sentJobs is an array of jobs as clients send it.
type sentJobs []sentJob

// UnmarshalJSONFrom reads the array, and stops where it is too long.
func (s *sentJobs) UnmarshalJSONFrom(decoder *jsontext.Decoder) error {
	if decoder.PeekKind() != '[' {
		return bus.Invalidf("", "must be an array of 1 to %d jobs", jobs.MaxBulk)
	}
	if _, err := decoder.ReadToken(); err != nil {
		return err
	}
	for decoder.PeekKind() != ']' {
		if len(*s) == jobs.MaxBulk {
			return bus.Invalidf("", "has more than %d jobs; send them in several requests", jobs.MaxBulk)
		}
		var job sentJob
		if err := json.UnmarshalDecode(decoder, &job); err != nil {
			return err
		}
		*s = append(*s, job)
	}
	_, err := decoder.ReadToken()
	return err
}

// postJobs enqueues an array of jobs: all of them, or none.
func (h *jobHandlers) postJobs(w http.ResponseWriter, r *http.Request) {
	var sent sentJobs
	err := h.ReadJSON(w, r, rest.MaxLongBody, &sent)
	var list []jobs.NewJob
	if err == nil {
		list, err = sent.read()
	}
	var queued []jobs.Job
	if err == nil {
		queued, err = h.enqueue(r, list)
	}
	if failed, ok := errors.AsType[*jobs.BulkError](err); ok {
		member := "/id"
		if invalid, ok := errors.AsType[*bus.Invalid](err); ok {
			member = invalid.Pointer
		}
		err = rest.At(pointerTo(failed.Index)+member, err)
	}
	if err != nil {
		h.Fail(w, r, err)
		return
	}
	rest.WriteJSON(w, http.StatusAccepted, viewJobs(r, queued))
}

// read returns the jobs.
func (s sentJobs) read() ([]jobs.NewJob, error) {
	if len(s) == 0 {
		return nil, bus.Invalidf("", "the array is empty; send 1 to %d jobs", jobs.MaxBulk)
	}
	list, at := make([]jobs.NewJob, len(s)), map[jobs.ID]int{}
	for i := range s {
		job, err := s[i].read(pointerTo(i), func() (jobs.ID, error) { return s[i].readID(pointerTo(i) + "/id") })
		if err != nil {
			return nil, err
		}
		if first, twice := at[job.ID]; twice {
			return nil, bus.Invalidf(pointerTo(i)+"/id", "is also the id of job %d of the array", first)
		}
		list[i], at[job.ID] = job, i
	}
	return list, nil
}

// readID returns the id of a job in an array.
func (s *sentJob) readID(pointer string) (jobs.ID, error) {
	switch s.ID.Kind() {
	case jsontext.KindInvalid, jsontext.KindNull:
		return "", missing(pointer, "job_ and a UUID")
	case jsontext.KindString:
		text, err := jsontext.AppendUnquote(nil, s.ID)
		if err != nil {
			return "", err
		}
		id, err := jobs.ParseID(string(text))
		return id, rest.At(pointer, err)
	}
	return "", bus.Invalidf(pointer, "must be a string")
}

// pointerTo is the JSON pointer of an element of an array.
func pointerTo(i int) string { return "/" + strconv.Itoa(i) }

// errEnded is [jobs.ErrArchived] of a job that is to be enqueued: existing clients know it by 400.
var errEnded = &rest.Problem{
	Status: http.StatusBadRequest, ID: "job_already_archived", Detail: "a job of this id has ended; send another id, or replay it",
}

// errRemoved is [jobs.ErrRemoved] of a job that is to be enqueued. There is nothing to be replayed.
var errRemoved = &rest.Problem{
	Status: http.StatusBadRequest, ID: "job_already_archived",
	Detail: "a job of this id has ended, and was removed less than 24 hours ago; jobs of this type are tried at most once: send another id",
}

// errTooLarge is [jobs.ErrTooLarge]. An array that is sent again with its data never is.
var errTooLarge = &rest.Problem{
	Status: http.StatusRequestEntityTooLarge,
	Detail: "this job and those before it are there already, with so much data that the response would be too large; send fewer at once",
}

// enqueue adds jobs of the type in a request's path.
func (h *jobHandlers) enqueue(r *http.Request, list []jobs.NewJob) ([]jobs.Job, error) {
	name, now := nameParam(r), h.Now()
	if name == jobs.MetaShutdown {
		return ignored(list, now), nil
	}
	queued, err := h.of(r, name).Enqueue(r.Context(), name, list, telemetry.Traceparent(r.Context()), now)
	if err == nil {
		h.config.Recorder.Count(telemetry.EnqueuedJobs, len(queued), string(name))
	}
	failed, ok := errors.AsType[*jobs.BulkError](err)
	switch {
	case ok && errors.Is(err, jobs.ErrArchived):
		h.config.Recorder.Count(telemetry.JobRequests, 1, telemetry.Enqueue, "archived")
		err = &jobs.BulkError{Index: failed.Index, Err: errEnded}
	case ok && errors.Is(err, jobs.ErrRemoved):
		h.config.Recorder.Count(telemetry.JobRequests, 1, telemetry.Enqueue, "archived")
		err = &jobs.BulkError{Index: failed.Index, Err: errRemoved}
	case ok && errors.Is(err, jobs.ErrTooLarge):
		err = &jobs.BulkError{Index: failed.Index, Err: errTooLarge}
	case ok && errors.Is(err, jobs.ErrNeverRuns):
		err = &jobs.BulkError{Index: failed.Index, Err: neverRuns(list[failed.Index])}
	}
	return queued, err
}

// neverRuns is [jobs.ErrNeverRuns] as a response that says what to change.
func neverRuns(job jobs.NewJob) error {
	fault := "is in the past"
	if !job.RunAfter.Before(job.ExpiresAt) {
		fault = "is not after run_after"
	}
	return bus.Invalidf("/expires_at", "%s, so that the job would never run: leave it out, or send a later time", fault)
}

// ignored returns jobs of [jobs.MetaShutdown], which are dropped: existing clients see them queued.
func ignored(list []jobs.NewJob, now time.Time) []jobs.Job {
	all := make([]jobs.Job, len(list))
	for i, job := range list {
		if job.RunAfter.IsZero() {
			job.RunAfter = now
		}
		all[i] = jobs.Job{
			ID: job.ID, Type: jobs.MetaShutdown, Status: jobs.Queued, Attempts: 1, Data: job.Data, Sequence: now.UnixMicro(),
			RunAfter: job.RunAfter, ExpiresAt: job.ExpiresAt, CreatedAt: now, UpdatedAt: now, EnqueuedAt: now,
		}
	}
	return all
}
