package maintenance

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"strings"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/inspect"
	"routemaster/internal/queue"
	"routemaster/internal/rdb"
	"routemaster/internal/store"
	"routemaster/internal/telemetry/vendors"
)

// Monitor sends the bus's gauges and counters to a metric service.
type Monitor struct {
	stores    *store.Bus
	whole     *inspect.Bus
	inspector *inspect.Inspector // counters
	limits    bus.MemoryLimits
	service   vendors.MetricService
	log       *slog.Logger
	now       func() time.Time
	gauges    []Gauges
	// These are of the last run. Only one thread runs the monitor.
	failing bool     // it could not send
	damaged []string // keys of damaged subscribers
}

// Gauges reads gauges that a monitor sends with those of the bus.
type Gauges func(context.Context) ([]vendors.Measure, error)

// NewMonitor makes a monitor. With a nil service its runs only log which keys are damaged.
func NewMonitor(all *store.Bus, limits bus.MemoryLimits, service vendors.MetricService, log *slog.Logger,
	now func() time.Time, gauges ...Gauges) *Monitor {
	return &Monitor{stores: all, whole: inspect.OfBus(all), inspector: inspect.Of(all.First()), limits: limits, service: service, log: log, now: now, gauges: gauges}
}

// monitorTimeout bounds one run, because other housekeeping waits for it.
const monitorTimeout = 2 * time.Second

// Monitor is the handler of [bus.JobMonitor]. A failed run is not retried: the next tick comes
// soon.
func (m *Monitor) Monitor(ctx context.Context, _ *queue.Task) queue.Result {
	ctx, cancel := context.WithTimeout(ctx, monitorTimeout)
	defer cancel()
	snapshot, err := m.look(ctx)
	if m.service == nil {
		return queue.Done
	}
	var measures []vendors.Measure
	if err == nil {
		measures, err = m.measure(ctx, snapshot)
	}
	if err == nil {
		err = m.service.Send(ctx, measures)
	}
	switch {
	case err != nil && !m.failing:
		m.log.Warn("metrics cannot be sent", "error", err)
	case err == nil && m.failing:
		m.log.Info("metrics are sent again")
	}
	m.failing = err != nil
	return queue.Done
}

// look reads the state of the bus, and logs which keys are damaged by now.
func (m *Monitor) look(ctx context.Context) (inspect.BusSnapshot, error) {
	snapshot, err := m.whole.Snapshot(ctx, m.now())
	if err != nil {
		return snapshot, err
	}
	if len(snapshot.Damaged) > 0 && !slices.Equal(snapshot.Damaged, m.damaged) {
		m.log.Error("subscriber data is damaged", "keys", snapshot.Damaged)
	}
	m.damaged = snapshot.Damaged
	return snapshot, nil
}

// measure returns what is sent to the service.
func (m *Monitor) measure(ctx context.Context, snapshot inspect.BusSnapshot) ([]vendors.Measure, error) {
	measures := m.measureBus(snapshot)
	for _, read := range m.gauges {
		more, err := read(ctx)
		if err != nil {
			return nil, err
		}
		measures = append(measures, more...)
	}
	counts, err := m.counts(ctx, snapshot.Nodes)
	if err != nil {
		return nil, err
	}
	for c, n := range counts {
		measures = append(measures, vendors.Measure{Counter: c, Value: n})
	}
	measures = append(measures, vendors.Replaced(counts)...)
	slices.SortFunc(measures, func(a, b vendors.Measure) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), slices.CompareFunc(a.All(), b.All(), func(a, b bus.Tag) int {
			return strings.Compare(a.Value, b.Value)
		}))
	})
	return measures, nil
}

func (m *Monitor) measureBus(snapshot inspect.BusSnapshot) (measures []vendors.Measure) {
	add := func(name string, value int64, tags ...bus.Tag) {
		measures = append(measures, vendors.Measure{Counter: bus.NewCounter(name, tags...), Value: value, Gauge: true})
	}
	for b := range inspect.ByClient(snapshot.Backlogs) {
		tag := bus.Tag{Name: "subscriber", Value: string(b.Client)}
		add("subscriber.queue.batches", b.Batches, tag)
		add("subscriber.queue.events", b.Events, tag)
	}
	for name, jobs := range snapshot.Jobs {
		tag := bus.Tag{Name: "queue", Value: string(name)}
		add("jobs.count", jobs.Instant, tag, bus.Tag{Name: "status", Value: "instant"})
		add("jobs.count", jobs.Scheduled, tag, bus.Tag{Name: "status", Value: "scheduled"})
	}
	memory := func(of *rdb.Memory, tags ...bus.Tag) {
		if of == nil {
			return
		}
		limit, high, low := m.limits.Marks(of.Max)
		add("redis.bytes_used", of.Used, tags...)
		add("redis.max_mem", limit, tags...)
		add("redis.high_mark", high, tags...)
		add("redis.low_mark", low, tags...)
	}
	memory(snapshot.Memory)
	for _, node := range snapshot.Nodes {
		memory(node.Memory, nodeTag(node))
	}
	for i, p := range snapshot.Partitions {
		add("relay.events", p.Events, bus.Tag{Name: "partition", Value: rdb.Number(i).String()})
	}
	return measures
}

func nodeTag(node inspect.Node) bus.Tag { return bus.Tag{Name: "node", Value: node.Address} }

// counts returns the counters of the bus and Redis' processor time in ms. For a service that takes
// increments it returns their growth since the last run of any worker's monitor.
func (m *Monitor) counts(ctx context.Context, nodes []inspect.Node) (map[bus.Counter]int64, error) {
	counts, err := m.inspector.Counters(ctx)
	if err != nil {
		return nil, err
	}
	addCPU := func(of *store.Store, tags ...bus.Tag) error {
		cpu, err := of.Partition().CPU(ctx)
		if err == nil {
			counts[bus.NewCounter("redis.used_cpu_user", tags...)] = cpu.User.Milliseconds()
			counts[bus.NewCounter("redis.used_cpu_sys", tags...)] = cpu.System.Milliseconds()
		}
		return err
	}
	if len(nodes) == 0 {
		if err := addCPU(m.stores.First()); err != nil {
			return nil, err
		}
	}
	for _, node := range nodes {
		if node.IsUp {
			_ = addCPU(m.stores.All()[node.First], nodeTag(node)) // it may have gone since
		}
	}
	if !m.service.TakesIncrements() {
		return counts, nil
	}
	before, err := m.inspector.SwapMonitored(ctx, counts)
	if err != nil {
		return nil, err
	}
	return growth(before, counts), nil
}

// growth returns by how much counters have grown, without those that have not. Before the first run
// nothing is known, so nothing has grown. A counter that is smaller than before was reset.
func growth(before, now map[bus.Counter]int64) map[bus.Counter]int64 {
	if len(before) == 0 {
		return nil
	}
	grown := map[bus.Counter]int64{}
	for c, n := range now {
		was := before[c]
		if was > n {
			was = 0
		}
		if n > was {
			grown[c] = n - was
		}
	}
	return grown
}
