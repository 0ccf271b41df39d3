// Package cluster measures a bus on a Redis Cluster beside the same bus on one Redis. The two stand
// side by side, and each row is measured on one and right after it on the other, so that the load
// of the host falls on both. A worker runs only on the bus that is being measured: what is left of
// the other does next to nothing, which the last rows show.
package cluster

import (
	"context"
	"errors"
	"slices"
	"time"

	"routemaster/internal/bench/load"
	"routemaster/internal/bench/report"
	"routemaster/internal/bench/stack"
)

// Bench is what it is measured with.
type Bench struct {
	One, Cluster Bus
	Report       *report.Report
	Table        *report.Table
	// Window is how long a thing is measured, and Turn one of several turns.
	Window, Turn load.Window
	// Publishers and Array are how many there usually are, and how many events an array has.
	Publishers, Array int
	// Few are numbers of publishers that send one after another.
	Few []int
	// Spread are numbers of subscribers, Maxes sizes of batches. Timeout, in ms, is that of
	// subscriptions unless events are to arrive at once.
	Spread, Maxes []int
	Timeout       int
	// Queue is how many events are delivered one by one from a queue.
	Queue int64
	// Turns is how often publishes are measured in turn: an odd number.
	Turns int
	// Rates are events/s, each of which lasts for RateEvents events at least.
	Rates      []float64
	RateEvents float64
}

// Bus is one of the two.
type Bus struct {
	Name  string
	Stack *stack.Stack
	// Run measures a trial, and checks that nothing is lost or left over. Without a worker, it starts
	// one once all is published, and stops that.
	Run func(ctx context.Context, how Trial) (Result, error)
}

// Trial is one measurement.
type Trial struct {
	Publishers, Subscribers int
	// Array is how many events one request has; 0 is one event that is not in an array.
	Array int
	// Max and Timeout, in ms, are those of the subscriptions.
	Max, Timeout int
	// Rate is the requests due per second; 0 is a closed loop.
	Rate float64
	// Queue is how many events are published; 0 publishes as many as a window takes.
	Queue  int64
	Window load.Window
	// Live means that a worker delivers meanwhile.
	Live bool
	// InFlight is how many deliveries a subscriber gets at once, if not live; 0 as by default.
	InFlight int
	// Distance, if set, is how far the first subscriber is from the topic's home, on a cluster.
	Distance *stack.Distance
}

// Result is the result of a trial. Rates are per second, in the window.
type Result struct {
	// Published and Delivered are events.
	Published, Delivered float64
	// Answers are from when a publish was due until it was answered.
	Answers load.Latencies
	// Tally is the receiver's at the end of the window, Drained the progress after that.
	Tally   load.Tally
	Drained load.Samples
	// Publishing is the cost of the window, or of filling the queue, Draining that of all after it.
	Publishing, Draining stack.Cost
	// Fate has the cells with the numbers of lost, duplicated and disordered events.
	Fate report.Row
}

// Run measures all.
func (b *Bench) Run(ctx context.Context) error {
	for _, measure := range []func(context.Context) error{b.publishes, b.deliveries, b.answers, b.latencies, b.idle} {
		if err := measure(ctx); err != nil {
			return errors.Join(err, b.Cluster.Stack.Err())
		}
	}
	b.Table.Note("At home: the subscriber is in the partition where the events are published. Apart: it is on another node " +
		"(of one master, in another partition). µs are of CPU per event published, of all masters together.")
	return nil
}

// place is where the first subscriber of a trial is, on a cluster.
type place struct {
	suffix   string // of the names of rows
	distance *stack.Distance
}

// isApart ends the names of the rows that goals are set for.
const isApart = ", apart"

// places are those at which a trial is measured. Many subscribers are everywhere.
func places(subscribers int) []place {
	if subscribers > 1 {
		return []place{{}}
	}
	home, apart := stack.Home, stack.Apart
	return []place{{", at home", &home}, {isApart, &apart}}
}

// each runs a trial on one Redis, and right after it on the cluster, at each place.
func (b *Bench) each(ctx context.Context, how Trial, add func(where string, r Result)) error {
	r, err := b.One.run(ctx, how)
	if err != nil {
		return err
	}
	add(b.One.Name, r)
	for _, p := range places(how.Subscribers) {
		how.Distance = p.distance
		if r, err = b.Cluster.run(ctx, how); err != nil {
			return err
		}
		add(b.Cluster.Name+p.suffix, r)
	}
	return nil
}

// run runs a trial. A worker runs only for its time.
func (b Bus) run(ctx context.Context, how Trial) (r Result, err error) {
	if how.Live {
		if err := b.Stack.StartWorker(ctx); err != nil {
			return r, err
		}
	}
	r, err = b.Run(ctx, how)
	return r, errors.Join(err, b.Stack.Stop(stack.Worker))
}

// drainCosts are the cells of what was spent on each event after all was published, under names
// with a prefix.
func (r Result) drainCosts(prefix string) report.Row {
	return report.Cells(prefix+"worker µs", r.Draining.CPUTime(stack.Worker), prefix+"redis µs", r.Draining.RedisTime())
}

// responses are the cells of the latency of answers, under names with a prefix.
func responses(l load.Latencies, prefix string) report.Row {
	return report.Cells(prefix+"p50 ms", l.Percentile(50), prefix+"p99 ms", l.Percentile(99))
}

