package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"time"

	"routemaster/internal/bench/report"
	"routemaster/internal/bench/stack"
)

// Options are what to measure, and how.
type Options struct {
	// Scenarios are names of [Scenarios]; all if empty.
	Scenarios []string
	// Duration is how long each thing is measured, after a warm-up of a quarter of it.
	Duration time.Duration
	// Publishers and Subscribers, if given, replace those of the rows of the scenario ingest.
	Publishers, Subscribers []int
	// Quick measures next to nothing, only to show that everything works. Full adds a backlog of 5
	// million events, and has a million jobs that are not due, and labels that wait.
	Quick, Full bool
	// Launch makes the commands of the programs. Their environment is PATH and what it gives them.
	Launch stack.Launcher
	// Env is more settings for web and worker, like NAME=value.
	Env []string
	// Profile is a directory for CPU and heap profiles of web and worker, one of each for every
	// row; empty for none.
	Profile string
	// Masters, if not 0, is how many a Redis Cluster has on which a bus is measured beside one Redis:
	// from 1 to [stack.Partitions]. Then no other scenario runs unless it is named.
	Masters int
	// Remote, if set, is the bus to measure.
	Remote *Remote
	// Out, if set, gets each table once it is complete; Progress gets what is being done.
	Out, Progress io.Writer
}

// Remote is a bus that runs already. Only a receiver is started. The hosts of the bus are not
// measured, and there are no baselines, which would need them.
type Remote struct {
	URL string
	// Token is that of a client that publishes, and subscribes too. Its subscription is replaced,
	// and removed in the end.
	Token string
	// Insecure accepts any certificate of the bus.
	Insecure bool
	// Listen is the address where the receiver listens, and PublicURL how the bus reaches it.
	// Without them deliveries are not measured.
	Listen, PublicURL string
}

// UsageError is an error of the options.
type UsageError struct{ error }

// ErrIncomplete says that events were lost or unreadable, or keys of them are left.
var ErrIncomplete = errors.New("events were lost, unreadable or left over; the tables say where")

// DefaultDuration is how long each thing is measured.
const DefaultDuration = 3 * time.Second

