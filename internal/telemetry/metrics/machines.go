package metrics

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"routemaster/internal/machines"
)

// These metrics of state machines are read from Redis by a scrape.
var (
	labelsInState = describe("labels", "Labels in a state.", "machine", "state")
	labelsErrored = describe("labels_errored", "Labels whose action is not tried again.", "machine")
	movesWaiting  = describe("machine_moves_unpublished", "Moves of labels that are still to be published.", "machine")
)

// AddMachines adds the metrics of labels. Each scrape counts them.
func (r *Registry) AddMachines(count func(context.Context) ([]machines.Count, error)) {
	r.MustRegister(&labelCounts{count: count})
}

// labelCounts collects where labels are. It shows nothing while Redis cannot be read.
type labelCounts struct {
	count  func(context.Context) ([]machines.Count, error)
	shared shared[[]machines.Count]
}

// Describe is part of [prometheus.Collector].
func (l *labelCounts) Describe(descs chan<- *prometheus.Desc) {
	descs <- labelsInState
	descs <- labelsErrored
	descs <- movesWaiting
}

// Collect is part of [prometheus.Collector].
func (l *labelCounts) Collect(metrics chan<- prometheus.Metric) {
	counts, err := l.shared.read(l.count)
	if err != nil {
		return
	}
	send := func(desc *prometheus.Desc, value int64, labels ...string) {
		metrics <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(value), labels...)
	}
	for _, m := range counts {
		for _, state := range m.States {
			send(labelsInState, state.Labels, string(m.Machine), string(state.State))
		}
		send(labelsErrored, m.Errored, string(m.Machine))
		send(movesWaiting, m.Unpublished, string(m.Machine))
	}
}
