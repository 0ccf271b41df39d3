package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"routemaster/internal/bench"
	"routemaster/internal/bench/stack"
)

func newBenchCommand() *cobra.Command {
	options := bench.Options{Launch: launch}
	var remote bench.Remote
	var asJSON bool
	command := &cobra.Command{
		Use:   "bench",
		Short: "measure how fast a bus is, each figure beside its baseline on this host",
		Long: `Start a Redis, web, worker and a receiver on loopback, and measure them. The programs web and worker are those
beside rtm; redis-server must be installed. It keeps nothing on disk (--save "" --appendonly no).

With --cluster a bus on a Redis Cluster of so many masters, without replicas, is measured beside one on one Redis, each row
on both in turn.

With --bus a running bus is measured instead: publishing, and with --listen and --public-url also deliveries. The
receiver signs its own certificate: either the bus has ROUTEMASTER_SSL_VERIFY=NO, or a proxy with a certificate is in
front of the receiver, at the public URL. Its topics and its subscription are removed in the end.

The exit status is 1 if events were lost. A goal that is not met is not a failure.`,
		Example: "  rtm bench --scenario ingest,bulk\n  rtm bench --env ROUTEMASTER_WORKER_THREADS=64 --json\n  rtm bench --cluster 3\n" +
			"  rtm bench --bus https://bus.example --token bench--1 --listen :8443 --public-url https://me.example:8443",
		Args: arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if remote.URL != "" || remote.Token != "" {
				options.Remote = &remote
			}
			options.Progress = cmd.ErrOrStderr()
			if !asJSON {
				options.Out = cmd.OutOrStdout()
			}
			report, err := bench.Run(cmd.Context(), options)
			if wrong, ok := errors.AsType[bench.UsageError](err); ok {
				return usageError{wrong}
			}
			if asJSON && report != nil {
				return errors.Join(err, writeJSON(cmd.OutOrStdout(), report))
			}
			return err
		},
	}
	flags := command.Flags()
	flags.StringSliceVar(&options.Scenarios, "scenario", nil, "what to measure, of "+strings.Join(bench.Scenarios(), ", ")+" (default all)")
	flags.IntSliceVar(&options.Publishers, "publishers", nil, "publishers of the rows of ingest (default 1,4,16,64)")
	flags.IntSliceVar(&options.Subscribers, "subscribers", nil, "subscribers of the rows of ingest (default 0,1,10,100)")
	flags.DurationVar(&options.Duration, "duration", bench.DefaultDuration, "how long each thing is measured, after a warm-up of a quarter of it")
	flags.BoolVar(&options.Quick, "quick", false, "only show that everything works; the figures mean nothing")
	flags.BoolVar(&options.Full, "full", false, "measure a backlog of 5 million events, and a million jobs that are not due and labels that wait, too")
	flags.StringArrayVar(&options.Env, "env", nil, "a setting NAME=value for web and worker; may be repeated")
	flags.StringVar(&options.Profile, "profile", "", "directory for CPU and heap profiles of web and worker, of each row; for go tool pprof")
	flags.BoolVar(&asJSON, "json", false, "print JSON")
	flags.IntVar(&options.Masters, "cluster", 0, "measure a bus on a Redis Cluster of `MASTERS` beside one on one Redis, and nothing else")
	flags.StringVar(&remote.URL, "bus", "", "URL of a running bus to measure")
	flags.StringVar(&remote.Token, "token", "", "token of a client of that bus that is used for nothing else: its subscription is replaced")
	flags.BoolVar(&remote.Insecure, "insecure", false, "do not verify that bus's certificate")
	flags.StringVar(&remote.Listen, "listen", "", "address where the receiver of that bus's deliveries listens")
	flags.StringVar(&remote.PublicURL, "public-url", "", "https URL at which that bus reaches the receiver")
	return command
}

// launch makes the commands of the benchmark's programs: the daemons are beside this program, the
// others are this program itself.
func launch(program string, args ...string) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	switch program {
	case stack.Web, stack.Worker:
		path := filepath.Join(filepath.Dir(self), program)
		if _, err := os.Stat(path); err != nil {
			return nil, fmt.Errorf("%s must be beside rtm: %w; make build puts it there", program, err)
		}
		return exec.Command(path, args...), nil
	default:
		return exec.Command(self, append([]string{helperCommand, program}, args...)...), nil
	}
}

// helperCommand is the hidden subcommand of the benchmark's own processes.
const helperCommand = "bench-helper"

func newBenchHelperCommand() *cobra.Command {
	return &cobra.Command{
		Use:    helperCommand + " PROGRAM ADDRESS...",
		Hidden: true,
		Args:   cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return stack.RunProgram(cmd.Context(), args[0], args[1:]...)
		},
	}
}
