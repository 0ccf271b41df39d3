package jobs

import (
	"net/http"

	"github.com/go-chi/chi/v5"

	"routemaster/internal/bus"
	"routemaster/internal/jobs/jobstore"
	"routemaster/internal/web/rest"
)

// Config configures [Handlers].
type Config struct {
	// Deny lists the addresses that the URL of a job type must not have.
	Deny bus.DenyList
	// Downstream is whether the operator has said where the jobs of types without a URL go.
	Downstream bool
}

// Handlers serve the requests that are about jobs and their types.
type Handlers struct {
	*rest.Service
	config Config
	store  *jobstore.Store
}

// New makes the handlers of an API. They read requests and respond by its service.
func New(config Config, service *rest.Service, st *jobstore.Store) *Handlers {
	return &Handlers{Service: service, config: config, store: st}
}

// Routes adds all routes. Every client may use them, and the operator; a type is changed by the
// client that made it, or the operator.
func (h *Handlers) Routes(r chi.Router) {
	route := func(method, path string, handle http.HandlerFunc, query ...string) {
		r.With(rest.AllowQuery(query...)).Method(method, path, handle)
	}
	// Types.
	route(http.MethodPost, "/v1/jobs", h.postType)
	route(http.MethodGet, "/v1/jobs/{name}", h.getType)
	route(http.MethodGet, "/v2/job-types", h.getTypes)
	route(http.MethodPost, "/v2/job-types", h.postType)
	route(http.MethodGet, "/v2/job-types/{name}", h.getType)
	route(http.MethodPatch, "/v2/job-types/{name}", h.patchType)
	route(http.MethodDelete, "/v2/job-types/{name}", h.deleteType, "force")
}
