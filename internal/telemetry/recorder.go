package telemetry

import (
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"routemaster/internal/bus"
)

// Recorder counts the events of a process. It is safe for concurrent use, and its methods neither
// block nor fail. A nil Recorder does nothing.
type Recorder struct {
	families []*family // by the index of their metric
	counts   *counts
}

// NewRecorder makes a recorder. It registers its Prometheus metrics, and counts in the store once
// [Recorder.Run] runs.
func NewRecorder(registry prometheus.Registerer, st Store, log *slog.Logger) *Recorder {
	r := &Recorder{families: make([]*family, len(all)), counts: newCounts(st, log)}
	for i, m := range all {
		r.families[i] = newFamily(m, registry)
	}
	return r
}

// Count adds to a counter or a gauge with some values of its labels. With 0 its series begins: the
// increase of one that begins with 1 is not seen.
func (r *Recorder) Count(m *Metric, n int, values ...string) {
	if r == nil {
		return
	}
	s := r.families[m.index].of(values)
	switch {
	case s.gauge != nil:
		s.gauge.Add(float64(n))
	case s.counter != nil:
		s.counter.Add(float64(n))
	}
	if m.Counter != "" {
		r.counts.addOne(s.bus, s.total, int64(n))
	}
}

// CountFor adds events for each of some subscribers, of whom only the tokens are known, to a metric
// whose only label is a subscriber.
func (r *Recorder) CountFor(m *Metric, events int, subscribers bus.Tokens) {
	if r == nil || subscribers == "" {
		return
	}
	if m.Name != "" {
		r.families[m.index].of(nil).counter.Add(float64(events * subscribers.Len()))
	}
	r.counts.addFor(m, subscribers, int64(events))
}

// Observe adds a value to a histogram or a summary: seconds, or a number.
func (r *Recorder) Observe(m *Metric, value float64, values ...string) {
	if r != nil {
		r.families[m.index].of(values).observer.Observe(value)
	}
}

// Took adds a duration to a histogram or a summary of seconds.
func (r *Recorder) Took(m *Metric, took time.Duration, values ...string) {
	r.Observe(m, took.Seconds(), values...)
}
