package web

import (
	"cmp"
	"context"
	"net/http"

	"routemaster/internal/bus"
	"routemaster/internal/jobs"
	"routemaster/internal/overview"
	"routemaster/internal/telemetry"
	"routemaster/internal/web/rest"
)

var (
	jobInPath = parameter{name: "id", in: "path", component: "JobID", words: "The job: `job_` and its UUID, or the UUID alone."}
	jobsLimit = parameter{
		name: "limit", kind: "integer", min: 1, max: 100, fallback: 100, component: "JobLimit",
		words: "The maximum number of jobs of a page.",
	}
	jobsBefore = parameter{
		name: "before", component: "JobBefore",
		words: "Where the page begins: as the `Link` of the page before has it.",
	}
	jobsOfType = parameter{name: "name", component: "JobListName", words: "Only jobs of this type."}
	copyKey    = parameter{
		name: "Idempotency-Key", in: "header", key: true, component: "ReplayKey",
		words: "With the same key, the same client gets the same copy of the job again, for as long as the copy " +
			"is kept.",
	}
	jobConflict = problem{
		http.StatusConflict,
		"The job's state does not allow it, as `id` says; nothing was changed.",
		"JobConflict",
	}
	severalJobs = problem{
		http.StatusConflict,
		"Jobs of several types have the id, which a bus with partitions allows: name the type.",
		"SeveralJobs",
	}
	jobTooLarge = problem{
		http.StatusRequestEntityTooLarge,
		"The data of a job has more than 102,400 bytes without white space, a job more than 204 KiB, or " +
			"an array of jobs more than 4 MiB.",
		"JobTooLarge",
	}
	tooManyPulls = problem{
		http.StatusTooManyRequests,
		"Too many requests wait for jobs, of the client or in all; or as for other bodies, the client's " +
			"take too much memory",
		"TooManyPulls",
	}
	accountFull = problem{
		http.StatusInsufficientStorage,
		"The account of a client is full (`account_full`): its jobs, job types and labels take as much as" +
			" it may keep. Nothing was stored.",
		"AccountFull",
	}
)

