package bench

import (
	"context"
	"time"
)

// scenario is one thing to measure. Each has processes of its own.
type scenario struct {
	name, about string
	needs       need
	run         func(s *site, ctx context.Context) error
}

// need is what a scenario needs of a bus; its text is for who asks for it without.
type need string

const (
	api        need = "a bus"
	deliveries need = "deliveries: --public-url"
	machines   need = "a bus of its own: no --bus"
)

// scenarios are all there are.
var scenarios = []scenario{
	{"ingest", "single-event publishes in a closed loop, while no worker runs; then all is delivered", api, (*site).ingest},
	{"bulk", "arrays of events, 16 publishers in a closed loop, 1 subscriber, while no worker runs; then all is delivered", machines, (*site).bulk},
	{"end-to-end", "published at 0.7 of what web takes, and delivered at the same time", deliveries, (*site).endToEnd},
	{"latency", "from when a publish is due (open loop) to the subscriber, timeout 0", deliveries, (*site).openLoop},
	{"backlog", "a queue is filled by arrays of 100, and then drained", machines, (*site).backlog},
	{"subscribers", "one topic with very many subscribers, a worker with 300 threads", machines, (*site).crowd},
	{"restart", "a worker is restarted while it drains a backlog", machines, (*site).restart},
}

// Scenarios names them all, in order.
func Scenarios() (names []string) {
	for _, s := range scenarios {
		names = append(names, s.name)
	}
	return names
}

// size is how much is measured.
type size struct {
	window
	publishers, subscribers []int
	arrays                  []int
	most, timeouts          []int
	// timeout, in ms, is a subscription's where not several are tried.
	timeout int
	rates   []float64
	// queue is how many events are delivered one by one, from a queue.
	queue int64
	// backlogs and restart are events; crowd is subscribers, threads a worker's.
	backlogs       []int64
	crowd, threads int
	restart        int64
}

// limitWindow is how long a limit is measured.
func (s size) limitWindow() window { return window{s.warmUp / 2, s.measured / 2} }

// threadsInCrowd are those that the goal for the worker's memory is set for.
const threadsInCrowd = 300

// fullSize is a whole benchmark.
func fullSize(duration time.Duration) size {
	return size{
		window:     window{duration / 4, duration},
		publishers: []int{1, 4, 16, 64}, subscribers: []int{0, 1, 10, 100},
		arrays: []int{10, 100, 1000},
		most:   []int{1, 10, 100}, timeouts: []int{0, 50, 500}, timeout: 500,
		rates:    []float64{100, 1000},
		queue:    20_000,
		backlogs: []int64{1_000_000},
		crowd:    1000, threads: threadsInCrowd,
		restart: 300_000,
	}
}

// quickSize only shows that all works.
func quickSize() size {
	return size{
		window:     window{30 * time.Millisecond, 120 * time.Millisecond},
		publishers: []int{4}, subscribers: []int{0, 2},
		arrays: []int{10},
		most:   []int{1, 100}, timeouts: []int{0}, timeout: 20,
		rates:    []float64{100},
		queue:    500,
		backlogs: []int64{10_000},
		crowd:    20, threads: 20,
		restart: 5000,
	}
}

// The publishers, and their arrays, where a scenario does not try several.
const (
	usualPublishers = 16
	usualArray      = 100
	usualMost       = 100
)
