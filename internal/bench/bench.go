package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"time"
)

// Options say what to measure, and how.
type Options struct {
	// Scenarios are names of [Scenarios]; all if empty.
	Scenarios []string
	// Duration is how long each thing is measured, after a warm-up of a quarter of it.
	Duration time.Duration
	// Publishers and Subscribers, if given, are those of the rows of the scenario ingest, instead of many.
	Publishers, Subscribers []int
	// Quick measures next to nothing, only to show that all works. Full adds a backlog of 5 million.
	Quick, Full bool
	// Launch makes the commands of the programs. They start with no environment but PATH and what it gives them.
	Launch Launcher
	// Env is more settings for web and worker, like NAME=value.
	Env []string
	// Profile is a directory for CPU and heap profiles of web and worker, one of each for every row; empty for none.
	Profile string
	// Remote, if given, is somebody else's bus.
	Remote *Remote
	// Out gets each table when it is there, if given; Progress what is being done.
	Out, Progress io.Writer
}

// UsageError is about the options.
type UsageError struct{ error }

// ErrIncomplete says that events were lost, or something of them was left over.
var ErrIncomplete = errors.New("events were lost, unreadable or left over; the tables say where")

// DefaultDuration is how long each thing is measured.
const DefaultDuration = 3 * time.Second

// Run runs the scenarios one after another, and sums up. The report is there also with [ErrIncomplete].
func Run(ctx context.Context, o Options) (*Report, error) {
	chosen, err := choose(o)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	report := &Report{
		Machine: thisMachine(),
		Figures: map[string]float64{figureLost: 0, figureDuplicates: 0, figureOutOfOrder: 0, figureUnreadable: 0},
	}
	if o.Out != nil {
		fmt.Fprintf(o.Out, "%s.\n%s\n\n", report.Machine, o.conditions())
	}
	for _, scenario := range chosen {
		table := &Table{Scenario: scenario.name, About: scenario.about}
		fmt.Fprintf(o.Progress, "%s …\n", scenario.name)
		if err := runScenario(ctx, o, scenario, report, table); err != nil {
			if ctx.Err() != nil {
				return nil, ctx.Err() // and not what became of the connections
			}
			return nil, fmt.Errorf("%s: %w", scenario.name, err)
		}
		report.Tables = append(report.Tables, table)
		if o.Out != nil {
			if err := table.Write(o.Out); err != nil {
				return nil, err
			}
		}
	}
	report.judge()
	if o.Out != nil && o.Remote == nil {
		if err := report.WriteSummary(o.Out); err != nil {
			return nil, err
		}
	}
	if report.Figures[figureLost] != 0 || report.Figures[figureLeftOver] != 0 || report.Figures[figureUnreadable] != 0 {
		return report, ErrIncomplete
	}
	return report, nil
}

// choose finds the scenarios that are asked for.
func choose(o Options) (chosen []scenario, err error) {
	names := o.Scenarios
	if o.Remote != nil && o.Profile != "" {
		return nil, UsageError{errors.New("a running bus cannot be profiled from here: its own metrics address serves /debug/pprof/")}
	}
	if o.Remote != nil && (o.Remote.URL == "" || o.Remote.Token == "") {
		return nil, UsageError{errors.New("a bus needs both --bus and --token")}
	}
	if slices.ContainsFunc(o.Publishers, func(n int) bool { return n < 1 }) ||
		slices.ContainsFunc(o.Subscribers, func(n int) bool { return n < 0 }) {
		return nil, UsageError{errors.New("--publishers must be 1 or more, --subscribers 0 or more")}
	}
	for _, s := range scenarios {
		possible := s.needs == api || o.Remote == nil || s.needs == deliveries && o.Remote.PublicURL != ""
		if slices.Contains(names, s.name) && !possible {
			return nil, UsageError{fmt.Errorf("scenario %s needs %s", s.name, s.needs)}
		}
		if possible && (len(names) == 0 || slices.Contains(names, s.name)) {
			chosen = append(chosen, s)
		}
	}
	for _, name := range names {
		if !slices.Contains(Scenarios(), name) {
			return nil, UsageError{fmt.Errorf("there is no scenario %q; there are %s", name, strings.Join(Scenarios(), ", "))}
		}
	}
	return chosen, nil
}

// conditions say what the figures depend on.
func (o Options) conditions() string {
	if o.Remote != nil {
		return "The bus at " + o.Remote.URL + " is not ours: its machines are not measured, and there are no limits beside the figures."
	}
	text := `The publishers, web, worker, redis-server (--save "" --appendonly no: nothing on disk) and the receiver share this machine, on loopback.`
	if len(o.Env) > 0 {
		text += "\nThe daemons have " + strings.Join(o.Env, " ") + "."
	}
	return text
}

func (o Options) size() size {
	duration := o.Duration
	if duration <= 0 {
		duration = DefaultDuration
	}
	s := fullSize(duration)
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
	}
	return s
}

// runScenario gives a scenario its site, and takes down what it cost.
func runScenario(ctx context.Context, o Options, scenario scenario, report *Report, table *Table) (err error) {
	open := ownSite
	if o.Remote != nil {
		open = remoteSite
	}
	s, err := open(ctx, o)
	if err != nil {
		return err
	}
	s.report, s.table, s.size = report, table, s.fit(o.size())
	if s.own == nil {
		defer func() { err = errors.Join(err, s.leave(ctx)) }()
		return scenario.run(s, ctx)
	}
	defer func() { err = errors.Join(err, s.own.close()) }()
	report.add(figureLeftOver, 0) // it is known, though nothing may have to be drained
	before := s.own.usage()
	if err := scenario.run(s, ctx); err != nil {
		return errors.Join(err, s.own.died())
	}
	s.showProcesses(before)
	return nil
}

// showProcesses takes down what each process took.
func (s *site) showProcesses(before map[string]usage) {
	after := s.own.usage()
	if len(after) == 0 {
		s.table.note("CPU time and memory are not measured: %s has no /proc.", runtime.GOOS)
		return
	}
	for _, name := range []string{Web, Redis, Worker, Receiver, Noop, loadProcess} {
		u := after[name]
		s.table.Processes = append(s.table.Processes, Row{{"process", name}, {"CPU s", (u.cpu - before[name].cpu).Seconds()}, {"peak MB", megabytes(u.peak)}})
	}
	s.report.most(figureWebPeak, megabytes(after[Web].peak))
}
