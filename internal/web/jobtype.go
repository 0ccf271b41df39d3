package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-json-experiment/json/jsontext"

	"routemaster/internal/bus"
	"routemaster/internal/jobs"
	"routemaster/internal/overview"
	"routemaster/internal/telemetry"
	"routemaster/internal/web/rest"
)

var (
	typeInPath = parameter{name: "name", in: "path", component: "JobTypeName", words: "The job type."}
	// typesLimit bounds a page of types: with the longest URLs and schedules it has less than 8 MiB.
	typesLimit = parameter{
		name: "limit", kind: "integer", min: 1, max: 1000, fallback: 1000, component: "JobTypeLimit",
		words: "The maximum number of types of a page.",
	}
	typeTooLarge = problem{
		http.StatusRequestEntityTooLarge,
		"The body is too large: 264 KiB.",
		"JobTypeTooLarge",
	}
)

// typeOperations are about job types. Every client may use them, and the operator; a type is
// changed by the client that made it, or the operator.
func (h *jobHandlers) typeOperations() []operation {
	return []operation{
		{
			method: http.MethodGet, path: "/v2/job-types", handle: h.getTypes,
			id: "listJobTypes", tag: "job types",
			summary: "List the job types, newest first",
			about:   "Without `schedule_data`, which the single type has.",
			params:  []parameter{typesLimit, pageAfter},
			returns: pages("A page of the types.", []typeView{}),
		},
		{
			method: http.MethodPost, path: "/v2/job-types", handle: h.postType,
			id: "addJobType", tag: "job types",
			summary: "Make a job type",
			about:   "It is the client's that makes it.",
			body: &body{
				of:       schemaRef("NewJobType"),
				example:  `{"name":"receipt","delivery_strategy":"at_least_once","attempts":5,"concurrency":10,"url":"https://jobs.example/receipt","timeout":60000}`,
				tooLarge: &typeTooLarge,
			},
			returns: returns(http.StatusCreated, "The type.", typeView{}),
			fails:   []problem{{status: http.StatusConflict, words: "There are too many job types."}, accountFull},
		},
		{
			method: http.MethodPost, path: "/v1/jobs", handle: h.postType, query: ignoreOthers,
			id: "addJobTypeV1", tag: "job types",
			summary: "Make a job type",
			about:   "It is the client's that makes it. As in version 2.",
			body: &body{
				of:       schemaRef("NewJobType"),
				example:  `{"name":"invoice","delivery_strategy":"at_least_once","attempts":5,"concurrency":10,"url":"https://jobs.example/invoice","timeout":60000}`,
				tooLarge: &typeTooLarge,
			},
			returns: returns(http.StatusCreated, "The type.", typeView{}),
			fails:   []problem{{status: http.StatusConflict, words: "There are too many job types."}, accountFull},
		},
		{
			method: http.MethodGet, path: "/v1/jobs/{name}", handle: h.getTypeOrJob, query: ignoreOthers,
			id: "getJobTypeV1", tag: "job types",
			summary: "Show a job type or, by its id, a job",
			params:  []parameter{{name: "name", in: "path", words: "The job type, or `job_` and the UUID of a job."}},
			returns: returns(http.StatusOK, "The type, or the job.", oneOf{typeView{}, jobView{}}),
			fails:   []problem{notFound, severalJobs},
		},
		{
			method: http.MethodGet, path: "/v2/job-types/{name}", handle: h.getType,
			id: "getJobType", tag: "job types",
			summary: "Show a job type",
			params:  []parameter{typeInPath},
			returns: returns(http.StatusOK, "The type.", typeView{}),
			fails:   []problem{notFound},
		},
		{
			method: http.MethodPatch, path: "/v2/job-types/{name}", handle: h.patchType,
			id: "changeJobType", tag: "job types",
			summary: "Change a job type",
			about: "For the client that made it, and the operator. What is left out stays as it is; null sets the " +
				"default, and for `url` that services fetch the jobs. It holds at once on all workers, for queued" +
				" jobs too.",
			params: []parameter{typeInPath},
			body: &body{
				of:       schemaRef("JobTypeChange"),
				example:  `{"concurrency":20,"paused":false}`,
				tooLarge: &typeTooLarge,
			},
			returns: returns(http.StatusOK, "The type as it is now.", typeView{}),
			fails:   []problem{forbidden, notFound, accountFull},
		},
		{
			method: http.MethodDelete, path: "/v2/job-types/{name}", handle: h.deleteType,
			id: "deleteJobType", tag: "job types",
			summary: "Delete a job type",
			about:   "For the client that made it, and the operator. Archived jobs are kept as long as before.",
			params: []parameter{
				typeInPath,
				{name: "force", kind: "boolean", fallback: false, words: "Whether jobs that have not ended are cancelled."},
			},
			returns: returns(http.StatusNoContent, "Deleted.", nil),
			fails:   []problem{forbidden, notFound, {status: http.StatusConflict, words: "Jobs of the type have not ended."}},
		},
	}
}

