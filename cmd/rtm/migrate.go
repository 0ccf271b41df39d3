package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"routemaster/internal/app"
	"routemaster/internal/migrate"
	"routemaster/internal/terminal"
)

// Errors of a run of rtm migrate that leaves something to do.
var (
	errNotMoved = errors.New("not all was moved")
	errDryRun   = errors.New("there is something to move: --apply does it")
)

func newMigrateCommand() *cobra.Command {
	var run migration
	var redis redisFlags
	command := &cobra.Command{
		Use:   "migrate",
		Short: "take over a Redis that the Ruby original has written, or give it back",
		Long: `Move the batches that the Ruby original has left in Redis to where this program has them, each in one atomic
step, in small slices. Without --apply it only prints what it would do, and writes nothing. Data that is not as the
original writes it is refused and left in place. It can be run at any time, stopped, and run again. For the order of
changing over, and back, see docs/migrating-from-ruby.md.

Redis is the one of the environment, as for the daemons, unless flags say otherwise. The exit status is 0 when nothing
is left to do, 1 when something is (always, after a dry run that found any) or Redis cannot be read, 2 for wrong usage.`,
		Example: "  rtm migrate\n  rtm migrate --apply --redis-url redis://localhost:6379/0\n  rtm migrate --back --apply",
		Args:    arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			config, err := redis.config(cmd)
			if err == nil {
				err = requireOneRedis(config.RedisURL) // as the Ruby original does
			}
			if err != nil {
				return err
			}
			run.out, run.progress = cmd.OutOrStdout(), io.Discard
			if terminal.Is(cmd.ErrOrStderr()) {
				run.progress = cmd.ErrOrStderr()
			}
			return run.run(cmd.Context(), config)
		},
	}
	flags := command.Flags()
	flags.BoolVar(&run.Apply, "apply", false, "move the data, instead of only printing what would be done")
	flags.BoolVar(&run.Back, "back", false, "move batches back to where the original has them, to return to it")
	flags.BoolVar(&run.Unreadable, "unreadable", false,
		"also move batches with events that the other side cannot read: our worker leaves such events out, the original's ends")
	flags.BoolVar(&run.json, "json", false, "print JSON: an object for each thing that is left, then one with the counts")
	redis.add(command, "change")
	return command
}

// migration is a run of rtm migrate, which prints the reports.
type migration struct {
	migrate.Options
	json          bool
	out, progress io.Writer
}

// unmoved is a line of JSON.
type unmoved struct {
	Key    string `json:"key"`
	Reason string `json:"reason"`
	State  string `json:"state"`
}

const clearLine = "\r\x1b[K"

func (m *migration) run(ctx context.Context, config app.Config) error {
	began := time.Now()
	m.Report, m.Progress = m.report, m.showProgress
	redis, err := app.OpenRedis(config)
	if err != nil {
		return err
	}
	defer redis.Close()
	done, err := migrate.Run(ctx, redis.Partition(config.RedisNamespace), m.Options)
	fmt.Fprint(m.progress, clearLine)
	if ctx.Err() != nil {
		return fmt.Errorf("stopped before the end, with %d batches moved; run it again to go on", m.moved(done))
	}
	if err != nil {
		return err
	}
	m.sumUp(done, time.Since(began))
	switch {
	case done.Later+done.Refused > 0:
		return errNotMoved
	case !m.Apply && !done.NothingLeft():
		return errDryRun
	}
	return nil
}

func (m *migration) moved(done migrate.Result) int {
	if m.Apply {
		return done.Batches
	}
	return 0
}

func (m *migration) showProgress(done migrate.Result) {
	fmt.Fprintf(m.progress, "%s%d batches, %d events ...", clearLine, done.Batches, done.Events)
}

func (m *migration) report(u migrate.Unmoved) {
	state := "refused"
	if u.Later {
		state = "later"
	}
	if m.json {
		writeJSONLine(m.out, unmoved{u.Key, u.Reason, state})
		return
	}
	fmt.Fprint(m.progress, clearLine)
	fmt.Fprintf(m.out, "%s: %s [%s]\n", printable(u.Key), printable(u.Reason), state)
}

func (m *migration) sumUp(done migrate.Result, took time.Duration) {
	if m.json {
		writeJSONLine(m.out, map[string]any{"summary": struct {
			Applied bool `json:"applied"`
			migrate.Result
			Seconds float64 `json:"seconds"`
		}{m.Apply, done, took.Seconds()}})
		return
	}
	if done.NothingLeft() {
		fmt.Fprintln(m.out, "Nothing is left to do.")
		return
	}
	verb := "Would move"
	if m.Apply {
		verb = "Moved"
	}
	fmt.Fprintf(m.out, "%s %d batches with %d events in %v: %d to be moved later, %d refused.\n",
		verb, done.Batches, done.Events, took.Round(time.Millisecond), done.Later, done.Refused)
	for _, also := range []struct {
		n    int
		what string
	}{
		{done.Completed, "batches that were in their place, without a job"},
		{done.Renamed, "counters with a token in their name"},
		{done.Removed, "gauges that are 0"},
	} {
		if also.n > 0 {
			fmt.Fprintf(m.out, "Also %s %d %s.\n", map[bool]string{true: "put right", false: "would put right"}[m.Apply], also.n, also.what)
		}
	}
}
