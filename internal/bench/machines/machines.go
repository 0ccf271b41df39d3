// Package machines measures how fast a bus makes labels of state machines, moves them and calls the
// webhooks of their actions, what labels cost that only wait, and a walk over many of them.
package machines

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
	"routemaster/internal/bench/load"
	"routemaster/internal/bench/report"
	"routemaster/internal/bench/stack"
)

// Bench measures the state machines of a bus.
type Bench struct {
	// Stack runs the bus; no worker runs yet.
	Stack *stack.Stack
	// Client is a client of the bus, with its token; Root may replace definitions.
	Client, Root *client.Client
	Token        string
	// Report and Table get the results.
	Report *report.Report
	Table  *report.Table
	// Window is how long each thing is measured, Baseline the same for what it is compared to.
	load.Window
	Baseline load.Window
	// Threads are those of a worker, Acted how many webhooks are called with each. Waiting labels wait
	// in one state.
	Threads []int
	Acted   int64
	Waiting int64
	// NoOp measures the requests per second of so many clients to a server that does nothing.
	NoOp func(ctx context.Context, clients int) (float64, error)
}

const (
	// clients is how many requests are under way at once.
	clients = 16
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

// Run measures all.
func (b *Bench) Run(ctx context.Context) error {
	if err := b.Stack.StartService(ctx, b.Token); err != nil {
		return err
	}
	if err := b.define(ctx, "1d"); err != nil {
		return err
	}
	b.Table.Note("no-op/s is requests of as many clients to a handler that does nothing. POST/s is as many POSTs straight to " +
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
func (b *Bench) define(ctx context.Context, interval string) error {
	_, err := machines.Apply(ctx, b.Root, fmt.Appendf(nil, definitions, b.Stack.Service, interval))
	return err
}

// machine returns a machine whose labels are changed without waiting for them to come to rest.
func (b *Bench) machine(name string) *machines.Machine {
	return machines.Of(b.Client, name).Waiting(0)
}

// label names the n-th label: in the order of the names.
func label(n int64) string { return fmt.Sprintf("label-%08d", n) }

// metadata is that of a new label.
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
	for range clients {
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

// create makes so many labels.
func create(ctx context.Context, m *machines.Machine, count int64) error {
	return each(ctx, count, func(ctx context.Context, n int64) error {
		_, err := m.Create(ctx, label(n), metadata())
		return err
	})
}

// change measures how fast labels are made, and moved by patches, in a closed loop.
func (b *Bench) change(ctx context.Context) error {
	noop, err := b.NoOp(ctx, clients)
	if err != nil {
		return err
	}
	m := machines.Of(b.Client, moves)
	var made, patched atomic.Int64
	err = b.closedLoop(ctx, "made", noop, func(time.Time) error {
		_, err := m.Create(ctx, label(made.Add(1)-1), metadata())
		return err
	})
	if err != nil {
		return err
	}
	if err := b.Stack.StartWorker(ctx); err != nil {
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
	return b.Stack.Stop(stack.Worker)
}

// closedLoop measures requests of several clients, each of which waits for its answer.
func (b *Bench) closedLoop(ctx context.Context, what string, noop float64, send load.Sender) error {
	got, spent, err := b.Stack.Run(ctx, load.Load{Window: b.Window, Senders: slices.Repeat([]load.Sender{send}, clients)})
	if err != nil {
		return err
	}
	b.Table.Add(report.Cells("labels", what, "clients", clients, "labels/s", got.PerSecond(), "no-op/s", noop,
		"÷ no-op", got.PerSecond()/noop, "p50 ms", got.Latency.Percentile(50), "p99 ms", got.Latency.Percentile(99)),
		costCells(spent))
	return nil
}

// costCells are the costs of a label.
func costCells(spent stack.Cost) report.Row {
	count := float64(max(1, spent.Events))
	return append(spent.CPUCells(stack.Web, stack.Redis, stack.Worker, stack.Service), report.Cells(
		"scripts/label", float64(spent.Redis.Scripts)/count, "commands/label", float64(spent.Redis.Commands)/count,
		"script µs/label", float64(spent.Redis.ScriptTime.Nanoseconds())/1000/count)...)
}