// maxTypeBody is the maximum size of a body with a job type, in bytes: the data of its schedule
// with as much white space, and the other members.
const maxTypeBody = 2*jobs.MaxData + rest.MaxValueBody

// sentType is a job type as clients send it. In a new type null is as if left out, but for its URL;
// in a change it is the default.
type sentType struct {
	Name         rest.Nullable[jobs.TypeName]  `json:"name"`
	Strategy     rest.Nullable[jobs.Strategy]  `json:"delivery_strategy"`
	Attempts     rest.Nullable[int16]          `json:"attempts"`
	Concurrency  rest.Nullable[int16]          `json:"concurrency"`
	URL          rest.Nullable[string]         `json:"url"`
	Timeout      rest.Nullable[int64]          `json:"timeout"`   // ms
	Retention    rest.Nullable[int64]          `json:"retention"` // s
	Paused       rest.Nullable[bool]           `json:"paused"`
	Schedule     rest.Nullable[string]         `json:"schedule"`
	Timezone     rest.Nullable[string]         `json:"timezone"`
	ScheduleData rest.Nullable[jsontext.Value] `json:"schedule_data"`
	Clients      rest.Nullable[bus.Clients]    `json:"clients"`
}

// apply sets the members that were sent. It validates nothing.
func (s *sentType) apply(t *jobs.Type) {
	set(s.Strategy, "", func(strategy jobs.Strategy) { t.Strategy = strategy })
	set(s.Attempts, 0, func(n int16) { t.Attempts = int(n) })
	set(s.Concurrency, 0, func(n int16) { t.Concurrency = int(n) })
	set(s.URL, "", func(url string) { t.URL, t.Pull = url, s.URL.Value == nil })
	set(s.Timeout, jobs.DefaultTimeout.Milliseconds(), func(ms int64) { t.Timeout = typeDuration(ms, time.Millisecond) })
	set(s.Retention, int64(jobs.DefaultRetention/time.Second), func(n int64) { t.Retention = typeDuration(n, time.Second) })
	set(s.Paused, false, func(paused bool) { t.Paused = paused })
	if s.Schedule.Sent && s.Schedule.Value == nil {
		t.Timezone, t.ScheduleData = "", nil // which are nothing without it
	}
	set(s.Schedule, "", func(schedule string) { t.Schedule = schedule })
	set(s.Timezone, "", func(zone string) { t.Timezone = zone })
	set(s.Clients, nil, func(clients bus.Clients) { t.Clients = clients })
	set(s.ScheduleData, nil, func(data jsontext.Value) { t.ScheduleData = jobs.FitData(data) })
}

// set assigns a member that was sent, or its default for null.
func set[T any](member rest.Nullable[T], value T, assign func(T)) {
	if !member.Sent {
		return
	}
	if member.Value != nil {
		value = *member.Value
	}
	assign(value)
}

// typeDuration is a number of units; one that no type may have if it would overflow.
func typeDuration(n int64, unit time.Duration) time.Duration {
	return time.Duration(min(max(n, -1), int64(jobs.MaxRetention/unit)+1)) * unit
}

