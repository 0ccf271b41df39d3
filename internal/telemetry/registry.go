package telemetry

import (
	"net/http"
	"runtime"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Registry holds the Prometheus metrics of one process.
type Registry struct{ *prometheus.Registry }

// NewRegistry makes a registry with the metrics of the Go runtime and of the process.
func NewRegistry() *Registry {
	r := &Registry{prometheus.NewRegistry()}
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return r
}

// AddBuild adds the program and its version, as the labels of a series that is 1.
func (r *Registry) AddBuild(program, version string) {
	r.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Namespace: Namespace, Name: "build_info",
		Help:        "1, with the version of this process.",
		ConstLabels: prometheus.Labels{"program": program, "version": version, "goversion": runtime.Version()},
	}, func() float64 { return 1 }))
}

// AddGauge adds a gauge of the process. Each scrape calls a function for its value.
func (r *Registry) AddGauge(name, help string, value func() float64) {
	r.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Namespace: Namespace, Name: name, Help: help}, value))
}

// Send sends the value that a metric has, with values of its first labels.
type Send func(m *Metric, value float64, values ...string)

// AddReader adds metrics that each scrape has a function send.
func (r *Registry) AddReader(read func(Send)) {
	r.MustRegister(&reader{read: read, descs: map[shown]*prometheus.Desc{}})
}

// reader collects the metrics that a function sends.
type reader struct {
	read func(Send)

	mu    sync.Mutex // guards descs
	descs map[shown]*prometheus.Desc
}

// shown is a metric with some of its labels, whose description takes long to make.
type shown struct {
	metric *Metric
	labels int
}

// Describe is part of [prometheus.Collector]. It describes nothing, since the labels of metrics
// depend on whether the bus has several partitions.
func (r *reader) Describe(chan<- *prometheus.Desc) {}

// Collect is part of [prometheus.Collector].
func (r *reader) Collect(metrics chan<- prometheus.Metric) {
	r.read(func(m *Metric, value float64, values ...string) {
		valueType := prometheus.GaugeValue
		if m.kind == isCounter {
			valueType = prometheus.CounterValue
		}
		metrics <- prometheus.MustNewConstMetric(r.desc(m, len(values)), valueType, value, values...)
	})
}

// desc is the description of a metric with so many of its labels.
func (r *reader) desc(m *Metric, labels int) *prometheus.Desc {
	r.mu.Lock()
	defer r.mu.Unlock()
	desc := r.descs[shown{m, labels}]
	if desc == nil {
		desc = prometheus.NewDesc(prometheus.BuildFQName(Namespace, "", m.Name), m.Help, m.Labels[:labels], nil)
		r.descs[shown{m, labels}] = desc
	}
	return desc
}

// Handler serves the metrics as Prometheus text. While Redis is unavailable it serves the
// process's own.
func (r *Registry) Handler() http.Handler {
	return promhttp.HandlerFor(r, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError})
}