// operations are for every client and the operator. If a type lists its clients, only these may
// change its jobs. The requests of rickover's clients and services ignore names in queries.
func (h *jobHandlers) operations() []operation {
	return []operation{
		{
			method: http.MethodPost, path: "/v1/jobs/{name}", handle: h.postJobs,
			id: "enqueueJobs", tag: "jobs",
			summary: "Enqueue up to 1,000 jobs, all or nothing",
			params:  []parameter{typeInPath},
			body: &body{
				of:       listOf{of: schemaRef("NewBulkJob"), min: 1, max: jobs.MaxBulk},
				example:  `[{"id":"job_282227eb-3c76-4ef7-af7e-25dff933077f","data":{"order":7}}]`,
				tooLarge: &jobTooLarge,
			},
			returns: returns(http.StatusAccepted, "The jobs. One that was queued already is as it was.", []jobView{}),
			fails:   []problem{forbidden, notFound, accountFull},
		},
		{
			method: http.MethodPut, path: "/v1/jobs/{name}/{id}", handle: h.putJob, query: ignoreOthers,
			id: "enqueueJob", tag: "jobs",
			summary: "Enqueue a job",
			about: "While a job of the id has not ended, it is returned as it is. Once it has ended, 400 " +
				"`job_already_archived`: while it is kept and, if its type is `at_most_once`, for 24 hours after " +
				"its removal.",
			params: []parameter{
				typeInPath,
				{
					name: "id", in: "path",
					words: "The job: `job_` and a UUID of your own, or the UUID alone. `random_id` has one be made, for load" +
						" tests.",
				},
			},
			body: &body{
				of:       schemaRef("NewJob"),
				example:  `{"data":{"order":7},"run_after":"2030-01-31T18:00:00Z"}`,
				tooLarge: &jobTooLarge,
			},
			returns: returns(http.StatusAccepted, "The job. One that was queued already is as it was.", jobView{}),
			fails:   []problem{forbidden, notFound, accountFull},
		},
		{
			method: http.MethodGet, path: "/v1/jobs/{name}/{id}", handle: h.getJob, query: ignoreOthers,
			id: "getJob", tag: "jobs",
			summary: "Show a job",
			params:  []parameter{typeInPath, jobInPath},
			returns: returns(http.StatusOK, "The job.", jobView{}),
			fails:   []problem{notFound},
		},
		{
			method: http.MethodGet, path: "/v1/jobs/{name}/{id}/attempts", handle: h.getAttempts,
			id: "listJobAttempts", tag: "jobs",
			summary: "List the attempts at a job",
			about: "The last 20, the latest first: those that failed or that the service put off, and the one that " +
				"is in progress or has succeeded.",
			params:  []parameter{typeInPath, jobInPath},
			returns: returns(http.StatusOK, "The attempts.", listOf{of: jobAttemptView{}, max: jobs.MaxAttemptsKept}),
			fails:   []problem{notFound},
		},
		{
			method: http.MethodDelete, path: "/v1/jobs/{name}/{id}", handle: h.deleteJob,
			id: "cancelJob", tag: "jobs",
			summary: "Cancel a job",
			params:  []parameter{typeInPath, jobInPath},
			returns: []response{
				{status: http.StatusAccepted, words: "Cancelled. Its service has it and may do the work all the same; its report will be refused."},
				{status: http.StatusNoContent, words: "Cancelled, now or before."},
			},
			fails: []problem{forbidden, notFound, jobConflict},
		},
		{
			method: http.MethodPost, path: "/v1/jobs/{name}/{id}/replay", handle: h.replayJob, query: ignoreOthers,
			id: "replayJob", tag: "jobs",
			summary: "Enqueue a copy of a job that is in progress or has ended",
			params:  []parameter{typeInPath, jobInPath, copyKey},
			returns: returns(http.StatusCreated, "The copy, which may be taken at once.", jobView{}),
			fails:   []problem{forbidden, notFound, jobTooLarge, tooManyBodies, accountFull},
		},
		{
			method: http.MethodPost, path: "/v1/jobs/{id}/replay", handle: h.replayJob, query: ignoreOthers,
			id: "replayJobOfAnyType", tag: "jobs",
			summary: "Enqueue a copy of a job that is in progress or has ended",
			params:  []parameter{jobInPath, copyKey},
			returns: returns(http.StatusCreated, "The copy, which may be taken at once.", jobView{}),
			fails:   []problem{forbidden, notFound, severalJobs, jobTooLarge, tooManyBodies, accountFull},
		},
		{
			method: http.MethodGet, path: "/v1/jobs", handle: h.getJobs,
			id: "listJobs", tag: "jobs",
			summary: "List the jobs that have not ended",
			params: []parameter{
				jobsOfType,
				{name: "status", enum: texts(openStatuses), words: "Only jobs with this status."},
				jobsBefore,
				jobsLimit,
			},
			returns: pages("Jobs, newest first.", listOf{of: jobView{}, max: 100}),
		},
		{
			method: http.MethodGet, path: "/v1/archived-jobs", handle: h.getArchivedJobs, query: ignoreOthers,
			id: "listArchivedJobs", tag: "jobs",
			summary: "List the jobs that have ended",
			params: []parameter{
				jobsOfType,
				{
					name: "status", enum: texts(jobs.Archived[:]),
					words: "Only jobs with this status.",
				},
				jobsBefore,
				jobsLimit,
			},
			returns: pages("Jobs, newest first.", listOf{of: jobView{}, max: 100}),
		},
		{
			method: http.MethodPost, path: "/v1/jobs/{name}/fetch", handle: h.postFetch,
			id: "fetchJobs", tag: "jobs",
			summary: "Take jobs of a type whose services fetch them",
			params:  []parameter{typeInPath},
			body: &body{
				of:       sentFetch{},
				example:  `{"max":10,"wait":20000}`,
				optional: true,
				tooLarge: &jobTooLarge,
				tooMany:  &tooManyPulls,
			},
			returns: []response{
				{status: http.StatusOK, words: "The jobs, oldest first.", of: listOf{of: fetchedView{}, min: 1, max: jobs.MaxFetch}},
				{status: http.StatusNoContent, words: "There was none in time."},
			},
			fails: []problem{forbidden, notFound, jobConflict},
		},
		{
			method: http.MethodPost, path: "/v1/jobs/{name}/{id}", handle: h.postReport, query: ignoreOthers,
			id: "reportJob", tag: "jobs",
			summary: "Report on an attempt of a job",
			params:  []parameter{typeInPath, jobInPath},
			body: &body{
				of:       sentReport{},
				example:  `{"status":"failed","attempt":5,"retryable":true}`,
				tooLarge: &jobTooLarge,
			},
			returns: returns(http.StatusOK, "Taken. The body is empty. The same report again is answered alike.", nil),
			fails:   []problem{forbidden, notFound, jobConflict},
		},
		{
			method: http.MethodPost, path: "/v1/jobs/{name}/{id}/extend", handle: h.postExtend,
			id: "extendJob", tag: "jobs",
			summary: "Have more time for a job",
			params:  []parameter{typeInPath, jobInPath},
			body:    &body{of: sentExtension{}, example: `{"attempt":5,"timeout":60000}`, tooLarge: &jobTooLarge},
			returns: returns(http.StatusOK, "The new deadline.", deadlineView{}),
			fails:   []problem{forbidden, notFound, jobConflict},
		},
	}
}

