package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"routemaster/client"
	"routemaster/internal/overview/samples"
	"routemaster/tools/bench/load"
	"routemaster/tools/bench/report"
	"routemaster/tools/bench/stack"
)

// consoleBench measures the cost of the console for a bus: its pages, its samples, and many people
// looking at it. No worker runs.
type consoleBench struct {
	*environment
	// idle is the cost while no console is open, and idleFor the time that it was measured for.
	idle    stack.Cost
	idleFor time.Duration
}

// longer is over how many windows a small cost is measured.
const longer = 5

// topics is how many topics the bus has. It has size.fanOut subscribers.
func (b *consoleBench) topics() int { return b.size.fanOut / 2 }

// console measures the console.
func (e *environment) console(ctx context.Context) error {
	b := &consoleBench{environment: e}
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
	used, err := b.stack.Heap(ctx, stack.Web)
	if err != nil {
		return err
	}
	b.table.Add(report.Cells("heap of web", "with viewers", "MB more", megabytes(used-without)))
	b.report.Set(report.ConsoleViewedHeap, megabytes(used-without))
	b.table.Note("The bus has %d subscribers, for each of which an event waits, %d topics, and a history that was made up. The "+
		"viewers are logged in as different clients; each looks at one of the pages every %v. No worker runs.",
		b.size.fanOut, b.topics(), b.size.refresh)
	return b.publishes(ctx, all)
}

func nameOf(subscriber int) string  { return fmt.Sprintf("service-%d", subscriber) }
func tokenOf(subscriber int) string { return nameOf(subscriber) + "--token" }

