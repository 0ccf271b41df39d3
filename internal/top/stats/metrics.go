package stats

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// maxMetrics bounds a page of metrics, in bytes.
const maxMetrics = 64 << 20

// families are metrics by name.
type families map[string]*dto.MetricFamily

// parseMetrics reads a page of metrics in Prometheus' text format.
func parseMetrics(page io.Reader) (families, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	found, err := parser.TextToMetricFamilies(io.LimitReader(page, maxMetrics))
	if err != nil {
		return nil, fmt.Errorf("the response is not in Prometheus' text format: %w", err)
	}
	return found, nil
}

// each calls a function with the labels and the value of every series of a metric of the bus.
func (f families) each(name string, do func(labels map[string]string, value float64)) {
	for _, series := range f["routemaster_"+name].GetMetric() {
		labels := map[string]string{}
		for _, pair := range series.GetLabel() {
			labels[pair.GetName()] = pair.GetValue()
		}
		switch {
		case series.Gauge != nil:
			do(labels, series.GetGauge().GetValue())
		case series.Counter != nil:
			do(labels, series.GetCounter().GetValue())
		case series.Untyped != nil:
			do(labels, series.GetUntyped().GetValue())
		}
	}
}

// number returns a metric without labels, and whether it is there.
func (f families) number(name string) (number int64, ok bool) {
	f.each(name, func(_ map[string]string, value float64) { number, ok = int64(value), true })
	return number, ok
}

// redisUnavailable reports whether web could not read Redis for these metrics.
func (f families) redisUnavailable() bool {
	up, known := f.number("redis_up")
	return known && up == 0
}

// bus returns the metrics of the whole bus.
func (f families) bus() Metrics {
	m := Metrics{
		Batches: map[string]int64{}, Dead: map[string]int64{}, OldestAge: map[string]time.Duration{}, States: f.states(), Counts: f.counts(),
	}
	f.each("subscriber_queued_batches", func(labels map[string]string, n float64) {
		m.Batches[labels["subscriber"]] = int64(n)
	})
	f.each("subscriber_dead_letter_events", func(labels map[string]string, n float64) {
		m.Dead[labels["subscriber"]] = int64(n)
	})
	f.each("subscriber_oldest_event_age_seconds", func(labels map[string]string, age float64) {
		m.OldestAge[labels["subscriber"]] = time.Duration(age * float64(time.Second))
	})
	queues := map[string]Jobs{}
	f.each("jobs", func(labels map[string]string, n float64) {
		jobs := queues[labels["queue"]]
		jobs.Queue = labels["queue"]
		switch labels["status"] {
		case "instant":
			jobs.Instant = int64(n)
		case "scheduled":
			jobs.Scheduled = int64(n)
		}
		queues[jobs.Queue] = jobs
	})
	for _, jobs := range queues {
		m.Jobs = append(m.Jobs, jobs)
	}
	m.Types, m.Machines = f.jobTypes(), f.machines()
	slices.SortFunc(m.Jobs, func(a, b Jobs) int { return cmp.Compare(b.Queue, a.Queue) }) // main, jobs, aux
	if due, ok := f.number("jobs_due"); ok {
		m.Due = &due
	}
	if used, ok := f.number("redis_memory_used_bytes"); ok {
		m.Memory = &Memory{Used: used}
		m.Memory.Max, _ = f.number("redis_memory_max_bytes")
		m.Memory.High, _ = f.number("redis_memory_high_mark_bytes")
		m.Memory.Low, _ = f.number("redis_memory_low_mark_bytes")
	}
	return m
}

// takers are what to do with the samples of metrics, for a thing that a label names.
type takers[T any] map[string]func(thing *T, labels map[string]string, value float64)

