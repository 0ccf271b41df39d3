// Peers measures the bus beside its alternatives: nsqd, NATS with JetStream, and asynq, each with a
// small adapter that makes a bus of it. All are started on loopback, by turns, with the publishers,
// the receiver and the TLS of the benchmark:
//
//	publishers (this process) --> web --> redis-server <-- worker --> receiver
//	publishers (this process) --> handler --> broker <-- pusher --> receiver
//
// It is a program of its own, so that the benchmark is built without them. `make bench PEERS=1`
// runs it.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"routemaster/tools/bench/report"
	"routemaster/tools/bench/stack"
)

// options are how to measure.
type options struct {
	turns int
	// events is how many a queue has, and how many go from end to end.
	events   int64
	duration time.Duration
	progress io.Writer
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if program, its, ok := stack.IsProgram(args); ok {
		return runProgram(ctx, program, its...)
	}
	o := options{progress: os.Stderr}
	flags := flag.NewFlagSet("peers", flag.ExitOnError)
	flags.IntVar(&o.turns, "turns", 3, "how often each is measured; medians are printed")
	flags.Int64Var(&o.events, "events", 20000, "events in a queue, and from end to end")
	flags.DurationVar(&o.duration, "duration", time.Second, "how long publishes are measured")
	quick := flags.Bool("quick", false, "only show that everything works; the figures mean nothing")
	_ = flags.Parse(args) // it exits
	if *quick {
		o.turns, o.events, o.duration = 1, 1000, 50*time.Millisecond
	}
	fmt.Printf("%s.\nPublishers, programs and receiver share this host, on loopback.\n\n", report.New().Host)
	found, err := measureAll(ctx, o)
	if err != nil {
		return err
	}
	return found.write(os.Stdout)
}

// runProgram runs one of the programs that are measured, until it is killed.
func runProgram(ctx context.Context, program string, args ...string) error {
	switch program {
	case stack.Receiver, stack.Noop:
		return stack.RunProgram(ctx, program, args...)
	}
	signal.Reset() // it has nothing to keep
	return runPeer(program, args...)
}

// measureAll measures everything in turns, the systems one right after the other. Each turn begins
// with another system, so that other work of the host does not always affect the same one.
func measureAll(ctx context.Context, o options) (results, error) {
	found := results{}
	for turn := range o.turns {
		for _, m := range measures {
			for i := range systems {
				s := systems[(i+turn)%len(systems)]
				f, err := once(ctx, m, s, o)
				if ctx.Err() != nil {
					return nil, ctx.Err()
				}
				if err != nil {
					return nil, fmt.Errorf("%s, %s: %w", m.name, s.name, err)
				}
				fmt.Fprintf(o.progress, "%d/%d %s, %s: %v\n", turn+1, o.turns, m.name, s.name, f)
				found.add(m.name, s.name, f)
			}
		}
	}
	return found, nil
}