// typeView is a job type. Times are as in RFC 3339.
type typeView struct {
	// It does not begin with `job_`.
	Name jobs.TypeName `json:"name" api:"pattern=^[A-Za-z0-9._:-]{1,255}$"`
	// Whether a job may be tried again.
	Strategy jobs.Strategy `json:"delivery_strategy" api:"enum=at_least_once|at_most_once"`
	// How often a job is tried at most; 1 for `at_most_once`.
	Attempts int `json:"attempts" api:"minimum=1 maximum=32767"`
	// How many jobs are in progress at most, over all workers.
	Concurrency int `json:"concurrency" api:"minimum=1 maximum=32767"`
	// The https URL that jobs are POSTed to; null if services fetch them; empty if they go below the
	// operator's `DOWNSTREAM_URL`.
	URL *string `json:"url"`
	// From when the service has taken a job until it has to report, in ms.
	Timeout int64 `json:"timeout" api:"minimum=1000 maximum=86400000"`
	// How long a job is kept that has ended, in s.
	Retention int64 `json:"retention" api:"minimum=0 maximum=31536000"`
	// Whether no job is taken.
	Paused bool `json:"paused"`
	// A cron expression of five fields: a job is enqueued at each of its times.
	Schedule *string `json:"schedule"`
	// The time zone of the schedule, of the IANA database; UTC without one.
	Timezone *string `json:"timezone"`
	// The next time of the schedule, whether or not the type is paused; null without a schedule.
	NextAt *string `json:"next_at" api:"format=date-time"`
	// The data of the jobs that the schedule enqueues, any JSON of at most 102,400 bytes without
	// white space, nested at most 100 deep. Lists leave it out.
	ScheduleData *jsontext.Value `json:"schedule_data,omitzero"`
	// The names of the clients that may enqueue, cancel, replay, fetch, extend and report its jobs,
	// besides the operator; null for all.
	Clients bus.Clients `json:"clients" api:"nullable minItems=1 maxItems=32 uniqueItems=true items.pattern=^[a-z0-9:_-]{1,64}$"`
	// The name of the client that made it.
	Owner     bus.ClientName `json:"owner"`
	CreatedAt string         `json:"created_at" api:"format=date-time"`
	UpdatedAt string         `json:"updated_at" api:"format=date-time"`
	// Until when its jobs are held back, because the service asked for time (429, 503). Null if they
	// are not, and when the time has come: then a job is sent, which ends that or begins it again.
	HeldUntil *string `json:"held_until" api:"format=date-time"`
	// The last time that the schedule has skipped, null if it has enqueued a job since.
	SkippedAt *string `json:"skipped_at" api:"format=date-time"`
	// Why it has skipped that: 100 of its jobs had not ended, or the account of the type's owner was
	// full.
	SkipReason *jobs.SkipReason `json:"skip_reason" api:"enum=jobs_open|account_full"`
	// How many of its jobs have not ended.
	Counts countsView `json:"counts"`
	// Why jobs that have not ended are not in progress, or stay there. Without a worker no job that
	// is due later comes up, and no deadline is kept, also of jobs that services fetch.
	Causes []jobs.Cause `json:"causes" api:"items.enum=no_worker|no_job_threads|paused|held_type|concurrency|awaiting_fetch|not_due"`
}

type countsView struct {
	// Due, or not due yet.
	Queued int64 `json:"queued" api:"minimum=0"`
	// Of these, the jobs that are due and held back by the limit or a pause.
	Waiting int64 `json:"waiting" api:"minimum=0"`
	// In the hands of the service.
	InProgress int64 `json:"in_progress" api:"minimum=0"`
}

func (h *jobHandlers) viewType(t jobs.Type, counts jobs.Counts) typeView {
	view := typeView{
		Name: t.Name, Strategy: t.Strategy, Attempts: t.Attempts, Concurrency: t.Concurrency, URL: &t.URL,
		Timeout: t.Timeout.Milliseconds(), Retention: int64(t.Retention / time.Second), Paused: t.Paused,
		Schedule: rest.OrNull(t.Schedule), Timezone: rest.OrNull(t.Timezone), NextAt: rest.OrNull(timestamp(t.NextTime(h.Now()))), Clients: t.Clients,
		Owner: cmp.Or(t.Owner, bus.RootName), CreatedAt: timestamp(t.CreatedAt), UpdatedAt: timestamp(t.UpdatedAt),
		HeldUntil: rest.OrNull(timestamp(counts.HeldUntil)), SkippedAt: rest.OrNull(timestamp(t.SkippedAt)), SkipReason: rest.OrNull(t.SkipReason),
		Counts: countsView{counts.Queued, counts.Waiting, counts.InProgress}, Causes: []jobs.Cause{},
	}
	if t.Pull {
		view.URL = nil
	}
	return view
}

