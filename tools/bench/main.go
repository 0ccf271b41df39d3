// Bench measures a bus from outside: through its HTTP API, with a receiver of its own.
//
// A figure alone says more about the host than about the bus. So most figures stand beside a
// baseline that is measured in the same run: the rate of the same publishers with a handler that
// does nothing, of an RPUSH of the same bytes into Redis, of the same POSTs sent to the receiver
// without a bus in between. The ratios can be compared across hosts.
//
// The processes are the same as of a real bus, on loopback (package stack):
//
//	publishers (this process) --> web --> redis-server <-- worker --> receiver
//	                        \--> no-op server
//
// On a cluster there are two of these, and one of them has a worker at a time.
//
// Publishers are raw connections that send the same bytes again and again, with a new number in
// each event's URL, so that the load costs little beside the bus (package load). By that number the
// receiver follows every event of every publisher to every subscriber: how many events are lost,
// duplicated or out of order is part of each result.
//
// In a closed loop every publisher sends its next request when the last one is answered. In an open
// loop requests are due at fixed times, and latency counts from when a request was due, not from
// when it could be sent: so a stall of the bus counts for all requests that were due meanwhile
// (coordinated omission).
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"

	"routemaster/tools/bench/stack"
)

// The exit statuses, as of rtm.
const (
	exitFailed = 1
	exitUsage  = 2
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(runLine(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// runLine runs a command line and returns its exit status.
func runLine(ctx context.Context, args []string, stdout, stderr io.Writer) (status int) {
	if program, its, ok := stack.IsProgram(args); ok {
		return exitStatus(stack.RunProgram(ctx, program, its...), stderr)
	}
	o := options{out: stdout, progress: stderr}
	asJSON := false
	if err := parse(args, &o, &asJSON, stderr); errors.Is(err, flag.ErrHelp) {
		return 0
	} else if err != nil { // it is printed, with the usage
		return exitUsage
	}
	if asJSON {
		o.out = io.Discard
	}
	found, err := runScenarios(ctx, o)
	if asJSON && found != nil {
		encoder := json.NewEncoder(stdout)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", "  ")
		err = errors.Join(err, encoder.Encode(found))
	}
	return exitStatus(err, stderr)
}

func exitStatus(err error, stderr io.Writer) (status int) {
	if err == nil {
		return 0
	}
	fmt.Fprintln(stderr, "bench:", err)
	if _, wrong := errors.AsType[usageError](err); wrong {
		return exitUsage
	}
	return exitFailed
}

const usage = `Usage: bench [flags]

Start a Redis, web, worker and a receiver on loopback, and measure them. The programs web and worker are those
beside this one; redis-server must be installed. It keeps nothing on disk (--save "" --appendonly no).

With --cluster a bus on a Redis Cluster of so many masters, without replicas, is measured beside one on one Redis, each row
on both in turn.

With --bus a running bus is measured instead: publishing, and with --listen and --public-url also deliveries. The
receiver signs its own certificate: either the bus has ROUTEMASTER_SSL_VERIFY=NO, or a proxy with a certificate is in
front of the receiver, at the public URL. Its topics and its subscription are removed in the end.

The exit status is 1 if events were lost. A goal that is not met is not a failure.

  bench --scenario ingest,bulk
  bench --env ROUTEMASTER_WORKER_THREADS=64 --json
  bench --cluster 3
  bench --bus https://bus.example --token bench--1 --listen :8443 --public-url https://me.example:8443

`

// parse reads the flags. It prints their faults.
func parse(args []string, o *options, asJSON *bool, stderr io.Writer) error {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() {
		fmt.Fprint(stderr, usage)
		flags.PrintDefaults()
	}
	flags.Func("scenario", "`NAMES` of what to measure, of "+strings.Join(scenarioNames(), ", ")+" (default all)", func(s string) error {
		o.scenarios = append(o.scenarios, strings.Split(s, ",")...)
		return nil
	})
	flags.Func("publishers", "publishers of the rows of ingest (default 1,4,16,64)", numbers(&o.publishers))
	flags.Func("subscribers", "subscribers of the rows of ingest (default 0,1,10,100)", numbers(&o.subscribers))
	flags.DurationVar(&o.duration, "duration", defaultDuration, "how long each thing is measured, after a warm-up of a quarter of it")
	flags.BoolVar(&o.quick, "quick", false, "only show that everything works; the figures mean nothing")
	flags.BoolVar(&o.full, "full", false, "measure a backlog of 5 million events, and a million jobs that are not due and labels that wait, too")
	flags.Func("env", "a setting `NAME=value` for web and worker; may be repeated", func(s string) error {
		o.env = append(o.env, s)
		return nil
	})
	flags.StringVar(&o.profile, "profile", "", "`directory` for CPU and heap profiles of web and worker, of each row; for go tool pprof")
	flags.BoolVar(asJSON, "json", false, "print JSON")
	flags.IntVar(&o.masters, "cluster", 0, "measure a bus on a Redis Cluster of `MASTERS` beside one on one Redis, and nothing else")
	flags.StringVar(&o.remote.url, "bus", "", "`URL` of a running bus to measure")
	flags.StringVar(&o.remote.token, "token", "", "token of a client of that bus that is used for nothing else: its subscription is replaced")
	flags.BoolVar(&o.remote.insecure, "insecure", false, "do not verify that bus's certificate")
	flags.StringVar(&o.remote.listen, "listen", "", "`address` where the receiver of that bus's deliveries listens")
	flags.StringVar(&o.remote.publicURL, "public-url", "", "https `URL` at which that bus reaches the receiver")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		err := fmt.Errorf("bench takes no arguments, only flags; got %q", flags.Args())
		fmt.Fprintln(stderr, "bench:", err)
		return err
	}
	return nil
}

// numbers reads a list of integers, separated by commas, and appends them to list.
func numbers(list *[]int) func(string) error {
	return func(s string) error {
		for text := range strings.SplitSeq(s, ",") {
			n, err := strconv.Atoi(text)
			if err != nil {
				return errors.New("must be integers with commas between")
			}
			*list = append(*list, n)
		}
		return nil
	}
}
