// Package metrics serves the Prometheus metrics of a process, those of the Go runtime and of the
// whole bus included, on the API's /metrics and on a listener of their own.
package metrics

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"routemaster/internal/store"
)

// Registry holds the Prometheus metrics of one process.
type Registry struct{ *prometheus.Registry }

// NewRegistry makes a registry with the metrics of the Go runtime and of the process.
func NewRegistry() *Registry {
	registry := prometheus.NewRegistry()
	registry.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	return &Registry{registry}
}

// AddBus adds what waits in the whole bus. A scrape reads it from the store.
func (r *Registry) AddBus(st *store.Store, o BusOptions, now func() time.Time) {
	r.MustRegister(&scrape{store: st, options: o, now: now})
}

// Handler serves the metrics as Prometheus text. Without Redis it serves those of the process.
func (r *Registry) Handler() http.Handler {
	return promhttp.HandlerFor(r, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError})
}
