package web

import (
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strings"

	"github.com/go-chi/chi/v5"

	"routemaster/internal/bus"
	"routemaster/internal/jobs"
	"routemaster/internal/telemetry"
	"routemaster/internal/web/rest"
)

// jobView is a job. RunAfter and UpdatedAt are only shown of a job that has not ended; CreatedAt of
// one that has is when it was archived.
type jobView struct {
	ID string `json:"id" api:"ref=JobID"`
	// Its type.
	Name jobs.TypeName `json:"name"`
	// How many attempts are left, the one in progress included: the `attempt` of a report.
	Attempts int         `json:"attempts" api:"minimum=0 maximum=32767"`
	Status   jobs.Status `json:"status" api:"enum=queued|in-progress|succeeded|failed|expired|cancelled"`
	// The earliest time at which it is given to its service.
	RunAfter string `json:"run_after,omitempty" api:"format=date-time"`
	// The latest.
	ExpiresAt *string `json:"expires_at" api:"format=date-time"`
	// When it was enqueued or, of a job that has ended, archived.
	CreatedAt string `json:"created_at" api:"format=date-time"`
	// When it changed last.
	UpdatedAt string `json:"updated_at,omitempty" api:"format=date-time"`
	// Until when its service has to report, if it has the job.
	Deadline string `json:"deadline,omitempty" api:"format=date-time"`
	// Why the last attempt failed or was put off: the `error` that the service has reported, or what
	// else happened.
	Reason string `json:"reason,omitempty"`
	// Any JSON value. It is kept as it is sent, but for white space that makes it longer.
	Data json.RawMessage `json:"data"`
	// Grows from one job to the next, in the order in which they were enqueued.
	AutoID int64 `json:"auto_id"`
	// When it was enqueued.
	EnqueuedAt string `json:"enqueued_at" api:"format=date-time"`
	// When its last attempt began, if one has.
	StartedAt string `json:"started_at,omitempty" api:"format=date-time"`
	// When it was archived, if it was.
	EndedAt string `json:"ended_at,omitempty" api:"format=date-time"`
}

// viewJob returns how a job is shown to a caller.
func viewJob(r *http.Request, job jobs.Job) jobView {
	view := jobView{
		ID: job.ID.String(), Name: job.Type, Attempts: job.Attempts, Status: job.Status,
		ExpiresAt: rest.OrNull(timestamp(job.ExpiresAt)), CreatedAt: timestamp(job.CreatedAt),
		Deadline: timestamp(job.Deadline), Reason: bus.ShownReason(job.Reason, rest.Caller(r).Root), Data: job.Data, AutoID: job.Sequence,
		EnqueuedAt: timestamp(job.EnqueuedAt), StartedAt: timestamp(job.StartedAt), EndedAt: timestamp(job.EndedAt),
	}
	if !job.Status.IsArchived() {
		view.RunAfter, view.UpdatedAt = timestamp(job.RunAfter), timestamp(job.UpdatedAt)
	}
	return view
}

func viewJobs(r *http.Request, list []jobs.Job) []jobView {
	views := make([]jobView, len(list))
	for i, job := range list {
		views[i] = viewJob(r, job)
	}
	return views
}

// The length of an id in characters, without its prefix.
const (
	minID = 20
	maxID = 40
)

// idParam returns the job in a request's path. Only where the path has a type, too, may the prefix
// be left out.
func idParam(r *http.Request) (jobs.ID, error) {
	text := chi.URLParam(r, "id")
	digits, prefixed := strings.CutPrefix(text, jobs.IDPrefix)
	if !prefixed && nameParam(r) == "" || len(digits) < minID || len(digits) > maxID {
		return "", &rest.Problem{Status: http.StatusNotFound, Detail: "there is nothing at this path; a job's id is job_ and a UUID"}
	}
	return jobs.ParseID(text)
}

// getJob shows a job.
func (h *jobHandlers) getJob(w http.ResponseWriter, r *http.Request) {
	id, err := idParam(r)
	h.showJob(w, r, nameParam(r), id, err)
}

// getTypeOrJob shows the type in a request's path or, if that is the id of a job, the job.
func (h *jobHandlers) getTypeOrJob(w http.ResponseWriter, r *http.Request) {
	text := string(nameParam(r))
	if !strings.HasPrefix(text, jobs.IDPrefix) {
		h.getType(w, r)
		return
	}
	id, err := jobs.ParseID(text)
	h.showJob(w, r, "", id, err)
}

// showJob shows a job of a type, or of any if the name is empty.
func (h *jobHandlers) showJob(w http.ResponseWriter, r *http.Request, name jobs.TypeName, id jobs.ID, err error) {
	var job jobs.Job
	if err == nil {
		job, err = h.stores.Job(r.Context(), name, id)
		h.count(telemetry.Get, job.Status, err)
	}
	h.RespondJSON(w, r, viewJob(r, job), h.explained(r, id, err))
}

