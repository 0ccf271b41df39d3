package telemetry

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"routemaster/internal/bus"
)

// Namespace is the first part of the name of every Prometheus metric of ours.
const Namespace = "routemaster"

// Metric is a value that a [Recorder] counts or observes: a Prometheus metric of the process, a
// counter of the whole bus, or both.
type Metric struct {
	// Name is its name in Prometheus, without the namespace, and Help its text. Without a name
	// Prometheus does not have it.
	Name, Help string
	// Counter is the name of the counter of the bus, which is kept in Redis. Without it there is
	// none.
	Counter string
	// Labels are the names of the labels: the Prometheus metric has the first ones, as many as Shown
	// says, the counter has all of them as tags.
	Labels []string
	Shown  int
	// Total is the name of a second counter of the bus, with the last labels only, as many as
	// TotalTags says: of the values of the first ones, some may be removed. Without it there is none.
	Total     string
	TotalTags int

	kind    kind
	buckets []float64
	begins  []string // values of its last label whose series begin together
	index   int      // among all metrics
}

// kind is the type of a Prometheus metric.
type kind int

const (
	isCounter kind = iota
	isGauge
	isHistogram
	isSummary
)

// all are the metrics of the tables, which fill it.
var all []*Metric

func add(m Metric) *Metric {
	m.index = len(all)
	all = append(all, &m)
	return &m
}

// counter is a metric that both the process and the bus count; without the name of a counter only
// the process does.
func counter(counter, name, help string, labels ...string) *Metric {
	return add(Metric{Counter: counter, Name: name, Help: help, Labels: labels, Shown: len(labels)})
}

// busCounter is one that only the bus counts.
func busCounter(name string, tags ...string) *Metric { return add(Metric{Counter: name, Labels: tags}) }

// but has the Prometheus metric show only the first labels.
func (m *Metric) but(shown int) *Metric {
	m.Shown = shown
	return m
}

// total has the bus count it once more, with the last labels only.
func (m *Metric) total(counter string, tags int) *Metric {
	m.Total, m.TotalTags = counter, tags
	return m
}

// from has the series of some values of its last label begin together: with the first one that has
// these values of the other labels, and from the start if it is the only one.
func (m *Metric) from(values ...string) *Metric {
	m.begins = values
	return m
}

func gauge(name, help string, labels ...string) *Metric {
	return add(Metric{kind: isGauge, Name: name, Help: help, Labels: labels, Shown: len(labels)})
}

func histogram(name, help string, buckets []float64, labels ...string) *Metric {
	return add(Metric{kind: isHistogram, buckets: buckets, Name: name, Help: help, Labels: labels, Shown: len(labels)})
}

// summary has no quantiles: it is for metrics with many series, where one for each bucket would be
// too many.
func summary(name, help string, labels ...string) *Metric {
	return add(Metric{kind: isSummary, Name: name, Help: help, Labels: labels, Shown: len(labels)})
}

// ReadGauge is a gauge whose values [Registry.AddReader] reads.
func ReadGauge(name, help string, labels ...string) *Metric {
	return &Metric{kind: isGauge, Name: name, Help: help, Labels: labels}
}

// ReadCounter is a counter whose values [Registry.AddReader] reads.
func ReadCounter(name, help string, labels ...string) *Metric {
	return &Metric{Name: name, Help: help, Labels: labels}
}

// Bus names the metric's counter of the bus with the values of some labels.
func (m *Metric) Bus(values ...string) bus.Counter { return named(m.Counter, m.Labels, values) }

// BusTotal names the metric's counter [Metric.Total] with the values of its labels.
func (m *Metric) BusTotal(values ...string) bus.Counter {
	return named(m.Total, m.Labels[len(m.Labels)-m.TotalTags:], values)
}

func named(counter string, labels, values []string) bus.Counter {
	tags := make([]bus.Tag, len(values), maxLabels)
	for i, value := range values {
		tags[i] = bus.Tag{Name: tagOf(labels[i]), Value: value}
	}
	return bus.NewCounter(counter, tags...)
}

