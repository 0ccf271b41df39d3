package metrics

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"routemaster/internal/bus"
	"routemaster/internal/machines"
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

// Machines is what a scrape reads of state machines.
type Machines struct {
	// Count counts the labels of all machines.
	Count func(context.Context) ([]machines.Count, error)
	// Counters reads counters of the bus. One that has never counted is 0.
	Counters func(context.Context, []bus.Counter) (map[bus.Counter]int64, error)
}

// AddMachines adds the metrics of labels. Each scrape reads them.
func (r *Registry) AddMachines(machines Machines) {
	r.MustRegister(&labelCounts{machines: machines})
}

// labelCounts collects where labels are, and what workers did for them. It shows nothing while
// Redis cannot be read.
type labelCounts struct {
	machines Machines
	shared   shared[labelsReading]
}

// labelsReading is what was read from Redis at one time.
type labelsReading struct {
	counts []machines.Count
	steps  map[bus.Counter]int64
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
	now, err := l.shared.read(l.read)
	if err != nil {
		return
	}
	send := func(desc *prometheus.Desc, kind prometheus.ValueType, value int64, labels ...string) {
		metrics <- prometheus.MustNewConstMetric(desc, kind, float64(value), labels...)
	}
	for _, m := range now.counts {
		for _, state := range m.States {
			send(labelsInState, prometheus.GaugeValue, state.Labels, string(m.Machine), string(state.State))
		}
		send(labelsErrored, prometheus.GaugeValue, m.Errored, string(m.Machine))
		send(movesWaiting, prometheus.GaugeValue, m.Unpublished, string(m.Machine))
		for _, outcome := range telemetry.BusOutcomes {
			send(busLabelSteps, prometheus.CounterValue, now.steps[telemetry.LabelSteps(m.Machine, outcome)], string(m.Machine), outcome)
		}
	}
}

// read counts the labels and, if there are machines, reads what was done for them.
func (l *labelCounts) read(ctx context.Context) (now labelsReading, err error) {
	if now.counts, err = l.machines.Count(ctx); err != nil {
		return now, err
	}
	var counters []bus.Counter
	for _, m := range now.counts {
		for _, outcome := range telemetry.BusOutcomes {
			counters = append(counters, telemetry.LabelSteps(m.Machine, outcome))
		}
	}
	now.steps, err = l.machines.Counters(ctx, counters)
	return now, err
}