// Run runs the scenarios one after another, and sums up. With [ErrIncomplete] the report is
// returned too.
func Run(ctx context.Context, o Options) (*report.Report, error) {
	chosen, err := o.choose()
	if err != nil {
		return nil, err
	}
	if o.Out == nil {
		o.Out = io.Discard
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	found := report.New()
	fmt.Fprintf(o.Out, "%s.\n%s\n\n", found.Host, o.conditions())
	for _, scenario := range chosen {
		fmt.Fprintf(o.Progress, "%s …\n", scenario.name)
		table, err := runScenario(ctx, o, scenario, found)
		if ctx.Err() != nil {
			return nil, ctx.Err() // and not what it did to connections
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", scenario.name, err)
		}
		found.Tables = append(found.Tables, table)
		if err := table.Write(o.Out); err != nil {
			return nil, err
		}
	}
	found.Summarize()
	if o.Remote == nil {
		if err := found.WriteSummary(o.Out); err != nil {
			return nil, err
		}
	}
	if !found.IsComplete() {
		return found, ErrIncomplete
	}
	return found, nil
}

// validate refuses options that contradict each other.
func (o Options) validate() error {
	switch {
	case slices.ContainsFunc(o.Publishers, func(n int) bool { return n < 1 }),
		slices.ContainsFunc(o.Subscribers, func(n int) bool { return n < 0 }):
		return UsageError{errors.New("--publishers must be 1 or more, --subscribers 0 or more")}
	case o.Masters < 0 || o.Masters > stack.Partitions:
		return UsageError{fmt.Errorf("--cluster must be from 1 to %d: the bus has that many partitions", stack.Partitions)}
	case o.Masters > 0 && o.Remote != nil:
		return UsageError{errors.New("--cluster starts a bus of its own: it cannot be used with --bus")}
	case o.Masters > 0 && len(o.Scenarios) > 0 && !slices.Contains(o.Scenarios, clusterScenario):
		return UsageError{fmt.Errorf("--cluster is for the scenario %s, which --scenario does not name", clusterScenario)}
	case o.Remote == nil:
		return nil
	case o.Profile != "":
		return UsageError{errors.New("a running bus cannot be profiled from here: with ROUTEMASTER_PPROF=on its own metrics address serves /debug/pprof/")}
	case o.Remote.URL == "" || o.Remote.Token == "":
		return UsageError{errors.New("a bus needs both --bus and --token")}
	case o.Remote.PublicURL != "" && o.Remote.Listen == "":
		return UsageError{errors.New("--public-url needs --listen, the address where the receiver listens")}
	}
	return nil
}

// choose returns the scenarios that are asked for.
func (o Options) choose() (chosen []scenario, err error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	for _, name := range o.Scenarios {
		if !slices.Contains(Scenarios(), name) {
			return nil, UsageError{fmt.Errorf("unknown scenario %q; the scenarios are %s", name, strings.Join(Scenarios(), ", "))}
		}
	}
	names := o.Scenarios
	if len(names) == 0 && o.Masters > 0 {
		names = []string{clusterScenario}
	}
	for _, s := range scenarios {
		possible := o.meets(s.needs)
		if slices.Contains(names, s.name) && !possible {
			return nil, UsageError{fmt.Errorf("scenario %s needs %s", s.name, s.needs)}
		}
		if possible && (len(names) == 0 || slices.Contains(names, s.name)) {
			chosen = append(chosen, s)
		}
	}
	return chosen, nil
}

// meets reports whether the bus to measure is what a scenario needs.
func (o Options) meets(needs need) bool {
	switch needs {
	case needsAPI:
		return true
	case needsDeliveries:
		return o.Remote == nil || o.Remote.PublicURL != ""
	case needsCluster:
		return o.Masters > 0
	default:
		return o.Remote == nil
	}
}

// conditions says what the figures depend on.
func (o Options) conditions() string {
	if o.Remote != nil {
		return "The bus at " + o.Remote.URL + " runs elsewhere: its hosts are not measured, and there are no baselines."
	}
	text := `The publishers, web, worker, redis-server (--save "" --appendonly no: nothing on disk), the receiver ` +
		"and, for jobs and labels, their service share this host, on loopback."
	if o.Masters > 0 {
		text += fmt.Sprintf("\nSo do those of a bus on a Redis Cluster: %d masters without replicas. A worker runs only on the bus "+
			"that is being measured.", o.Masters)
	}
	if len(o.Env) > 0 {
		text += "\nThe daemons have " + strings.Join(o.Env, " ") + "."
	}
	return text
}

func (o Options) stack(masters int) stack.Options {
	return stack.Options{Launch: o.Launch, Masters: masters, Env: o.Env, Profiles: o.Profile}
}

func (o Options) size() size {
	s := fullSize(cmp.Or(max(0, o.Duration), DefaultDuration))
	if o.Quick {
		s = quickSize()
	}
	if len(o.Publishers) > 0 {
		s.publishers = o.Publishers
	}
	if len(o.Subscribers) > 0 {
		s.subscribers = o.Subscribers
	}
	if o.Full {
		s.backlogs = append(s.backlogs, 5_000_000)
		s.idleJobs = 1_000_000
	}
	if o.Remote != nil { // it has the subscriber of one token, if it reaches the receiver
		s.subscribers = []int{0}
		if o.Remote.PublicURL != "" {
			s.subscribers = []int{1}
		}
	}
	return s
}

// runScenario runs a scenario in an environment of its own.
func runScenario(ctx context.Context, o Options, scenario scenario, found *report.Report) (table *report.Table, err error) {
	e, err := newEnvironment(ctx, o, 0)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, e.close(ctx)) }()
	table = &report.Table{Scenario: scenario.name, About: scenario.about}
	e.report, e.table = found, table
	before := e.stack.Usage()
	if err := scenario.run(e, ctx); err != nil {
		return nil, errors.Join(err, e.stack.Err())
	}
	if !e.remote {
		found.Add(report.LeftOver, 0) // it is known, even if the scenario had nothing to drain
		e.addProcesses(before)
	}
	return table, nil
}

// addProcesses adds what each process used since a time.
func (e *environment) addProcesses(before map[string]stack.Usage) {
	after := e.stack.Usage()
	if len(after) == 0 {
		e.table.Note("CPU time and memory are not measured: %s has no /proc.", runtime.GOOS)
		return
	}
	for _, name := range []string{stack.Web, stack.Redis, stack.Worker, stack.Receiver, stack.Service, stack.Noop, stack.Load} {
		u, ran := after[name]
		if !ran || name == stack.Load && e.masters > 0 { // this process is that of the one Redis, too
			continue
		}
		e.table.Processes = append(e.table.Processes, report.Cells("process", name+e.suffix(),
			"CPU s", (u.CPU-before[name].CPU).Seconds(), "peak MB", megabytes(u.PeakMemory)))
	}
	if e.table.Scenario != consoleScenario && e.masters == 0 { // those have no goal, or one of their own
		e.report.SetMax(report.WebPeak, megabytes(after[stack.Web].PeakMemory))
	}
}
