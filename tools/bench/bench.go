package main

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

	"routemaster/tools/bench/report"
	"routemaster/tools/bench/stack"
)

// options say which scenarios to measure, and how.
type options struct {
	// scenarios are names of [scenarios]; all if empty.
	scenarios []string
	// duration is how long each thing is measured, after a warm-up of a quarter of it.
	duration time.Duration
	// publishers and subscribers, if given, replace the numbers in the rows of the scenario ingest.
	publishers, subscribers []int
	// quick measures next to nothing, only to show that everything works. full adds a backlog of 5
	// million events, and has a million jobs that are not due, and labels that wait.
	quick, full bool
	// env is more settings for web and worker, like NAME=value.
	env []string
	// profile is a directory for CPU and heap profiles of web and worker, one of each for every
	// row; empty for none.
	profile string
	// masters, if not 0, is how many a Redis Cluster has on which a bus is measured beside one Redis:
	// from 1 to [stack.Partitions]. Then no other scenario runs unless it is named.
	masters int
	// remote is the bus to measure, if its url is set.
	remote remote
	// programs is the directory of web and worker; empty for this program's own.
	programs string
	// out gets each table once it is complete; progress gets the scenarios as they begin.
	out, progress io.Writer
}

// remote is a bus that runs already. Only a receiver is started. The hosts of the bus are not
// measured, and there are no baselines, which would need them.
type remote struct {
	url string
	// token belongs to a client that publishes, and subscribes too. Its subscription is replaced,
	// and removed in the end.
	token string
	// insecure accepts any certificate of the bus.
	insecure bool
	// listen is the address where the receiver listens, and publicURL how the bus reaches it.
	// Without them deliveries are not measured.
	listen, publicURL string
}

// usageError is an error of the options.
type usageError struct{ error }

// errIncomplete says that events were lost or unreadable, or keys of them are left.
var errIncomplete = errors.New("events were lost, unreadable or left over; the tables say where")

// defaultDuration is how long each thing is measured.
const defaultDuration = 3 * time.Second

// runScenarios runs the scenarios one after another, and sums up. With [errIncomplete] it returns
// the report too.
func runScenarios(ctx context.Context, o options) (*report.Report, error) {
	chosen, err := o.choose()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	found := report.New()
	fmt.Fprintf(o.out, "%s.\n%s\n\n", found.Host, o.conditions())
	for _, scenario := range chosen {
		fmt.Fprintf(o.progress, "%s …\n", scenario.name)
		table, err := runScenario(ctx, o, scenario, found)
		if ctx.Err() != nil {
			return nil, ctx.Err() // not the errors that it caused on connections
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", scenario.name, err)
		}
		found.Tables = append(found.Tables, table)
		if err := table.Write(o.out); err != nil {
			return nil, err
		}
	}
	found.Summarize()
	if !o.isRemote() {
		if err := found.WriteSummary(o.out); err != nil {
			return nil, err
		}
	}
	if !found.IsComplete() {
		return found, errIncomplete
	}
	return found, nil
}

// isRemote says whether a bus is measured that runs already.
func (o options) isRemote() bool { return o.remote != remote{} }

// validate refuses options that contradict each other.
func (o options) validate() error {
	switch {
	case slices.ContainsFunc(o.publishers, func(n int) bool { return n < 1 }),
		slices.ContainsFunc(o.subscribers, func(n int) bool { return n < 0 }):
		return usageError{errors.New("--publishers must be 1 or more, --subscribers 0 or more")}
	case o.masters < 0 || o.masters > stack.Partitions:
		return usageError{fmt.Errorf("--cluster must be from 1 to %d: the bus has that many partitions", stack.Partitions)}
	case o.masters > 0 && o.isRemote():
		return usageError{errors.New("--cluster starts a bus of its own: it cannot be used with --bus")}
	case o.masters > 0 && len(o.scenarios) > 0 && !slices.Contains(o.scenarios, clusterScenario):
		return usageError{fmt.Errorf("--cluster is for the scenario %s, which --scenario does not name", clusterScenario)}
	case !o.isRemote():
		return nil
	case o.profile != "":
		return usageError{errors.New("a running bus cannot be profiled from here: with ROUTEMASTER_PPROF=on its own metrics address serves /debug/pprof/")}
	case o.remote.url == "" || o.remote.token == "":
		return usageError{errors.New("a bus needs both --bus and --token")}
	case o.remote.publicURL != "" && o.remote.listen == "":
		return usageError{errors.New("--public-url needs --listen, the address where the receiver listens")}
	}
	return nil
}

