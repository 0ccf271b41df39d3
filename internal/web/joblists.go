package web

import (
	"context"
	"net/http"

	"routemaster/internal/jobs"
	"routemaster/internal/web/rest"
)

// openStatuses are the statuses of jobs that have not ended.
var openStatuses = []jobs.Status{jobs.Queued, jobs.InProgress}

// getJobs lists jobs that have not ended.
func (h *jobHandlers) getJobs(w http.ResponseWriter, r *http.Request) {
	h.list(w, r, openStatuses, h.stores.Open)
}

// getArchivedJobs lists jobs that have ended.
func (h *jobHandlers) getArchivedJobs(w http.ResponseWriter, r *http.Request) {
	h.list(w, r, jobs.Archived[:], h.stores.Archived)
}

// list responds with a page of jobs, which may have some statuses.
func (h *jobHandlers) list(
	w http.ResponseWriter, r *http.Request, statuses []jobs.Status,
	read func(context.Context, jobs.Filter) ([]jobs.Job, string, error),
) {
	q := rest.ReadQuery(r)
	filter := jobs.Filter{
		Type: jobs.TypeName(q.Get("name")), Status: rest.Word(q, "status", statuses),
		Before: q.Get("before"), Limit: int(jobsLimit.integer(q)),
	}
	var page []jobs.Job
	next, err := "", q.Err()
	if err == nil {
		page, next, err = read(r.Context(), filter)
	}
	if err == nil {
		rest.SetNext(w, r, "before", next)
	}
	h.RespondJSON(w, r, viewJobs(r, page), err)
}
