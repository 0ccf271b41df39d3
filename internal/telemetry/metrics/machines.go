package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"routemaster/internal/telemetry"
)

// These metrics of state machines are read from Redis by a scrape.
var (
	labelsInState = describe("labels", "Labels in a state.", "machine", "state")
	labelsErrored = describe("labels_errored", "Labels whose action is not tried again.", "machine")
	movesWaiting  = describe("machine_moves_unpublished", "Moves of labels that are still to be published.", "machine")
	busLabelSteps = describe("bus_label_steps_total",
		"What workers of the whole bus have done for labels, by machine and outcome.", "machine", "outcome")
)

// AddMachines adds the metrics of labels. Each scrape reads them.
func (r *Registry) AddMachines(machines telemetry.Machines) {
	r.MustRegister(&labelCounts{machines: machines})
}

// labelCounts collects where labels are, and what workers did for them. It shows nothing while
// Redis cannot be read.
type labelCounts struct {
	machines telemetry.Machines
	shared   shared[[]telemetry.Machine]
}

// Describe is part of [prometheus.Collector].
func (l *labelCounts) Describe(descs chan<- *prometheus.Desc) {
	descs <- labelsInState
	descs <- labelsErrored
	descs <- movesWaiting
	descs <- busLabelSteps
}

// Collect is part of [prometheus.Collector].
func (l *labelCounts) Collect(metrics chan<- prometheus.Metric) {
	now, err := l.shared.read(l.machines.Read)
	if err != nil {
		return
	}
	send := func(desc *prometheus.Desc, kind prometheus.ValueType, value int64, labels ...string) {
		metrics <- prometheus.MustNewConstMetric(desc, kind, float64(value), labels...)
	}
	for _, m := range now {
		for _, state := range m.States {
			send(labelsInState, prometheus.GaugeValue, state.Labels, string(m.Machine), string(state.State))
		}
		send(labelsErrored, prometheus.GaugeValue, m.Errored, string(m.Machine))
		send(movesWaiting, prometheus.GaugeValue, m.Unpublished, string(m.Machine))
		for outcome, n := range m.Steps {
			send(busLabelSteps, prometheus.CounterValue, n, string(m.Machine), outcome)
		}
	}
}
