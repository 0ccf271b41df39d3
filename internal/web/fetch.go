package web

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"routemaster/internal/jobs"
	"routemaster/internal/telemetry"
	"routemaster/internal/web/rest"
)

// maxFetchWait is how long a request may wait for jobs.
const maxFetchWait = 30 * time.Second

// fetchedView is a job that a service has fetched. It has to report on the attempt by the deadline.
type fetchedView struct {
	ID string `json:"id" api:"ref=JobID"`
	// Any JSON value. It is kept as it is sent, but for white space that makes it longer.
	Data json.RawMessage `json:"data"`
	// The `attempt` to report.
	Attempt int `json:"attempt" api:"minimum=1 maximum=32767"`
	// Until when to report.
	Deadline string `json:"deadline" api:"format=date-time"`
}

// postFetch hands out jobs of a type whose services fetch them: 204 if there were none in time.
func (h *jobHandlers) postFetch(w http.ResponseWriter, r *http.Request) {
	r, release := h.Hold(r)
	defer release()
	count, wait, err := h.readFetch(w, r)
	var fetched []jobs.Job
	if err == nil {
		fetched, err = h.fetch(w, r, count, wait)
	}
	if err != nil || len(fetched) == 0 {
		h.Respond(w, r, err)
		return
	}
	views := make([]fetchedView, len(fetched))
	for i, job := range fetched {
		views[i] = fetchedView{job.ID.String(), job.Data, job.Attempts, timestamp(job.Deadline)}
	}
	rest.WriteJSON(w, http.StatusOK, views)
}

// sentFetch is the body of a fetch.
type sentFetch struct {
	// How many jobs at most. 1 if left out or null.
	Max *int64 `json:"max" api:"minimum=1 maximum=100"`
	// How long to wait for the first, in ms. 0 if left out or null.
	Wait *int64 `json:"wait" api:"minimum=0 maximum=30000"`
}

// readFetch reads how many jobs are wanted, and for how long to wait for the first.
func (h *jobHandlers) readFetch(w http.ResponseWriter, r *http.Request) (count int, wait time.Duration, err error) {
	var sent sentFetch
	if err := h.ReadOptionalJSON(w, r, rest.MaxValueBody, &sent); err != nil {
		return 0, 0, err
	}
	count = 1
	if sent.Max != nil {
		if *sent.Max < 1 || *sent.Max > jobs.MaxFetch {
			return 0, 0, invalidParameter("/max", "must be 1 to %d", jobs.MaxFetch)
		}
		count = int(*sent.Max)
	}
	if sent.Wait != nil {
		if *sent.Wait < 0 || *sent.Wait > maxFetchWait.Milliseconds() {
			return 0, 0, invalidParameter("/wait", "must be a time in ms, 0 to %d", maxFetchWait.Milliseconds())
		}
		wait = time.Duration(*sent.Wait) * time.Millisecond
	}
	return count, wait, nil
}

// fetch takes jobs of the type in a request's path, and waits for them.
func (h *jobHandlers) fetch(w http.ResponseWriter, r *http.Request, count int, wait time.Duration) ([]jobs.Job, error) {
	name := nameParam(r)
	of := h.of(r, name)
	look := func() ([]jobs.Job, error) {
		// A fetch that has begun is not cancelled: the jobs that it takes must be handed out, or given
		// back.
		fetched, expired, err := of.Fetch(context.WithoutCancel(r.Context()), name, count, h.Now())
		if expired > 0 {
			h.config.Recorder.Count(telemetry.EndedJobs, expired, string(name), string(jobs.Expired), telemetry.Web)
		}
		return fetched, err
	}
	var fetched []jobs.Job
	var err error
	if wait == 0 {
		fetched, err = look()
	} else {
		leave, refused := h.waiting.Take(rest.Caller(r).PublicName())
		if refused != nil {
			return nil, refused
		}
		defer leave()
		rest.AllowLonger(w, wait)
		fetched, err = h.pulls[h.stores.Number(name)].wait(r.Context(), name, wait, of.Admit, look)
	}
	if len(fetched) > 0 && r.Context().Err() != nil {
		h.giveBack(r, fetched)
		return nil, context.Cause(r.Context())
	}
	return fetched, err
}

// giveBack puts jobs back whose client has gone, or whose token has, while they were fetched.
func (h *jobHandlers) giveBack(r *http.Request, fetched []jobs.Job) {
	for _, job := range fetched {
		err := h.stores.Of(job.Type).Return(context.WithoutCancel(r.Context()), job, h.Now())
		if err != nil {
			telemetry.Often(h.Log, string(job.Type)).Warn("a fetched job could not be put back, and waits for its deadline",
				"job", job.ID.String(), "type", string(job.Type), "error", err)
		}
	}
}
