package main

import (
	"context"
	"fmt"
	"time"

	"routemaster/client"
	"routemaster/tools/bench/load"
	"routemaster/tools/bench/report"
	"routemaster/tools/bench/stack"
)

// completeTimeout is how long the last delivery or job may take to be completed in Redis.
const completeTimeout = 20 * time.Second

// await asks again and again, until the answer is yes or [completeTimeout] is over.
func await(ctx context.Context, ask func() (bool, error)) error {
	for deadline := time.Now().Add(completeTimeout); ; {
		if yes, err := ask(); err != nil || yes || time.Now().After(deadline) {
			return err
		}
		if err := load.Sleep(ctx, stack.PollInterval); err != nil {
			return err
		}
	}
}

// test is a running trial, with a topic and callbacks of its own.
type test struct {
	trial
	run
	publishers load.Publishers
}

// expected is how many events the subscribers are to receive.
func (t *test) expected() int64 { return t.publishers.Sent() * int64(t.subscribers) }

// prepare subscribes and connects. The test must be finished.
func (e *environment) prepare(ctx context.Context, how trial) (*test, error) {
	run := e.runAt(how.distance)
	if err := e.receiver.Begin(ctx, run.prefix); err != nil {
		return nil, err
	}
	for i := range how.subscribers {
		if err := e.subscribe(ctx, i, run, how.max, time.Duration(how.timeout)*time.Millisecond); err != nil {
			return nil, err
		}
	}
	publishers, err := load.Connect(ctx, e.target(e.url, run.topic, how.array), how.publishers)
	return &test{how, run, publishers}, err
}

// refuse publishes the events that the subscribers refuse, and waits until they have refused each.
func (e *environment) refuse(ctx context.Context, t *test) error {
	for i := range t.refused {
		event := client.Event{Topic: t.topic, Type: client.Update, URL: load.RefusedURL(i)}
		if err := e.publisher.Publish(ctx, event); err != nil {
			return err
		}
	}
	var refused int64
	all := int64(t.refused * t.subscribers)
	err := await(ctx, func() (bool, error) {
		tally, err := e.receiver.Tally(ctx)
		refused = tally.Refusals
		return refused >= all, err
	})
	if err == nil && refused < all {
		err = fmt.Errorf("of %d batches %d were refused within %v", all, refused, completeTimeout)
	}
	return err
}

// finish disconnects. It removes the topic from a remote bus.
func (e *environment) finish(ctx context.Context, t *test) {
	t.publishers.Close()
	if e.remote {
		_ = e.publisher.DeleteTopic(context.WithoutCancel(ctx), t.topic) // it may not exist
	}
}

// fate counts the lost, duplicated and disordered events of a test, and the keys left over, and
// returns them as cells.
func (e *environment) fate(ctx context.Context, t *test) (report.Row, error) {
	tally, err := e.receiver.Tally(ctx)
	if err != nil {
		return nil, err
	}
	lost := t.expected() - tally.Distinct
	e.report.Add(report.Lost, lost)
	e.report.Add(report.Duplicates, tally.Duplicates)
	e.report.Add(report.OutOfOrder, tally.OutOfOrder)
	e.report.Add(report.Unreadable, tally.Unreadable)
	row := report.Cells("lost", lost, "dup.", tally.Duplicates, "disord.", tally.OutOfOrder)
	if err := e.receiver.Relent(ctx); err != nil { // the refused batches go now
		return nil, err
	}
	if e.remote {
		return row, nil
	}
	var left int64
	err = await(ctx, func() (_ bool, err error) {
		left, err = e.stack.LeftOver(ctx)
		return left == 0, err
	})
	e.report.Add(report.LeftOver, left)
	return append(row, report.Cell{Name: "left", Value: left}), err
}