// publishes measures publishes in a closed loop, while no worker runs; then all is delivered.
func (b *Bench) publishes(ctx context.Context) error {
	how := Trial{Publishers: b.Publishers, Max: 100, Timeout: b.Timeout, Window: b.Window}
	var all []Trial
	for _, how.Subscribers = range b.Spread {
		all = append(all, how)
	}
	how.Subscribers, how.Array = 1, b.Array
	for _, how := range append(all, how) {
		err := b.each(ctx, how, func(where string, r Result) {
			perScript := float64(r.Publishing.Events) / float64(max(1, r.Publishing.Redis.Scripts))
			b.Table.Add(report.Cells("bus", where, "subscribers", how.Subscribers, "array", how.Array, "events/s", r.Published),
				responses(r.Answers, ""), report.Cells("events/script", perScript,
					"web µs", r.Publishing.CPUTime(stack.Web), "redis µs", r.Publishing.RedisTime()), r.drainCosts("then "),
				report.Cells("redis, all µs", r.Publishing.RedisTime()+r.Draining.RedisTime()), r.Fate)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// deliveries measures deliveries from a queue, of batches of several sizes, 16 at a time.
func (b *Bench) deliveries(ctx context.Context) error {
	const inFlight = 16
	for _, batch := range b.Maxes {
		how := Trial{Publishers: b.Publishers, Subscribers: 1, Array: b.Array, Max: batch, Window: b.Window}
		how.Queue, how.InFlight = b.Queue*int64(min(10, batch)), inFlight
		err := b.each(ctx, how, func(where string, r Result) {
			b.Table.Add(report.Cells("bus", where, "from a queue, max", batch,
				"delivered/s", r.Drained.Rate(how.Queue/10, how.Queue)), r.drainCosts(""), r.Fate)
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
func (b *Bench) answers(ctx context.Context) error {
	const moderate = 1000
	loads := []Trial{{Publishers: b.Publishers, Rate: moderate}}
	for _, few := range b.Few {
		loads = append(loads, Trial{Publishers: few})
	}
	for _, how := range loads {
		how.Subscribers, how.Max, how.Timeout, how.Window = 1, 100, b.Timeout, b.Turn
		var names []string
		p50, p99 := map[string][]float64{}, map[string][]float64{}
		for range b.Turns {
			err := b.each(ctx, how, func(where string, r Result) {
				if !slices.Contains(names, where) {
					names = append(names, where)
				}
				p50[where] = append(p50[where], r.Answers.Percentile(50))
				p99[where] = append(p99[where], r.Answers.Percentile(99))
			})
			if err != nil {
				return err
			}
		}
		for _, name := range names {
			ratio := median(p50[name]) / median(p50[b.One.Name])
			b.Table.Add(report.Cells("bus", name, "publishers", how.Publishers, "due/s", how.Rate, "p50 ms", median(p50[name]),
				"÷ one", ratio, "least", slices.Min(p50[name]), "most", slices.Max(p50[name]), "p99 ms", median(p99[name])))
			if name == b.Cluster.Name+isApart {
				b.Report.SetMax(report.ClusterPublish, ratio)
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
func (b *Bench) latencies(ctx context.Context) error {
	for _, rate := range b.Rates {
		how := Trial{Publishers: b.Publishers, Subscribers: 1, Max: 100, Rate: rate, Live: true, Window: b.Window}
		how.Window.Measured = max(how.Window.Measured, time.Duration(b.RateEvents/rate*float64(time.Second)))
		err := b.each(ctx, how, func(where string, r Result) {
			b.Table.Add(report.Cells("bus", where, "due/s", rate, "delivered/s", r.Delivered, "p50 ms", r.Tally.P50,
				"p99 ms", r.Tally.P99, "max ms", r.Tally.Max), responses(r.Answers, "answer "),
				r.Publishing.CPUCells(stack.Web, stack.Worker), report.Cells("redis µs", r.Publishing.RedisTime()), r.Fate)
			if where != b.Cluster.Name+isApart {
				return
			}
			switch rate {
			case 10:
				b.Report.Set(report.ClusterIdleP50, r.Tally.P50)
			case 3000:
				b.Report.Set(report.ClusterBusyP99, r.Tally.P99)
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// idle measures what a bus takes that has nothing to do: without a worker, as while the other bus
// is measured, and with one.
func (b *Bench) idle(ctx context.Context) error {
	over := b.Window.Measured
	for _, bus := range []Bus{b.One, b.Cluster} {
		none, err := bus.Stack.Spend(ctx, func() error { return load.Sleep(ctx, over) })
		if err != nil {
			return err
		}
		one, err := bus.Stack.Idle(ctx, over)
		if err != nil {
			return err
		}
		for workers, c := range []stack.Cost{none, one} {
			perSecond := func(spent time.Duration) float64 { return float64(spent.Microseconds()) / 1000 / over.Seconds() }
			b.Table.Add(report.Cells("bus", bus.Name, "idle workers", workers, "web ms/s", perSecond(c.CPU[stack.Web]),
				"worker ms/s", perSecond(c.CPU[stack.Worker]), "redis ms/s", perSecond(c.Redis.CPU),
				"commands/s", float64(c.Redis.Commands)/over.Seconds(), "scripts/s", float64(c.Redis.Scripts)/over.Seconds()))
		}
	}
	return nil
}
