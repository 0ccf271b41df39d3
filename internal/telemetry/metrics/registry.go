// Package metrics serves Prometheus metrics: those of the process and its Go runtime, and those
// of the whole bus, which a scrape reads from Redis. They are served by the API and by a listener
// of their own.
package metrics

import (
	"net/http"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"routemaster/internal/store/stores"
	"routemaster/internal/telemetry"
)

// Registry holds the Prometheus metrics of one process.
type Registry struct {
	*prometheus.Registry
	bus busCollector
}

// NewRegistry makes a registry with the metrics of the Go runtime and of the process. Until
// [Registry.AddBus], a scrape shows that Redis was not read.
func NewRegistry() *Registry {
	r := &Registry{Registry: prometheus.NewRegistry()}
	r.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		&r.bus,
	)
	return r
}

// AddBus adds the metrics of the whole bus. Each scrape reads them from its stores.
func (r *Registry) AddBus(all *stores.Stores, o BusOptions, now func() time.Time) {
	r.bus.scrape.Store(newScrape(all, o, now))
}

// AddClock adds how far the clock of the process's host is ahead of Redis' clock.
func (r *Registry) AddClock(ahead func() time.Duration) {
	r.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Namespace: telemetry.Namespace, Name: "clock_ahead_seconds",
		Help: "How far the clock of this process's host is ahead of Redis' clock, as measured last; negative if it is behind.",
	}, func() float64 { return ahead().Seconds() }))
}

// AddBuild adds which version of which program runs, as the labels of a series that is 1.
func (r *Registry) AddBuild(program, version string) {
	r.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Namespace: telemetry.Namespace, Name: "build_info",
		Help:        "1, with the version of this process.",
		ConstLabels: prometheus.Labels{"program": program, "version": version, "goversion": runtime.Version()},
	}, func() float64 { return 1 }))
}

// AddLoss adds whether Redis has lost data, as this process knows.
func (r *Registry) AddLoss(isLost func() bool) {
	r.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Namespace: telemetry.Namespace, Name: "redis_data_lost",
		Help: "1 if Redis has lost data of the bus, until an operator acknowledges it, else 0.",
	}, func() float64 {
		if isLost() {
			return 1
		}
		return 0
	}))
}

// Handler serves the metrics as Prometheus text. While Redis is unavailable it serves those of the
// process.
func (r *Registry) Handler() http.Handler {
	return promhttp.HandlerFor(r, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError})
}