// jobAttemptView is an attempt at a job. Clients do not see the answers of an address that one of
// them chose and that is not a public one, nor how long it did not answer.
type jobAttemptView struct {
	// How many attempts were left, this one included: the `attempt` of its report.
	Attempt int `json:"attempt" api:"minimum=0 maximum=32767"`
	// When a worker or a service took the job; null if it was reported on before.
	BeganAt *string `json:"began_at" api:"format=date-time"`
	// When it was known what came of it; null while it is not, and as `duration` is.
	EndedAt *string `json:"ended_at" api:"format=date-time"`
	// The time between these, in ms; null without one of them, and to clients if an address that is
	// not public gave no answer.
	Duration *int64 `json:"duration" api:"minimum=0"`
	// `held`: the service asked for time, and no attempt was lost.
	Outcome string `json:"outcome" api:"enum=succeeded|failed|held|in-progress"`
	// The status of the service's answer to the POST; null without one, and to clients if the address
	// is not public.
	Status *int `json:"status"`
	// Why it failed, as the `reason` of a job, cut to 1,024 bytes.
	Error *string `json:"error"`
	// The beginning of the answer, up to 256 bytes; null as `status` is.
	Excerpt *string `json:"excerpt"`
}

func viewJobAttempt(a jobs.Attempt, root bool) jobAttemptView {
	view := jobAttemptView{
		Attempt: a.Attempt, BeganAt: rest.OrNull(timestamp(a.BeganAt)), EndedAt: rest.OrNull(timestamp(a.EndedAt)),
		Outcome: a.Outcome, Error: rest.OrNull(bus.ShownReason(a.Error, root)),
	}
	switch {
	case !root && bus.HidesDuration(a.Status, a.Public):
		view.EndedAt = nil // with the beginning it would say as much
	case !a.BeganAt.IsZero() && !a.EndedAt.IsZero():
		view.Duration = new(max(a.EndedAt.Sub(a.BeganAt).Milliseconds(), 0))
	}
	if a.Public || root {
		view.Status, view.Excerpt = rest.OrNull(a.Status), rest.OrNull(a.Excerpt)
	}
	return view
}

// getAttempts lists the last attempts at a job, the latest first.
func (h *jobHandlers) getAttempts(w http.ResponseWriter, r *http.Request) {
	name := nameParam(r)
	id, err := idParam(r)
	var attempts []jobs.Attempt
	if err == nil {
		attempts, err = h.stores.Of(name).Attempts(r.Context(), name, id)
	}
	views := make([]jobAttemptView, len(attempts))
	for i, a := range attempts {
		views[i] = viewJobAttempt(a, rest.Caller(r).Root)
	}
	h.RespondJSON(w, r, views, h.explained(r, id, err))
}

// count counts a request for a job.
func (h *jobHandlers) count(request string, status jobs.Status, err error) {
	switch {
	case errors.Is(err, jobs.ErrUnknownJob):
		h.config.Recorder.Count(telemetry.JobRequests, 1, request, "not_found")
	case err != nil:
	case status.IsArchived():
		h.config.Recorder.Count(telemetry.JobRequests, 1, request, "archived")
	default:
		h.config.Recorder.Count(telemetry.JobRequests, 1, request, "queued")
	}
}

// replayJob enqueues a copy of a job.
func (h *jobHandlers) replayJob(w http.ResponseWriter, r *http.Request) {
	name := nameParam(r)
	id, err := idParam(r)
	if err == nil {
		err = h.RefuseBody(w, r)
	}
	var copied jobs.ID
	if err == nil {
		name, copied, err = h.copyID(r, name, id)
	}
	var job jobs.Job
	if err == nil {
		job, err = h.stores.For(clientOf(r)).Replay(r.Context(), name, id, copied, h.Now())
	}
	h.count(telemetry.Replay, job.Status, err)
	if err != nil {
		h.Fail(w, r, h.explained(r, id, err))
		return
	}
	h.LogChange(r, "a job was replayed", jobField(id), slog.String("new", job.ID.String()))
	rest.WriteJSON(w, http.StatusCreated, viewJob(r, job))
}

// copyID is the id for the copy of a job: with an idempotency key the same as in earlier requests
// of the client for this job. So the key is remembered for as long as the copy is kept. As the type
// is part of it, that is looked up if it is not given; else it is returned as it is.
func (h *jobHandlers) copyID(r *http.Request, name jobs.TypeName, of jobs.ID) (jobs.TypeName, jobs.ID, error) {
	key, err := rest.IdempotencyKey(r)
	if err != nil || key == "" {
		return name, jobs.NewID(), err
	}
	if name == "" {
		job, err := h.stores.Job(r.Context(), "", of)
		if err != nil {
			return "", "", err
		}
		name = job.Type
	}
	return name, jobs.ReplayedID(rest.Caller(r).PublicName(), name, of, key), nil
}

// deleteJob cancels a job: with 204, or with 202 if its service has it and may do the work all the
// same.
func (h *jobHandlers) deleteJob(w http.ResponseWriter, r *http.Request) {
	name := nameParam(r)
	id, err := idParam(r)
	var was jobs.Status
	if err == nil {
		was, err = h.of(r, name).Cancel(r.Context(), name, id, h.Now())
	}
	if err != nil {
		h.Fail(w, r, h.explained(r, id, err))
		return
	}
	if was != jobs.Cancelled {
		h.config.Recorder.Count(telemetry.EndedJobs, 1, string(name), string(jobs.Cancelled), telemetry.Web)
		h.LogChange(r, "a job was cancelled", jobField(id), slog.String("was", string(was)))
	}
	if was == jobs.InProgress {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// jobField is the job that a change is about.
func jobField(id jobs.ID) slog.Attr { return slog.String("job", id.String()) }
