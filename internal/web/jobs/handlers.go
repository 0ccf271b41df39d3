package jobs

import (
	"github.com/go-chi/chi/v5"

	"routemaster/internal/bus"
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
}

// New makes the handlers of an API. They read requests and respond by its service.
func New(config Config, service *rest.Service) *Handlers {
	return &Handlers{Service: service, config: config}
}

// Routes adds all routes. Every client may use them, and the operator.
func (h *Handlers) Routes(chi.Router) {}
