package main

import (
	"context"
	"time"

	"routemaster/tools/bench/load"
)

// scenario is one thing to measure. Each has processes of its own.
type scenario struct {
	name, about string
	needs       need
	run         func(e *environment, ctx context.Context) error
}

// need is a requirement of a scenario on the bus, as messages say it.
type need string

const (
	needsAPI        need = "a bus"
	needsDeliveries need = "deliveries: --public-url"
	needsStack      need = "a bus of its own: no --bus"
	needsCluster    need = "a bus on a cluster: --cluster"
)

// The names of scenarios that are treated apart.
const (
	consoleScenario = "console"
	clusterScenario = "cluster"
)

// scenarios are all scenarios, in order.
var scenarios = []scenario{
	{"ingest", "single-event publishes in a closed loop, while no worker runs; then all is delivered",
		needsAPI, (*environment).ingest},
	{"bulk", "arrays of events, 16 publishers in a closed loop, 1 subscriber, while no worker runs; then all is delivered",
		needsStack, (*environment).bulk},
	{"end-to-end", "published at 0.7 of what web takes, and delivered at the same time",
		needsDeliveries, (*environment).endToEnd},
	{"latency", "from when a publish is due (open loop) to the subscriber, timeout 0",
		needsDeliveries, (*environment).openLoop},
	{"refusals", "the same at the highest rate, max 1, beside batches that the subscriber refuses",
		needsDeliveries, (*environment).besideRefusals},
	{"backlog", "a queue is filled by arrays of 100, and then drained",
		needsStack, (*environment).backlog},
	{"subscribers", "one topic with very many subscribers, a worker with 300 threads",
		needsStack, (*environment).fanOut},
	{"restart", "a worker is restarted while it drains a backlog",
		needsStack, (*environment).restart},
	{"jobs", "jobs are enqueued, then done by a service that does each at once; and many that are not due",
		needsStack, (*environment).jobs},
	{"machines", "labels are made, patched and moved, with webhooks that are answered at once; many wait, and are walked over",
		needsStack, (*environment).machines},
	{consoleScenario, "pages, samples, and many people who look, with many subscribers and topics",
		needsStack, (*environment).console},
	{clusterScenario, "a bus on a Redis Cluster beside one on one Redis, each row on both in turn; only with --cluster",
		needsCluster, (*environment).cluster},
}

// scenarioNames returns the names of all scenarios, in order.
func scenarioNames() (names []string) {
	for _, s := range scenarios {
		names = append(names, s.name)
	}
	return names
}

// size is how much is measured.
type size struct {
	load.Window
	publishers, subscribers []int
	arrays                  []int
	maxes, timeouts         []int
	// timeout, in ms, is for subscriptions where not several are tried.
	timeout int
	rates   []float64
	// refused are batches that a subscriber refuses, pairs the measurements without and beside these.
	refused, pairs int
	// few are publishers and spread the subscribers of a topic, on a cluster. relayRates are events/s,
	// each measured for relayEvents at least.
	few, spread []int
	relayRates  []float64
	relayEvents float64
	// queue is how many events are delivered one by one from a queue.
	queue int64
	// backlogs and restart are events; fanOut is subscribers, also for the console, threads a
	// worker's.
	backlogs        []int64
	fanOut, threads int
	restart         int64
	// inFlight are limits of a type of jobs, or threads for labels; doneJobs how many jobs or labels
	// are done with each. idleJobs are not due, and as many labels wait.
	inFlight []int
	doneJobs int64
	idleJobs int64
	// viewers look at the console, each every refresh.
	viewers int
	refresh time.Duration
}

// baselineWindow is how long a baseline is measured.
func (s size) baselineWindow() load.Window {
	return load.Window{WarmUp: s.WarmUp / 2, Measured: s.Measured / 2}
}

// fanOutThreads is the number of threads for which the goal for a worker's memory is set.
const fanOutThreads = 300

// fullSize is a whole benchmark.
func fullSize(duration time.Duration) size {
	return size{
		Window:     load.Window{WarmUp: duration / 4, Measured: duration},
		publishers: []int{1, 4, 16, 64}, subscribers: []int{0, 1, 10, 100},
		arrays: []int{10, 100, 1000},
		maxes:  []int{1, 10, 100}, timeouts: []int{0, 50, 500}, timeout: 500,
		rates:   []float64{100, 1000},
		refused: 50, pairs: 5,
		few: []int{1, 4}, spread: []int{1, 10, 100}, relayRates: []float64{10, 1000, 3000}, relayEvents: 100,
		queue:    20_000,
		backlogs: []int64{1_000_000},
		fanOut:   1000, threads: fanOutThreads,
		restart:  300_000,
		inFlight: []int{1, 32, 300}, doneJobs: 15_000, idleJobs: 100_000,
		viewers: 50, refresh: 5 * time.Second,
	}
}

// quickSize only shows that everything works.
func quickSize() size {
	return size{
		Window:     load.Window{WarmUp: 30 * time.Millisecond, Measured: 120 * time.Millisecond},
		publishers: []int{4}, subscribers: []int{0, 2},
		arrays: []int{10},
		maxes:  []int{1, 100}, timeouts: []int{0}, timeout: 20,
		rates:   []float64{100},
		refused: 3, pairs: 1,
		few: []int{1}, spread: []int{1, 3}, relayRates: []float64{100}, relayEvents: 10,
		queue:    500,
		backlogs: []int64{10_000},
		fanOut:   20, threads: 20,
		restart:  5000,
		inFlight: []int{1, 16}, doneJobs: 200, idleJobs: 1000,
		viewers: 2, refresh: 50 * time.Millisecond,
	}
}

// The publishers, their arrays and the batches where a scenario does not try several.
const (
	usualPublishers = 16
	usualArray      = 100
	usualMax        = 100
)
