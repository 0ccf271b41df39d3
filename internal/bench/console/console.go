// Package console measures what the console costs a bus: its pages, its samples, and many people
// who look at it.
package console

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"routemaster/client"
	"routemaster/internal/bench/load"
	"routemaster/internal/bench/report"
	"routemaster/internal/bench/stack"
	"routemaster/internal/overview/samples"
)

// Bench measures the console of a bus.
type Bench struct {
	// Stack runs the bus; no worker runs.
	Stack *stack.Stack
	// As makes a client of the bus with a token, or with the root key.
	As func(token string) (*client.Client, error)
	// Connect connects publishers to a topic that nobody is subscribed to.
	Connect func(ctx context.Context) (load.Publishers, error)
	// Report and Table get the results.
	Report *report.Report
	Table  *report.Table
	// Window is how long a page is asked for, or events are published.
	load.Window
	// The bus has so many Subscribers and Topics. Viewers are subscribers who look.
	Subscribers, Topics, Viewers int
	// Refresh is how often each of them asks for a page again.
	Refresh time.Duration
	// Pairs is how often publishes are measured without and with viewers.
	Pairs int

	// idle is what was spent while nobody looked, and idleFor for how long.
	idle    stack.Cost
	idleFor time.Duration
}

// longer is how many windows are measured at once what costs little.
const longer = 5

// Run measures all.
func (b *Bench) Run(ctx context.Context) error {
	if err := b.fill(ctx); err != nil {
		return err
	}
	if err := b.makeHistory(ctx); err != nil {
		return err
	}
	without, err := b.unused(ctx)
	if err != nil {
		return err
	}
	all, err := b.logInAll(ctx)
	if err != nil {
		return err
	}
	for _, measure := range []func(context.Context, []*viewer) error{b.pages, b.samples, b.viewers} {
		if err := measure(ctx, all); err != nil {
			return err
		}
	}
	used, err := b.Stack.Heap(ctx, stack.Web)
	if err != nil {
		return err
	}
	b.Table.Add(report.Cells("heap of web", "with viewers", "MB more", megabytes(used-without)))
	b.Report.Set(report.ConsoleViewedHeap, megabytes(used-without))
	b.Table.Note("The bus has %d subscribers, for each of which an event waits, %d topics, and a history that was made up. The "+
		"viewers are logged in as different clients; each looks at one of the pages every %v. No worker runs.",
		b.Subscribers, b.Topics, b.Refresh)
	return b.publishes(ctx, all)
}

func megabytes(bytes int64) float64 { return float64(bytes) / 1e6 }

func nameOf(subscriber int) string  { return fmt.Sprintf("service-%d", subscriber) }
func tokenOf(subscriber int) string { return nameOf(subscriber) + "--token" }