// gather reads metrics that have a label: it returns the things that this names, in order.
func gather[T any](f families, label string, name func(*T) *string, metrics takers[T]) (things []T) {
	found := map[string]*T{}
	for metric, take := range metrics {
		f.each(metric, func(labels map[string]string, value float64) {
			named := labels[label]
			if found[named] == nil {
				found[named] = new(T)
				*name(found[named]) = named
			}
			take(found[named], labels, value)
		})
	}
	for _, named := range slices.Sorted(maps.Keys(found)) {
		things = append(things, *found[named])
	}
	return things
}

// jobTypes returns the job types, by name.
func (f families) jobTypes() []JobTypeState {
	return gather(f, "job_type", func(t *JobTypeState) *string { return &t.Name }, takers[JobTypeState]{
		"job_type_queued":      func(t *JobTypeState, _ map[string]string, n float64) { t.Queued = int64(n) },
		"job_type_waiting":     func(t *JobTypeState, _ map[string]string, n float64) { t.Waiting = int64(n) },
		"job_type_in_progress": func(t *JobTypeState, _ map[string]string, n float64) { t.InProgress = int64(n) },
		"job_type_concurrency": func(t *JobTypeState, _ map[string]string, n float64) { t.Concurrency = int64(n) },
		"job_type_paused":      func(t *JobTypeState, _ map[string]string, n float64) { t.Paused = n > 0 },
		"job_type_oldest_age_seconds": func(t *JobTypeState, _ map[string]string, age float64) {
			t.OldestAge = time.Duration(age * float64(time.Second))
		},
		"bus_jobs_ended_total": func(t *JobTypeState, labels map[string]string, n float64) {
			if t.Ended == nil {
				t.Ended = map[string]float64{}
			}
			t.Ended[labels["status"]] = n
		},
	})
}

// machines returns the state machines, by name.
func (f families) machines() []MachineState {
	return gather(f, "machine", func(m *MachineState) *string { return &m.Name }, takers[MachineState]{
		"labels":                    func(m *MachineState, _ map[string]string, n float64) { m.Labels += int64(n) }, // by state
		"labels_errored":            func(m *MachineState, _ map[string]string, n float64) { m.Errored = int64(n) },
		"machine_moves_unpublished": func(m *MachineState, _ map[string]string, n float64) { m.Unpublished = int64(n) },
		"bus_label_steps_total": func(m *MachineState, labels map[string]string, n float64) {
			if m.Steps == nil {
				m.Steps = map[string]float64{}
			}
			if labels["outcome"] == Moved {
				m.Steps[Moved] += n
			} else {
				m.Steps[Failed] += n
			}
		},
	})
}

// holds are the metrics that are above 0 while a subscriber is held up, and its state then. Of
// several the last counts.
var holds = []struct{ metric, state string }{
	{"subscriber_pace_wait_seconds", Paced}, {"subscriber_throttle_wait_seconds", Throttled},
	{"lane_blocked", Blocked}, {"subscriber_paused", Paused},
}

// states returns the states of subscribers.
func (f families) states() map[string]string {
	states := map[string]string{}
	for _, hold := range holds {
		f.each(hold.metric, func(labels map[string]string, value float64) {
			name := labels["subscriber"]
			if value > 0 {
				states[name] = hold.state
			}
			states[name] = cmp.Or(states[name], Ready)
		})
	}
	return states
}

// counts returns the counters of the bus, by subscriber.
func (f families) counts() map[string]Counts {
	counted := map[string]Counts{}
	f.each("bus_deliveries_total", func(labels map[string]string, n float64) {
		c := counted[labels["subscriber"]]
		if labels["status"] == "success" {
			c.Succeeded = n
		} else {
			c.Failed = n
		}
		counted[labels["subscriber"]] = c
	})
	f.each("bus_autodropped_events_total", func(labels map[string]string, n float64) {
		c := counted[labels["subscriber"]]
		c.Dropped = n
		counted[labels["subscriber"]] = c
	})
	return counted
}

// subscribed returns the names of subscribers: those that have a health.
func (f families) subscribed() (names []string) {
	f.each("subscriber_health_points", func(labels map[string]string, _ float64) {
		names = append(names, labels["subscriber"])
	})
	return names
}
