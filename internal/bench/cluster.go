package bench

import (
	"context"
	"errors"
	"fmt"

	"routemaster/internal/bench/cluster"
	"routemaster/internal/bench/stack"
)

// cluster measures a bus on a cluster beside this one.
func (e *environment) cluster(ctx context.Context) (err error) {
	there, err := newEnvironment(ctx, e.options, e.options.Masters)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, there.close(ctx)) }()
	there.report, there.table = e.report, e.table
	before := there.stack.Usage()
	b := cluster.Bench{
		One: e.bus("one Redis"), Cluster: there.bus(fmt.Sprintf("cluster of %d", there.masters)),
		Report: e.report, Table: e.table, Window: e.size.Window, Turn: e.size.baselineWindow(),
		Publishers: usualPublishers, Array: usualArray, Few: e.size.few, Spread: e.size.spread, Maxes: e.size.maxes,
		Timeout: e.size.timeout, Queue: e.size.queue, Turns: e.size.pairs, Rates: e.size.relayRates, RateEvents: e.size.relayEvents,
	}
	if err := b.Run(ctx); err != nil {
		return err
	}
	there.addProcesses(before)
	return nil
}

// bus is this environment's, as package cluster measures it.
func (e *environment) bus(name string) cluster.Bus {
	run := func(ctx context.Context, how cluster.Trial) (cluster.Result, error) {
		t := trial{
			publishers: how.Publishers, subscribers: how.Subscribers, array: how.Array, max: how.Max, timeout: how.Timeout,
			rate: how.Rate, queue: how.Queue, window: how.Window, live: how.Live, distance: how.Distance,
		}
		if how.InFlight > 0 {
			t.worker = []string{fmt.Sprintf("ROUTEMASTER_SUBSCRIBER_DELIVERIES=%d", how.InFlight)}
		}
		m, err := e.run(ctx, t)
		return cluster.Result{
			Published: m.published, Delivered: m.delivered, Answers: m.Latency, Tally: m.tally, Drained: m.drained,
			Publishing: m.publishing, Draining: m.draining, Fate: m.fate,
		}, err
	}
	return cluster.Bus{Name: name, Stack: e.stack, Run: run}
}

// suffix ends the names of what is measured on a cluster.
func (e *environment) suffix() string {
	if e.masters == 0 {
		return ""
	}
	return fmt.Sprintf("-on-%d", e.masters)
}

// runAt is [environment.nextRun] with a topic whose home is as far from the first subscriber as is
// asked for. A cluster of one master has none apart; what is near stands for it.
func (e *environment) runAt(distance *stack.Distance) (r run) {
	for r = e.nextRun(); distance != nil && e.masters > 0; r = e.nextRun() {
		got := e.stack.Distance(r.topic, subscriberToken(0))
		if got == *distance || got == stack.Near && *distance == stack.Apart && e.masters == 1 {
			break
		}
	}
	return r
}
