package maintenance

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/inspect"
	"routemaster/internal/overview"
	"routemaster/internal/overview/samples"
	"routemaster/internal/queue"
	"routemaster/internal/rdb"
	"routemaster/internal/store"
	"routemaster/internal/telemetry/vendors"
)

// Monitor sends the bus's gauges and counters to a metric service.
type Monitor struct {
	stores    *store.Bus
	collector *samples.Collector
	service   vendors.MetricService
	log       *slog.Logger
	// These are of the last run. Only one thread runs the monitor.
	failing bool     // it could not send
	damaged []string // keys of damaged subscribers
}

// NewMonitor makes a monitor. With a nil service its runs only log which keys are damaged.
func NewMonitor(all *store.Bus, collector *samples.Collector, service vendors.MetricService, log *slog.Logger) *Monitor {
	return &Monitor{stores: all, collector: collector, service: service, log: log}
}

// monitorTimeout bounds one run, because other housekeeping waits for it.
const monitorTimeout = 2 * time.Second

// Monitor is the handler of [bus.JobMonitor]. A failed run is not retried: the next tick comes
// soon.
func (m *Monitor) Monitor(ctx context.Context, _ *queue.Task) queue.Result {
	ctx, cancel := context.WithTimeout(ctx, monitorTimeout)
	defer cancel()
	if m.service == nil {
		m.check(m.collector.Collect(ctx, samples.Check))
		return queue.Done
	}
	sample := m.collector.Collect(ctx, samples.Measure)
	m.check(sample)
	measures, err := m.measure(ctx, sample)
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

// check logs which keys are damaged by now.
func (m *Monitor) check(sample overview.Sample) {
	if sample.Redis != "" {
		return
	}
	if len(sample.Damaged) > 0 && !slices.Equal(sample.Damaged, m.damaged) {
		m.log.Error("subscriber data is damaged", "keys", sample.Damaged)
	}
	m.damaged = sample.Damaged
}

// measure returns the measures for the service. It fails if a part could not be read, because
// missing measures would look like 0.
func (m *Monitor) measure(ctx context.Context, sample overview.Sample) ([]vendors.Measure, error) {
	if sample.Redis != "" {
		return nil, errors.New(sample.Redis)
	}
	for _, unread := range sample.Unread {
		if unread.Part == overview.PartJobTypes {
			return nil, errors.New(unread.Why)
		}
	}
	measures := append(measureBus(sample), measureJobs(sample)...)
	counts, err := m.counts(ctx, sample.Nodes)
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

func measureBus(sample overview.Sample) (measures []vendors.Measure) {
	add := func(name string, value int64, tags ...bus.Tag) {
		measures = append(measures, vendors.Measure{Counter: bus.NewCounter(name, tags...), Value: value, Gauge: true})
	}
	for _, sub := range slices.Concat(sample.Subscribers, sample.Others) {
		tag := bus.Tag{Name: "subscriber", Value: sub.Name}
		add("subscriber.queue.batches", sub.Batches, tag)
		add("subscriber.queue.events", sub.Queued, tag)
	}
	for _, q := range sample.Queues {
		tag := bus.Tag{Name: "queue", Value: q.Name}
		add("jobs.count", q.Instant, tag, bus.Tag{Name: "status", Value: "instant"})
		add("jobs.count", q.Scheduled, tag, bus.Tag{Name: "status", Value: "scheduled"})
	}
	memory := func(of *overview.Memory, tags ...bus.Tag) {
		if of == nil {
			return
		}
		add("redis.bytes_used", of.Used, tags...)
		add("redis.max_mem", of.Max, tags...)
		add("redis.high_mark", of.High, tags...)
		add("redis.low_mark", of.Low, tags...)
	}
	if len(sample.Nodes) == 0 {
		memory(sample.Memory)
	}
	for _, node := range sample.Nodes {
		memory(node.Memory, nodeTag(node))
	}
	for i, p := range sample.Partitions {
		add("relay.events", p.Relayed, bus.Tag{Name: "partition", Value: rdb.Number(i).String()})
	}
	return measures
}

func nodeTag(node overview.Node) bus.Tag { return bus.Tag{Name: "node", Value: node.Address} }

// measureJobs measures waiting jobs as the service that jobs replace did: `ready` includes jobs in
// progress. Without job types it measures nothing.
func measureJobs(sample overview.Sample) (measures []vendors.Measure) {
	if len(sample.JobTypes) == 0 {
		return nil
	}
	add := func(name string, value int64) {
		measures = append(measures,
			vendors.Measure{Counter: bus.NewCounter(vendors.Dequeuer + name), Value: value, Gauge: true, Verbatim: true})
	}
	var unended, waiting, inProgress int64
	for _, t := range sample.JobTypes {
		unended += t.Queued + t.InProgress
		waiting += t.Waiting
		inProgress += t.InProgress
		add("queued_jobs."+t.Name+".in_progress", t.InProgress)
	}
	add("queue_depth.all", unended)
	add("queue_depth.ready", inProgress+waiting+sample.DueJobs)
	add("queued_jobs.in_progress", inProgress)
	return measures
}

// counts returns the counters of the bus and Redis' processor time in ms. For a service that takes
// increments it returns their growth since the last run of any worker's monitor.
func (m *Monitor) counts(ctx context.Context, nodes []overview.Node) (map[bus.Counter]int64, error) {
	inspector := inspect.Of(m.stores.First())
	counts, err := inspector.Counters(ctx)
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
	before, err := inspector.SwapMonitored(ctx, counts)
	if err != nil {
		return nil, err
	}
	return growth(before, counts), nil
}

// growth returns the growth of counters, without those that have not grown. Before the first run no
// value is known, so it returns nil. A counter that is smaller than before was reset.
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