// postType makes a type, which is its client's from then on.
func (h *jobHandlers) postType(w http.ResponseWriter, r *http.Request) {
	t, err := h.readType(w, r)
	if err == nil {
		err = h.stores.CreateType(r.Context(), t)
	}
	if err != nil {
		h.Fail(w, r, h.tooMany(t.Owner, err))
		return
	}
	h.config.Recorder.Count(telemetry.JobRequests, 1, telemetry.Create, "created")
	h.LogChange(r, "created a job type", typeField(t.Name))
	rest.WriteJSON(w, http.StatusCreated, withData(h.viewType(t, jobs.Counts{}), t))
}

// tooMany says of an error which limit for types it is about.
func (h *jobHandlers) tooMany(owner bus.ClientName, err error) error {
	const remedy = "delete one that is not needed: it counts until its archived jobs have gone"
	detail := ""
	switch limits := h.stores.Limits; {
	case errors.Is(err, jobs.ErrTooManyTypes):
		detail = fmt.Sprintf("the bus has %d job types (ROUTEMASTER_MAX_JOB_TYPES), those of all clients; %s", limits.Bus, remedy)
	case errors.Is(err, jobs.ErrTooManyClientTypes):
		detail = fmt.Sprintf("the client %s has %d job types (ROUTEMASTER_MAX_CLIENT_JOB_TYPES); %s", owner, limits.Client, remedy)
	default:
		return err
	}
	return &rest.Problem{Status: http.StatusConflict, Detail: detail}
}

// withData is a type alone, which has the data of its schedule.
func withData(view typeView, t jobs.Type) typeView {
	view.ScheduleData = new(jsontext.Value(t.ScheduleData))
	return view
}

// readType reads a type that is to be made.
func (h *jobHandlers) readType(w http.ResponseWriter, r *http.Request) (t jobs.Type, err error) {
	var sent sentType
	if err := h.ReadJSON(w, r, maxTypeBody, &sent); err != nil {
		return t, err
	}
	now := h.Now()
	t = jobs.Type{Timeout: jobs.DefaultTimeout, Retention: jobs.DefaultRetention, CreatedAt: now, UpdatedAt: now}
	if caller := rest.Caller(r); !caller.Root {
		t.Owner = caller.PublicName()
	}
	set(sent.Name, "", func(name jobs.TypeName) { t.Name = name })
	sent.apply(&t)
	if err = t.Validate(); err == nil {
		err = t.ValidateURL(h.config.Deny, h.config.Downstream)
	}
	return t, err
}

// patchType changes the members of a type that were sent.
func (h *jobHandlers) patchType(w http.ResponseWriter, r *http.Request) {
	var sent sentType
	err := h.ReadJSON(w, r, maxTypeBody, &sent)
	var t jobs.Type
	if err == nil {
		t, err = h.stores.ChangeType(r.Context(), nameParam(r), func(t *jobs.Type) error { return h.change(r, t, &sent) })
	}
	if err == nil {
		h.LogChange(r, "changed a job type", typeField(t.Name))
	}
	h.respondType(w, r, t, err)
}

// change applies a client's request to a type, if the client may change it.
func (h *jobHandlers) change(r *http.Request, t *jobs.Type, sent *sentType) error {
	if err := mayChange(r, *t); err != nil {
		return err
	}
	if sent.Name.Sent && (sent.Name.Value == nil || *sent.Name.Value != t.Name) {
		return &bus.Invalid{ID: "forbidden_parameter", Pointer: "/name", Detail: "cannot be changed; make another type"}
	}
	sent.apply(t)
	t.UpdatedAt = h.Now()
	if err := t.Validate(); err != nil || !sent.URL.Sent {
		return err
	}
	return t.ValidateURL(h.config.Deny, h.config.Downstream)
}

