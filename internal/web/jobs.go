package web

import (
	"cmp"
	"context"
	"net/http"

	"github.com/go-chi/chi/v5"

	"routemaster/internal/bus"
	"routemaster/internal/jobs"
	"routemaster/internal/overview"
	"routemaster/internal/telemetry"
	"routemaster/internal/web/rest"
)

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
	// Recorder counts what becomes of requests and of jobs. It may be nil.
	Recorder *telemetry.Recorder
}

// jobHandlers serve the requests that are about jobs and their types.
type jobHandlers struct {
	*rest.Service
	config JobsConfig
	stores *jobs.Bus
	// pulls are those for types of each partition, by number.
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

// Run serves the requests that wait for jobs until the context is done. They are answered then, and
// others do not wait. Those for types of a partition wait there, so that one that is away holds up
// no others.
func (h *jobHandlers) Run(ctx context.Context) {
	h.stores.Each(func(number int, st *jobs.Store) error {
		waiter := st.NewPullWaiter(pollInterval)
		defer waiter.Close()
		h.pulls[number].run(ctx, waiter.Wait)
		return nil
	})
}

// of has all of a type, for what the caller asks for.
func (h *jobHandlers) of(r *http.Request, name jobs.TypeName) *jobs.Store {
	return h.stores.Of(name).For(clientOf(r))
}

// clientOf is the caller as the lists of clients name it, empty for root.
func clientOf(r *http.Request) bus.ClientName { return rest.Caller(r).ListedName() }

// Routes adds all routes. Every client may use them, and the operator; what is changed of the jobs
// of a type with a list of clients, by these only. A type is changed by the client that made it, or
// the operator.
func (h *jobHandlers) Routes(r chi.Router) {
	route := func(method, path string, handle http.HandlerFunc, query ...string) {
		r.With(rest.AllowQuery(query...)).Method(method, path, handle)
	}
	known := func(method, path string, handle http.HandlerFunc, query ...string) {
		r.With(rest.IgnoreQuery(query...)).Method(method, path, handle)
	}
	// Requests of rickover's clients and services.
	known(http.MethodPost, "/v1/jobs", h.postType)
	known(http.MethodGet, "/v1/jobs/{name}", h.getTypeOrJob)
	known(http.MethodPut, "/v1/jobs/{name}/{id}", h.putJob)
	known(http.MethodGet, "/v1/jobs/{name}/{id}", h.getJob)
	known(http.MethodPost, "/v1/jobs/{name}/{id}", h.postReport)
	known(http.MethodPost, "/v1/jobs/{id}/replay", h.replayJob)
	known(http.MethodPost, "/v1/jobs/{name}/{id}/replay", h.replayJob)
	known(http.MethodGet, "/v1/archived-jobs", h.getArchivedJobs, "name", "status", "before", "limit")
	// Types.
	route(http.MethodGet, "/v2/job-types", h.getTypes, "limit", "after")
	route(http.MethodPost, "/v2/job-types", h.postType)
	route(http.MethodGet, "/v2/job-types/{name}", h.getType)
	route(http.MethodPatch, "/v2/job-types/{name}", h.patchType)
	route(http.MethodDelete, "/v2/job-types/{name}", h.deleteType, "force")
	// Those who have work to be done.
	route(http.MethodPost, "/v1/jobs/{name}", h.postJobs)
	route(http.MethodGet, "/v1/jobs/{name}/{id}/attempts", h.getAttempts)
	route(http.MethodDelete, "/v1/jobs/{name}/{id}", h.deleteJob)
	route(http.MethodGet, "/v1/jobs", h.getJobs, "name", "status", "before", "limit")
	// Services, which do it.
	route(http.MethodPost, "/v1/jobs/{name}/fetch", h.postFetch)
	route(http.MethodPost, "/v1/jobs/{name}/{id}/extend", h.postExtend)
}