// JobsConfig configures [jobHandlers].
type JobsConfig struct {
	// Deny lists the addresses that the URL of a job type must not have.
	Deny bus.DenyList
	// Downstream is whether the operator has said where the jobs of types without a URL go.
	Downstream bool
	// Types are the limits for new types, by default [jobs.DefaultTypeLimits].
	Types jobs.TypeLimits
	// Processes, if given, returns the processes of the bus that live.
	Processes func(context.Context) ([]overview.Process, error)
	// Recorder counts requests and jobs by their results. It may be nil.
	Recorder *telemetry.Recorder
}

// jobHandlers serve the requests that are about jobs and their types.
type jobHandlers struct {
	*rest.Service
	config JobsConfig
	stores *jobs.Bus
	// pulls are the waiting requests for types of each partition, by its number.
	pulls []*pulls
	// waiting are the requests that wait for jobs, of types of all partitions.
	waiting *rest.Places
}

// newJobHandlers makes the handlers of an API. They read requests and respond by its service.
func newJobHandlers(config JobsConfig, service *rest.Service, all *jobs.Bus) *jobHandlers {
	all.Limits.Client = cmp.Or(config.Types.Client, all.Limits.Client)
	all.Limits.Bus = cmp.Or(config.Types.Bus, all.Limits.Bus)
	h := &jobHandlers{Service: service, config: config, stores: all, waiting: rest.NewPlaces(maxPulls, "jobs")}
	for range all.All() {
		h.pulls = append(h.pulls, newPulls())
	}
	return h
}

// Run serves the requests that wait for jobs, until the context is done. Then they are answered,
// and later ones do not wait. Requests wait per partition, so that an unavailable partition delays
// only its own types.
func (h *jobHandlers) Run(ctx context.Context) {
	h.stores.Each(func(number int, st *jobs.Store) error {
		waiter := st.NewPullWaiter(pollInterval)
		defer waiter.Close()
		h.pulls[number].run(ctx, waiter.Wait)
		return nil
	})
}

// of returns the store of a type, acting for the caller.
func (h *jobHandlers) of(r *http.Request, name jobs.TypeName) *jobs.Store {
	return h.stores.Of(name).For(clientOf(r))
}

// clientOf is the caller as the lists of clients name it, empty for root.
func clientOf(r *http.Request) bus.ClientName { return rest.Caller(r).ListedName() }
