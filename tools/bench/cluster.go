package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"routemaster/tools/bench/load"
	"routemaster/tools/bench/report"
	"routemaster/tools/bench/stack"
)

// clusterBench measures a bus on a Redis Cluster beside the same bus on one Redis. The two stand
// side by side, and each row is measured on one and right after it on the other, so that the load
// of the host falls on both. A worker runs only on the bus that is being measured: without one the
// other bus does next to nothing, which the last rows show.
type clusterBench struct {
	*environment // of the one Redis
	there        *environment
}

// cluster measures a bus on a cluster beside this one.
func (e *environment) cluster(ctx context.Context) (err error) {
	there, err := newEnvironment(ctx, e.options, e.options.masters)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, there.close(ctx)) }()
	there.report, there.table = e.report, e.table
	before := there.stack.Usage()
	b := &clusterBench{e, there}
	for _, measure := range []func(context.Context) error{b.publishes, b.deliveries, b.answers, b.latencies, b.idle} {
		if err := measure(ctx); err != nil {
			return errors.Join(err, there.stack.Err())
		}
	}
	e.table.Note("At home: the subscriber is in the partition where the events are published. Apart: it is on another node " +
		"(of one master, in another partition). µs are of CPU per event published, of all masters together.")
	there.addProcesses(before)
	return nil
}

// busName names the bus in rows.
func (e *environment) busName() string {
	if e.masters == 0 {
		return "one Redis"
	}
	return fmt.Sprintf("cluster of %d", e.masters)
}

// suffix ends the names of processes and profiles on a cluster.
func (e *environment) suffix() string {
	if e.masters == 0 {
		return ""
	}
	return fmt.Sprintf("-on-%d", e.masters)
}

// runAt is [environment.nextRun] with a topic whose home is at the given distance from the first
// subscriber. A cluster of one master has no topic apart; a near one stands for it.
func (e *environment) runAt(distance *stack.Distance) (r run) {
	for r = e.nextRun(); distance != nil && e.masters > 0; r = e.nextRun() {
		got := e.stack.Distance(r.topic, subscriberToken(0))
		if got == *distance || got == stack.Near && *distance == stack.Apart && e.masters == 1 {
			break
		}
	}
	return r
}

// place is where the first subscriber of a trial is, on a cluster.
type place struct {
	suffix   string // of the names of rows
	distance *stack.Distance
}

// isApart ends the names of the rows that goals are set for.
const isApart = ", apart"

// places are the places at which a trial is measured. Many subscribers are everywhere.
func places(subscribers int) []place {
	if subscribers > 1 {
		return []place{{}}
	}
	home, apart := stack.Home, stack.Apart
	return []place{{", at home", &home}, {isApart, &apart}}
}

// each runs a trial on one Redis, and right after it on the cluster, at each place.
func (b *clusterBench) each(ctx context.Context, how trial, add func(where string, m measurement)) error {
	m, err := b.runBeside(ctx, how)
	if err != nil {
		return err
	}
	add(b.busName(), m)
	for _, p := range places(how.subscribers) {
		how.distance = p.distance
		if m, err = b.there.runBeside(ctx, how); err != nil {
			return err
		}
		add(b.there.busName()+p.suffix, m)
	}
	return nil
}

// runBeside is [environment.run], but a worker runs only for its time.
func (e *environment) runBeside(ctx context.Context, how trial) (m measurement, err error) {
	if how.live {
		if err := e.stack.StartWorker(ctx); err != nil {
			return m, err
		}
	}
	m, err = e.run(ctx, how)
	return m, errors.Join(err, e.stack.Stop(stack.Worker))
}