// fill has the bus have subscribers and topics, and an event wait for each subscriber.
func (b *consoleBench) fill(ctx context.Context) error {
	root, err := b.as(stack.RootKey)
	if err != nil {
		return err
	}
	group, subscribing := errgroup.WithContext(ctx)
	group.SetLimit(16)
	for i := range b.size.fanOut {
		group.Go(func() error { return b.letIn(subscribing, root, i) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	publisher, err := b.as(tokenOf(0))
	for i := 0; i < b.topics() && err == nil; i++ {
		err = publisher.Publish(ctx, client.Event{Topic: topicOf(i), Type: client.Noop, URL: "https://bench.example/1"})
	}
	return err
}

// topicOf names a topic without digits.
func topicOf(i int) string {
	name := []byte("topic_aaa")
	for at := len(name) - 1; i > 0; at-- {
		name[at] += byte(i % 26)
		i /= 26
	}
	return string(name)
}

func (b *consoleBench) letIn(ctx context.Context, root *client.Client, i int) error {
	if _, err := root.AddToken(ctx, nameOf(i), tokenOf(i)); err != nil {
		return err
	}
	c, err := b.as(tokenOf(i))
	if err != nil {
		return err
	}
	return c.Subscribe(ctx, client.Subscription{
		Topics: []string{topicOf(i % b.topics())}, Callback: "https://" + b.stack.Receiver + "/console", UUID: "bench",
	})
}

// unused measures the memory that the console takes while it is not used, and returns the memory
// that web takes without it.
func (b *consoleBench) unused(ctx context.Context) (heap int64, err error) {
	var heaps []int64
	for _, console := range []string{"off", "on"} {
		if err := b.stack.RestartWeb(ctx, "ROUTEMASTER_CONSOLE="+console); err != nil {
			return 0, err
		}
		heap, err := b.stack.Heap(ctx, stack.Web)
		if err != nil {
			return 0, err
		}
		heaps = append(heaps, heap)
	}
	more := megabytes(heaps[1] - heaps[0])
	b.table.Add(report.Cells("heap of web", "unused", "MB more", more))
	b.report.Set(report.ConsoleUnusedHeap, more)
	return heaps[0], nil
}

// pages measures how long a page takes, asked for again and again by one client.
func (b *consoleBench) pages(ctx context.Context, all []*viewer) error {
	for _, path := range paths(0) {
		if err := all[0].look(ctx, path); err != nil { // web reads the history
			return err
		}
		finishProfile := b.stack.Profile(ctx, b.table.Scenario, "page "+strings.ReplaceAll(path, "/", " "), b.size.Measured)
		got, spent, err := b.stack.Run(ctx, load.Load{Window: b.size.Window, Senders: []load.Sender{
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
		b.table.Add(report.Cells("page", "/"+path, "pages/s", got.PerSecond(), "p50 ms", p50, "p99 ms", p99,
			"compressed bytes", size, "of a refresh", all[0].bytes), spent.CPUCells(stack.Web, stack.Redis))
		b.report.SetMax(report.ConsolePageP50, p50)
		b.report.SetMax(report.ConsolePageP99, p99)
	}
	return nil
}

// samples measures the cost of a sample: by a web whose console has not been opened yet, and by one
// with a viewer that sends no further requests.
func (b *consoleBench) samples(ctx context.Context, all []*viewer) error {
	if err := b.stack.RestartWeb(ctx); err != nil {
		return err
	}
	interval := samples.Interval(b.size.fanOut + b.topics())
	window := max((longer * b.size.Measured).Truncate(interval), b.size.Measured)
	count := max(1, float64(window/interval))
	wait := func() error { return load.Sleep(ctx, window) }
	idle, err := b.stack.Spend(ctx, wait)
	if err != nil {
		return err
	}
	b.idle, b.idleFor = idle, window
	if err := all[0].look(ctx, "help"); err != nil {
		return err
	}
	if err := b.stack.WatchScripts(ctx); err != nil {
		return err
	}
	finishProfile := b.stack.Profile(ctx, b.table.Scenario, "samples", window)
	watched, err := b.stack.Spend(ctx, wait)
	if err := errors.Join(err, finishProfile()); err != nil {
		return err
	}
	longest, slow, err := b.stack.LongestCommand(ctx)
	if err != nil {
		return err
	}
	redis := (watched.CPU[stack.Redis] - idle.CPU[stack.Redis]).Seconds() * 1000 / count
	web := any(nil)
	if cpu, known := watched.CPU[stack.Web]; known {
		ms := (cpu - idle.CPU[stack.Web]).Seconds() * 1000 / count
		b.report.Set(report.ConsoleSampleWeb, ms)
		web = ms
	}
	b.table.Add(report.Cells("samples", count, "web ms", web, "redis ms", redis,
		"longest command of it ms", longest.Seconds()*1000, "of 1 ms or more", slow))
	b.report.Set(report.ConsoleSampleRedis, redis)
	b.report.Set(report.ConsoleCommand, longest.Seconds()*1000)
	return nil
}

// viewers measures the cost of many people that only look, beyond the cost of an unused console.
func (b *consoleBench) viewers(ctx context.Context, all []*viewer) error {
	if err := all[0].look(ctx, ""); err != nil {
		return err
	}
	window := b.size.Window
	window.Measured *= longer
	finishProfile := b.stack.Profile(ctx, b.table.Scenario, "viewers", window.Measured)
	got, spent, err := b.stack.Run(ctx, b.viewing(ctx, all, window))
	if err := errors.Join(err, finishProfile()); err != nil {
		return err
	}
	percent := func(spent, idle time.Duration) float64 {
		return 100 * (spent.Seconds()/got.Took.Seconds() - idle.Seconds()/b.idleFor.Seconds())
	}
	redis := percent(spent.CPU[stack.Redis], b.idle.CPU[stack.Redis])
	web := any(nil)
	if cpu, known := spent.CPU[stack.Web]; known {
		more := percent(cpu, b.idle.CPU[stack.Web])
		b.report.Set(report.ConsoleViewersWeb, more)
		web = more
	}
	b.table.Add(report.Cells("viewers", len(all), "pages/s", got.PerSecond(), "p50 ms", got.Latency.Percentile(50),
		"p99 ms", got.Latency.Percentile(99), "web % of a core", web, "redis %", redis))
	b.report.Set(report.ConsoleViewersRedis, redis)
	return nil
}

// publishes compares publishes with and without viewers, in turns. A web that is started anew takes
// no more samples for earlier viewers.
func (b *consoleBench) publishes(ctx context.Context, all []*viewer) error {
	var ratios []float64
	for range b.size.pairs {
		alone, err := b.publish(ctx, nil)
		if err != nil {
			return err
		}
		beside, err := b.publish(ctx, all)
		if err != nil {
			return err
		}
		b.table.Add(report.Cells("publishes/s", alone, "beside viewers", beside, "ratio", beside/alone))
		ratios = append(ratios, beside/alone)
	}
	slices.Sort(ratios)
	b.report.Set(report.ConsolePublishes, ratios[len(ratios)/2])
	return nil
}

// publish measures publishes per second in a closed loop beside viewers.
func (b *consoleBench) publish(ctx context.Context, beside []*viewer) (perSecond float64, err error) {
	if err := b.stack.RestartWeb(ctx); err != nil {
		return 0, err
	}
	publishers, err := load.Connect(ctx, b.target(b.url, b.nextRun().topic, 0), usualPublishers)
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
			_, err := b.viewing(ctx, beside, b.size.Window).Run(ctx)
			return err
		})
	}
	group.Go(func() error {
		got, err := load.Load{Senders: publishers.Senders(), Window: b.size.Window}.Run(ctx)
		perSecond = got.PerSecond()
		return err
	})
	return perSecond, group.Wait()
}