// tagOf is the tag of the bus' counters that a label is. The tag of subscribers has the name that
// it has in the Ruby original, where its value was their token, a secret: ours is their public
// name.
func tagOf(label string) string {
	if label == Subscriber {
		return "queue"
	}
	return label
}

// MaxValues bounds the values of a metric's first label, because clients choose the names of
// topics. Prometheus shows further values together, as Other.
const (
	MaxValues = 2000
	Other     = "(other)"
)

// maxSeries bounds the series of a metric whose look-up is cached.
const maxSeries = 10 * MaxValues

// maxLabels is the most labels of a metric.
const maxLabels = 3

// family is a metric with a recorder's vectors for it.
type family struct {
	*Metric
	counters  *prometheus.CounterVec
	gauges    *prometheus.GaugeVec
	observers prometheus.ObserverVec

	mu     sync.RWMutex
	series map[[maxLabels]string]*series // cached, because Prometheus' own look-up is slower
	values map[string]struct{}           // of the first label
}

// series is a metric with values of its labels.
type series struct {
	counter  prometheus.Counter
	gauge    prometheus.Gauge
	observer prometheus.Observer
	bus      bus.Counter
	total    bus.Counter // without a name if there is none
}

func newFamily(m *Metric, registry prometheus.Registerer) *family {
	f := &family{Metric: m, series: map[[maxLabels]string]*series{}, values: map[string]struct{}{}}
	if m.Name == "" {
		return f
	}
	register, shown := promauto.With(registry), m.Labels[:m.Shown]
	switch m.kind {
	case isCounter:
		f.counters = register.NewCounterVec(prometheus.CounterOpts{Namespace: Namespace, Name: m.Name, Help: m.Help}, shown)
	case isGauge:
		f.gauges = register.NewGaugeVec(prometheus.GaugeOpts{Namespace: Namespace, Name: m.Name, Help: m.Help}, shown)
	case isHistogram:
		f.observers = register.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: Namespace, Name: m.Name, Help: m.Help, Buckets: m.buckets,
		}, shown)
	case isSummary:
		f.observers = register.NewSummaryVec(prometheus.SummaryOpts{Namespace: Namespace, Name: m.Name, Help: m.Help}, shown)
	}
	// Series known from the start are 0 from the start.
	if m.Shown == 0 {
		f.make([maxLabels]string{})
	}
	if len(m.Labels) == 1 {
		f.beginWith([maxLabels]string{})
	}
	return f
}

// of returns the series of some values, which are as many as the labels.
func (f *family) of(values []string) *series {
	var key [maxLabels]string
	copy(key[:], values)
	f.mu.RLock()
	s, ok := f.series[key]
	f.mu.RUnlock()
	if ok {
		return s
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if s, ok = f.series[key]; ok {
		return s
	}
	s = f.make(key)
	if len(f.series) < maxSeries {
		f.series[key] = s
	}
	f.beginWith(key)
	return s
}

// beginWith makes the series that begin together with one; the caller holds mu.
func (f *family) beginWith(key [maxLabels]string) {
	for _, value := range f.begins {
		key[len(f.Labels)-1] = value
		f.make(key)
	}
}

// make makes a series; the caller holds mu.
func (f *family) make(key [maxLabels]string) *series {
	s, shown := &series{}, key
	if f.Counter != "" {
		s.bus = f.Bus(key[:len(f.Labels)]...)
	}
	if f.Total != "" {
		s.total = f.BusTotal(key[len(f.Labels)-f.TotalTags : len(f.Labels)]...)
	}
	if f.Shown > 0 {
		if _, known := f.values[key[0]]; !known && len(f.values) >= MaxValues {
			shown[0] = Other
		} else {
			f.values[key[0]] = struct{}{}
		}
	}
	switch values := shown[:f.Shown]; {
	case f.counters != nil:
		s.counter = f.counters.WithLabelValues(values...)
	case f.gauges != nil:
		s.gauge = f.gauges.WithLabelValues(values...)
	case f.observers != nil:
		s.observer = f.observers.WithLabelValues(values...)
	}
	return s
}