// publishes measures publishes in a closed loop, while no worker runs; then all is delivered.
func (b *clusterBench) publishes(ctx context.Context) error {
	how := trial{publishers: usualPublishers, max: usualMax, timeout: b.size.timeout}
	var all []trial
	for _, how.subscribers = range b.size.spread {
		all = append(all, how)
	}
	how.subscribers, how.array = 1, usualArray
	for _, how := range append(all, how) {
		err := b.each(ctx, how, func(where string, m measurement) {
			perScript := float64(m.publishing.Events) / float64(max(1, m.publishing.Redis.Scripts))
			b.table.Add(report.Cells("bus", where, "subscribers", how.subscribers, "array", how.array, "events/s", m.published),
				m.responses(""), report.Cells("events/script", perScript), m.publishing.CPUCells(stack.Web, stack.Redis),
				report.Cells("then worker µs", m.draining.CPUTime(stack.Worker), "then redis µs", m.draining.CPUTime(stack.Redis),
					"redis, all µs", redisTime(m.publishing)+redisTime(m.draining)), m.fate)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// redisTime is the CPU time of Redis per event in µs.
func redisTime(c stack.Cost) float64 {
	return float64(c.CPU[stack.Redis].Microseconds()) / float64(max(1, c.Events))
}

// deliveries measures deliveries from a queue, of batches of several sizes, 16 at a time.
func (b *clusterBench) deliveries(ctx context.Context) error {
	for _, batch := range b.size.maxes {
		how := trial{publishers: usualPublishers, subscribers: 1, array: usualArray, max: batch}
		how.queue = b.size.queue * int64(min(10, batch))
		how.worker = inFlight(usualPublishers)
		err := b.each(ctx, how, func(where string, m measurement) {
			b.table.Add(report.Cells("bus", where, "from a queue, max", batch,
				"delivered/s", m.drained.Rate(how.queue/10, how.queue)), m.draining.CPUCells(stack.Worker, stack.Redis), m.fate)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// answers measures how long publishes take: in a closed loop of few publishers, and at a moderate
// rate. A host that is busy for some ms changes that more than a cluster does, so there are several
// turns, and the medians count.
func (b *clusterBench) answers(ctx context.Context) error {
	const moderate = 1000
	loads := []trial{{publishers: usualPublishers, rate: moderate}}
	for _, few := range b.size.few {
		loads = append(loads, trial{publishers: few})
	}
	for _, how := range loads {
		how.subscribers, how.max, how.timeout, how.window = 1, usualMax, b.size.timeout, b.size.baselineWindow()
		var names []string
		p50, p99 := map[string][]float64{}, map[string][]float64{}
		for range b.size.pairs {
			err := b.each(ctx, how, func(where string, m measurement) {
				if !slices.Contains(names, where) {
					names = append(names, where)
				}
				p50[where] = append(p50[where], m.Latency.Percentile(50))
				p99[where] = append(p99[where], m.Latency.Percentile(99))
			})
			if err != nil {
				return err
			}
		}
		for _, name := range names {
			ratio := median(p50[name]) / median(p50[b.busName()])
			b.table.Add(report.Cells("bus", name, "publishers", how.publishers, "due/s", how.rate, "p50 ms", median(p50[name]),
				"÷ one", ratio, "least", slices.Min(p50[name]), "most", slices.Max(p50[name]), "p99 ms", median(p99[name])))
			if name == b.there.busName()+isApart {
				b.report.SetMax(report.ClusterPublish, ratio)
			}
		}
	}
	return nil
}

// median is the middle one of an odd number of values.
func median(values []float64) float64 {
	return slices.Sorted(slices.Values(values))[len(values)/2]
}

// latencies measures how long events take to arrive, while a worker delivers them.
func (b *clusterBench) latencies(ctx context.Context) error {
	for _, rate := range b.size.relayRates {
		how := trial{publishers: usualPublishers, subscribers: 1, max: usualMax, rate: rate, live: true, window: b.size.Window}
		how.window.Measured = max(how.window.Measured, time.Duration(b.size.relayEvents/rate*float64(time.Second)))
		err := b.each(ctx, how, func(where string, m measurement) {
			b.table.Add(report.Cells("bus", where, "due/s", rate, "delivered/s", m.delivered, "p50 ms", m.tally.P50,
				"p99 ms", m.tally.P99, "max ms", m.tally.Max), m.responses("answer "),
				m.publishing.CPUCells(stack.Web, stack.Worker, stack.Redis), m.fate)
			if where != b.there.busName()+isApart {
				return
			}
			switch rate {
			case 10:
				b.report.Set(report.ClusterIdleP50, m.tally.P50)
			case 3000:
				b.report.Set(report.ClusterBusyP99, m.tally.P99)
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// idle measures the cost of a bus that has nothing to do: without a worker, as while the other bus
// is measured, and with one.
func (b *clusterBench) idle(ctx context.Context) error {
	over := b.size.Measured
	for _, bus := range []*environment{b.environment, b.there} {
		none, err := bus.stack.Spend(ctx, func() error { return load.Sleep(ctx, over) })
		if err != nil {
			return err
		}
		one, err := bus.stack.Idle(ctx, over)
		if err != nil {
			return err
		}
		for workers, c := range []stack.Cost{none, one} {
			perSecond := func(spent time.Duration) float64 { return float64(spent.Microseconds()) / 1000 / over.Seconds() }
			b.table.Add(report.Cells("bus", bus.busName(), "idle workers", workers, "web ms/s", perSecond(c.CPU[stack.Web]),
				"worker ms/s", perSecond(c.CPU[stack.Worker]), "redis ms/s", perSecond(c.CPU[stack.Redis]),
				"commands/s", float64(c.Redis.Commands)/over.Seconds(), "scripts/s", float64(c.Redis.Scripts)/over.Seconds()))
		}
	}
	return nil
}