// choose returns the scenarios that are asked for.
func (o options) choose() (chosen []scenario, err error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	for _, name := range o.scenarios {
		if !slices.Contains(scenarioNames(), name) {
			return nil, usageError{fmt.Errorf("unknown scenario %q; the scenarios are %s", name, strings.Join(scenarioNames(), ", "))}
		}
	}
	names := o.scenarios
	if len(names) == 0 && o.masters > 0 {
		names = []string{clusterScenario}
	}
	for _, s := range scenarios {
		possible := o.meets(s.needs)
		if slices.Contains(names, s.name) && !possible {
			return nil, usageError{fmt.Errorf("scenario %s needs %s", s.name, s.needs)}
		}
		if possible && (len(names) == 0 || slices.Contains(names, s.name)) {
			chosen = append(chosen, s)
		}
	}
	return chosen, nil
}

// meets reports whether the bus to measure has the features that a scenario needs.
func (o options) meets(needs need) bool {
	switch needs {
	case needsAPI:
		return true
	case needsDeliveries:
		return !o.isRemote() || o.remote.publicURL != ""
	case needsCluster:
		return o.masters > 0
	default:
		return !o.isRemote()
	}
}

// conditions describes the host and the settings that the figures depend on.
func (o options) conditions() string {
	if o.isRemote() {
		return "The bus at " + o.remote.url + " runs elsewhere: its hosts are not measured, and there are no baselines."
	}
	text := `The publishers, web, worker, redis-server (--save "" --appendonly no: nothing on disk), the receiver ` +
		"and, for jobs and labels, their service share this host, on loopback."
	if o.masters > 0 {
		text += fmt.Sprintf("\nSo do those of a bus on a Redis Cluster: %d masters without replicas. A worker runs only on the bus "+
			"that is being measured.", o.masters)
	}
	if len(o.env) > 0 {
		text += "\nThe daemons have " + strings.Join(o.env, " ") + "."
	}
	return text
}

func (o options) stack(masters int) stack.Options {
	return stack.Options{Programs: o.programs, Masters: masters, Env: o.env, Profiles: o.profile}
}

func (o options) size() size {
	s := fullSize(cmp.Or(max(0, o.duration), defaultDuration))
	if o.quick {
		s = quickSize()
	}
	if len(o.publishers) > 0 {
		s.publishers = o.publishers
	}
	if len(o.subscribers) > 0 {
		s.subscribers = o.subscribers
	}
	if o.full {
		s.backlogs = append(s.backlogs, 5_000_000)
		s.idleJobs = 1_000_000
	}
	if o.isRemote() { // it has the subscriber of one token, if it reaches the receiver
		s.subscribers = []int{0}
		if o.remote.publicURL != "" {
			s.subscribers = []int{1}
		}
	}
	return s
}

// runScenario runs a scenario in an environment of its own.
func runScenario(ctx context.Context, o options, scenario scenario, found *report.Report) (table *report.Table, err error) {
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

// addProcesses adds the CPU time and memory that each process has used since a time.
func (e *environment) addProcesses(before map[string]stack.Usage) {
	after := e.stack.Usage()
	if len(after) == 0 {
		e.table.Note("CPU time and memory are not measured: %s has no /proc.", runtime.GOOS)
		return
	}
	for _, name := range []string{stack.Web, stack.Redis, stack.Worker, stack.Receiver, stack.Service, stack.Noop, stack.Load} {
		u, ran := after[name]
		if !ran || name == stack.Load && e.masters > 0 { // this process is counted with the one Redis
			continue
		}
		e.table.Processes = append(e.table.Processes, report.Cells("process", name+e.suffix(),
			"CPU s", (u.CPU-before[name].CPU).Seconds(), "peak MB", megabytes(u.PeakMemory)))
	}
	if e.table.Scenario != consoleScenario && e.masters == 0 { // those have no goal, or one of their own
		e.report.SetMax(report.WebPeak, megabytes(after[stack.Web].PeakMemory))
	}
}
