package top

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// mostMetrics is the most bytes of a page of metrics that are read.
const mostMetrics = 64 << 20

// families are metrics by name.
type families map[string]*dto.MetricFamily

// parseMetrics reads a page of metrics in Prometheus' text format.
func parseMetrics(page io.Reader) (families, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	found, err := parser.TextToMetricFamilies(io.LimitReader(page, mostMetrics))
	if err != nil {
		return nil, fmt.Errorf("the answer is not Prometheus' text format: %w", err)
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

// redisIsAway reports whether web could not read the gauges.
func (f families) redisIsAway() bool {
	up, told := f.number("redis_up")
	return told && up == 0
}

// bus is what web tells of the whole bus.
func (f families) bus() Metrics {
	m := Metrics{Batches: map[string]int64{}, OldestAge: map[string]time.Duration{}, Counts: f.counts()}
	f.each("subscriber_queued_batches", func(labels map[string]string, n float64) {
		m.Batches[labels["subscriber"]] = int64(n)
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
	slices.SortFunc(m.Jobs, func(a, b Jobs) int { return cmp.Compare(b.Queue, a.Queue) }) // main, aux
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

// counts are what the bus has counted, by subscriber.
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

// healthy are the names of the subscribers that web tells the health of.
func (f families) healthy() (names []string) {
	f.each("subscriber_health_points", func(labels map[string]string, _ float64) {
		names = append(names, labels["subscriber"])
	})
	return names
}