// fill has the bus have subscribers and topics, and an event wait for each subscriber.
func (b *Bench) fill(ctx context.Context) error {
	root, err := b.As(stack.RootKey)
	if err != nil {
		return err
	}
	group, subscribing := errgroup.WithContext(ctx)
	group.SetLimit(16)
	for i := range b.Subscribers {
		group.Go(func() error { return b.subscribe(subscribing, root, i) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	publisher, err := b.As(tokenOf(0))
	for i := 0; i < b.Topics && err == nil; i++ {
		err = publisher.Publish(ctx, client.Event{Topic: topicOf(i), Type: client.Noop, URL: "https://bench.example/1"})
	}
	return err
}

// topicOf names a topic, whose name has no digits.
func topicOf(i int) string {
	name := []byte("topic_aaa")
	for at := len(name) - 1; i > 0; at-- {
		name[at] += byte(i % 26)
		i /= 26
	}
	return string(name)
}

func (b *Bench) subscribe(ctx context.Context, root *client.Client, i int) error {
	if _, err := root.AddToken(ctx, nameOf(i), tokenOf(i)); err != nil {
		return err
	}
	c, err := b.As(tokenOf(i))
	if err != nil {
		return err
	}
	return c.Subscribe(ctx, client.Subscription{
		Topics: []string{topicOf(i % b.Topics)}, Callback: "https://" + b.Stack.Receiver + "/console", UUID: "bench",
	})
}

// unused measures the memory that the console takes while nobody uses it, and returns what web
// takes without it.
func (b *Bench) unused(ctx context.Context) (heap int64, err error) {
	var heaps []int64
	for _, console := range []string{"off", "on"} {
		if err := b.Stack.RestartWeb(ctx, "ROUTEMASTER_CONSOLE="+console); err != nil {
			return 0, err
		}
		heap, err := b.Stack.Heap(ctx, stack.Web)
		if err != nil {
			return 0, err
		}
		heaps = append(heaps, heap)
	}
	more := megabytes(heaps[1] - heaps[0])
	b.Table.Add(report.Cells("heap of web", "unused", "MB more", more))
	b.Report.Set(report.ConsoleUnusedHeap, more)
	return heaps[0], nil
}

// pages measures how long a page takes, asked for again and again by one client.
func (b *Bench) pages(ctx context.Context, all []*viewer) error {
	for _, path := range paths(0) {
		if err := all[0].look(ctx, path); err != nil { // web reads the history
			return err
		}
		finishProfile := b.Stack.Profile(ctx, b.Table.Scenario, "page "+strings.ReplaceAll(path, "/", " "), b.Measured)
		got, spent, err := b.Stack.Run(ctx, load.Load{Window: b.Window, Senders: []load.Sender{
			func(time.Time) error { return all[0].look(ctx, path) },
		}})
		if err := errors.Join(err, finishProfile()); err != nil {
			return err
		}
		size := all[0].bytes
		if err := all[0].refresh(ctx, path); err != nil {
			return err
		}
		p50, p99 := got.Latency.Percentile(50), got.Latency.Percentile(99)
		b.Table.Add(report.Cells("page", "/"+path, "pages/s", got.PerSecond(), "p50 ms", p50, "p99 ms", p99,
			"compressed bytes", size, "of a refresh", all[0].bytes), spent.CPUCells(stack.Web, stack.Redis))
		b.Report.SetMax(report.ConsolePageP50, p50)
		b.Report.SetMax(report.ConsolePageP99, p99)
	}
	return nil
}

// samples measures what a sample costs, by a web that nobody has looked at yet, and one at which
// somebody looks who asks for nothing more.
func (b *Bench) samples(ctx context.Context, all []*viewer) error {
	if err := b.Stack.RestartWeb(ctx); err != nil {
		return err
	}
	interval := samples.Interval(b.Subscribers + b.Topics)
	window := max((longer * b.Measured).Truncate(interval), b.Measured)
	count := max(1, float64(window/interval))
	wait := func() error { return load.Sleep(ctx, window) }
	idle, err := b.Stack.Spend(ctx, wait)
	if err != nil {
		return err
	}
	b.idle, b.idleFor = idle, window
	if err := all[0].look(ctx, "help"); err != nil {
		return err
	}
	if err := b.Stack.WatchScripts(ctx); err != nil {
		return err
	}
	finishProfile := b.Stack.Profile(ctx, b.Table.Scenario, "samples", window)
	watched, err := b.Stack.Spend(ctx, wait)
	if err := errors.Join(err, finishProfile()); err != nil {
		return err
	}
	longest, slow, err := b.Stack.LongestCommand(ctx)
	if err != nil {
		return err
	}
	redis := (watched.Redis.CPU - idle.Redis.CPU).Seconds() * 1000 / count
	web := any(nil)
	if cpu, known := watched.CPU[stack.Web]; known {
		ms := (cpu - idle.CPU[stack.Web]).Seconds() * 1000 / count
		b.Report.Set(report.ConsoleSampleWeb, ms)
		web = ms
	}
	b.Table.Add(report.Cells("samples", count, "web ms", web, "redis ms", redis,
		"longest command of it ms", longest.Seconds()*1000, "of 1 ms or more", slow))
	b.Report.Set(report.ConsoleSampleRedis, redis)
	b.Report.Set(report.ConsoleCommand, longest.Seconds()*1000)
	return nil
}

// viewers measures what many people cost who only look, beyond what is spent while nobody does.
func (b *Bench) viewers(ctx context.Context, all []*viewer) error {
	if err := all[0].look(ctx, ""); err != nil {
		return err
	}
	window := b.Window
	window.Measured *= longer
	finishProfile := b.Stack.Profile(ctx, b.Table.Scenario, "viewers", window.Measured)
	got, spent, err := b.Stack.Run(ctx, b.viewing(ctx, all, window))
	if err := errors.Join(err, finishProfile()); err != nil {
		return err
	}
	percent := func(spent, idle time.Duration) float64 {
		return 100 * (spent.Seconds()/got.Took.Seconds() - idle.Seconds()/b.idleFor.Seconds())
	}
	redis := percent(spent.Redis.CPU, b.idle.Redis.CPU)
	web := any(nil)
	if cpu, known := spent.CPU[stack.Web]; known {
		more := percent(cpu, b.idle.CPU[stack.Web])
		b.Report.Set(report.ConsoleViewersWeb, more)
		web = more
	}
	b.Table.Add(report.Cells("viewers", len(all), "pages/s", got.PerSecond(), "p50 ms", got.Latency.Percentile(50),
		"p99 ms", got.Latency.Percentile(99), "web % of a core", web, "redis %", redis))
	b.Report.Set(report.ConsoleViewersRedis, redis)
	return nil
}

// publishes compares publishes with and without viewers, in turns. A web that is started anew takes
// no more samples for who looked before.
func (b *Bench) publishes(ctx context.Context, all []*viewer) error {
	var ratios []float64
	for range b.Pairs {
		alone, err := b.publish(ctx, nil)
		if err != nil {
			return err
		}
		beside, err := b.publish(ctx, all)
		if err != nil {
			return err
		}
		b.Table.Add(report.Cells("publishes/s", alone, "beside viewers", beside, "ratio", beside/alone))
		ratios = append(ratios, beside/alone)
	}
	slices.Sort(ratios)
	b.Report.Set(report.ConsolePublishes, ratios[len(ratios)/2])
	return nil
}

// publish measures publishes per second in a closed loop beside viewers.
func (b *Bench) publish(ctx context.Context, beside []*viewer) (perSecond float64, err error) {
	if err := b.Stack.RestartWeb(ctx); err != nil {
		return 0, err
	}
	publishers, err := b.Connect(ctx)
	if err != nil {
		return 0, err
	}
	defer publishers.Close()
	group, ctx := errgroup.WithContext(ctx)
	if len(beside) > 0 {
		if err := beside[0].look(ctx, ""); err != nil {
			return 0, err
		}
		group.Go(func() error {
			_, err := b.viewing(ctx, beside, b.Window).Run(ctx)
			return err
		})
	}
	group.Go(func() error {
		got, err := load.Load{Senders: publishers.Senders(), Window: b.Window}.Run(ctx)
		perSecond = got.PerSecond()
		return err
	})
	return perSecond, group.Wait()
}
