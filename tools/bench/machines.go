package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"routemaster/client"
	"routemaster/client/machines"
	"routemaster/tools/bench/load"
	"routemaster/tools/bench/report"
	"routemaster/tools/bench/stack"
)

// machineBench measures how fast a bus makes labels of state machines, moves them and calls the
// webhooks of their actions, the cost of labels that only wait, and a walk over many of them.
type machineBench struct {
	*environment
	root *client.Client // which may replace definitions
}

const (
	// metadataBytes is the size of a label's metadata as JSON.
	metadataBytes = 100
	// latencyRate is how many labels a second are patched while the bus has nothing else to do.
	latencyRate = 50
)

// The machines. A label of each is moved by a patch of `event` as often as one comes, to where it
// was: of moves at once, of acts once its webhook has been called.
const (
	moves = "moves"
	acts  = "acts"
	walks = "walks"
)

// definitions are all machines, by the address of the service that answers the webhooks, and the
// interval at which the labels of walks are looked at.
const definitions = `state_machines:
  moves:
    states:
      - gate: waiting
        exit_condition: metadata.event is defined
        triggers: [metadata: event]
        next: waiting
  acts:
    states:
      - gate: waiting
        exit_condition: metadata.event is defined
        triggers: [metadata: event]
        next: acting
      - action: acting
        webhook: http://%[1]s` + load.JobsPath + acts + `/<label>
        next: waiting
  walks:
    states:
      - gate: waiting
        exit_condition: metadata.event is defined
        triggers: [interval: %[2]s]
        next: acting
      - action: acting
        webhook: http://%[1]s` + load.JobsPath + walks + `/<label>
        next: done
      - gate: done
        exit_condition: false
`

// machines measures the labels of state machines.
func (e *environment) machines(ctx context.Context) error {
	root, err := e.as(stack.RootKey)
	if err != nil {
		return err
	}
	b := &machineBench{e, root}
	if err := e.stack.StartService(ctx, e.token); err != nil {
		return err
	}
	if err := b.define(ctx, "1d"); err != nil {
		return err
	}
	e.table.Note("no-op/s is requests of as many clients to a handler that does nothing. POST/s is as many POSTs straight to " +
		"the service, on as many connections as a worker has threads for one state: half of all. Commands are all that Redis " +
		"ran, in scripts and by clients. web µs, redis µs and so on are CPU time per label.")
	for _, measure := range []func(context.Context) error{b.change, b.act, b.latency, b.wait} {
		if err := measure(ctx); err != nil {
			return err
		}
	}
	return nil
}

// define replaces the definitions.
func (b *machineBench) define(ctx context.Context, interval string) error {
	_, err := machines.Apply(ctx, b.root, fmt.Appendf(nil, definitions, b.stack.Service, interval))
	return err
}

// machine returns a machine whose labels are changed without waiting for them to come to rest.
func (b *machineBench) machine(name string) *machines.Machine {
	return machines.Of(b.publisher, name).Waiting(0)
}

// label names the n-th label: in the order of the names.
func label(n int64) string { return fmt.Sprintf("label-%08d", n) }

// metadata is the metadata of a new label.
func metadata() map[string]any {
	const empty = len(`{"note":""}`)
	return map[string]any{"note": strings.Repeat("x", metadataBytes-empty)}
}

// event is the n-th patch, by which the service follows it to the webhook.
func event(n int64, due time.Time) map[string]any {
	return map[string]any{"event": json.RawMessage(load.JobData(n, due))}
}

// each calls a function with the numbers below a count, several at once.
func each(ctx context.Context, count int64, do func(ctx context.Context, n int64) error) error {
	var next atomic.Int64
	group, ctx := errgroup.WithContext(ctx)
	for range usualPublishers {
		group.Go(func() error {
			for n := next.Add(1) - 1; n < count; n = next.Add(1) - 1 {
				if err := do(ctx, n); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return group.Wait()
}

// create makes count labels.
func create(ctx context.Context, m *machines.Machine, count int64) error {
	return each(ctx, count, func(ctx context.Context, n int64) error {
		_, err := m.Create(ctx, label(n), metadata())
		return err
	})
}

// change measures how fast labels are made, and moved by patches, in a closed loop.
func (b *machineBench) change(ctx context.Context) error {
	noop, _, err := b.noop(ctx, usualPublishers, 0)
	if err != nil {
		return err
	}
	m := machines.Of(b.publisher, moves)
	var made, patched atomic.Int64
	err = b.closedLoop(ctx, "made", noop, func(time.Time) error {
		_, err := m.Create(ctx, label(made.Add(1)-1), metadata())
		return err
	})
	if err != nil {
		return err
	}
	if err := b.stack.StartWorker(ctx); err != nil {
		return err
	}
	err = b.closedLoop(ctx, "patched, until moved", noop, func(due time.Time) error {
		n := patched.Add(1) - 1
		_, err := m.Merge(ctx, label(n%made.Load()), event(n, due))
		return err
	})
	if err != nil {
		return err
	}
	return b.stack.Stop(stack.Worker)
}

// closedLoop measures requests of several clients, each of which waits for its answer.
func (b *machineBench) closedLoop(ctx context.Context, what string, noop float64, send load.Sender) error {
	got, spent, err := b.stack.Run(ctx, load.Load{Window: b.size.Window, Senders: slices.Repeat([]load.Sender{send}, usualPublishers)})
	if err != nil {
		return err
	}
	b.table.Add(report.Cells("labels", what, "clients", usualPublishers, "labels/s", got.PerSecond(), "no-op/s", noop,
		"÷ no-op", got.PerSecond()/noop, "p50 ms", got.Latency.Percentile(50), "p99 ms", got.Latency.Percentile(99)),
		costCells(spent))
	return nil
}

// costCells are the costs of a label.
func costCells(spent stack.Cost) report.Row {
	return append(spent.CPUCells(stack.Web, stack.Redis, stack.Worker, stack.Service), spent.CommandCells("label")...)
}