// mayChange fails with [jobs.ErrNotOwner] unless a type is the caller's, or the caller is root.
func mayChange(r *http.Request, t jobs.Type) error {
	if caller := rest.Caller(r); caller.Root || caller.PublicName() == t.Owner {
		return nil
	}
	return jobs.ErrNotOwner
}

// getType shows a type.
func (h *jobHandlers) getType(w http.ResponseWriter, r *http.Request) {
	t, err := h.stores.Type(r.Context(), nameParam(r))
	h.respondType(w, r, t, err)
}

// respondType responds with 200 and a type, or with an error.
func (h *jobHandlers) respondType(w http.ResponseWriter, r *http.Request, t jobs.Type, err error) {
	var views []typeView
	if err == nil {
		views, err = h.viewTypes(r, t)
	}
	if err != nil {
		h.Fail(w, r, err)
		return
	}
	rest.WriteJSON(w, http.StatusOK, withData(views[0], t))
}

// getTypes lists the types, the newest first.
func (h *jobHandlers) getTypes(w http.ResponseWriter, r *http.Request) {
	q := rest.ReadQuery(r)
	limit, next, err := int(typesLimit.integer(q)), "", q.Err()
	var types []jobs.Type
	if err == nil {
		types, next, err = h.stores.Page(r.Context(), q.Get("after"), limit)
	}
	views := []typeView{}
	if err == nil && len(types) > 0 {
		views, err = h.viewTypes(r, types...)
	}
	h.RespondPage(w, r, views, next, err)
}

// viewTypes returns how some types are shown, with how many jobs they have.
func (h *jobHandlers) viewTypes(r *http.Request, types ...jobs.Type) ([]typeView, error) {
	counts, err := h.stores.Counts(r.Context(), types...)
	now, unserved := h.Now(), jobs.Cause("")
	if err == nil {
		unserved, err = h.unserved(r.Context(), now)
	}
	if err != nil {
		return nil, err
	}
	views := make([]typeView, len(types))
	for i, t := range types {
		if !counts[i].HeldUntil.After(now) { // the next job is sent: nothing is held back
			counts[i].HeldUntil = time.Time{}
		}
		views[i] = h.viewType(t, counts[i])
		views[i].Causes = counts[i].Causes(t, unserved, now)
	}
	return views, nil
}

// unserved returns why no worker may run jobs, empty if one may.
func (h *jobHandlers) unserved(ctx context.Context, now time.Time) (jobs.Cause, error) {
	if has, err := h.stores.HasWorker(ctx, now); err != nil || !has {
		return jobs.NoWorker, err
	}
	if h.config.Processes == nil {
		return "", nil
	}
	processes, err := h.config.Processes(ctx)
	if err != nil || !overview.Unserved(bus.QueueJobs, processes, now) {
		return "", err
	}
	return jobs.NoJobThreads, nil
}

// deleteType deletes a type. One with jobs that have not ended is only deleted by force, which
// cancels them.
func (h *jobHandlers) deleteType(w http.ResponseWriter, r *http.Request) {
	q := rest.ReadQuery(r)
	force := isTrue(q, "force")
	name, err := nameParam(r), q.Err()
	if err == nil {
		err = h.stores.DeleteType(r.Context(), name, force, h.Now(), func(t jobs.Type) error { return mayChange(r, t) })
	}
	h.RespondChanged(w, r, err, "deleted a job type", typeField(name), slog.Bool("force", force))
}

// typeField is the type that a change is about.
func typeField(name jobs.TypeName) slog.Attr { return slog.String("type", string(name)) }

// nameParam returns the type in a request's path, empty if it has none.
func nameParam(r *http.Request) jobs.TypeName { return jobs.TypeName(chi.URLParam(r, "name")) }

// timestamp is a time as clients see it: RFC 3339, in UTC, with microseconds. It is empty for the
// zero time.
func timestamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04:05.000000Z07:00")
}
