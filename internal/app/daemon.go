package app

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"

	"routemaster/internal/telemetry/logs"
)

// Exit statuses of all programs.
const (
	ExitOK     = 0
	ExitFailed = 1
	ExitUsage  = 2
)

// Daemon runs a daemon as a program: it parses its arguments, reads its configuration, runs it until a signal
// asks it to stop, and returns the exit status. What was asked for goes to stdout, logs and complaints to stderr.
func Daemon(name, purpose string, args []string, stdout, stderr io.Writer, run func(context.Context, Config, *slog.Logger) error) int {
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	version := flags.Bool("version", false, "print the version and exit")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprintf(stdout, "%s: %s.\n\nIt takes its settings from the environment; docs/configuration.md lists them.\n\nFlags:\n", name, purpose)
		flags.SetOutput(stdout)
		flags.PrintDefaults()
		return ExitOK
	case err != nil:
		fmt.Fprintf(stderr, "%s: %v\nRun %q for usage.\n", name, err, name+" -h")
		return ExitUsage
	case flags.NArg() > 0:
		fmt.Fprintf(stderr, "%s: unknown argument %q; it takes none\n", name, flags.Arg(0))
		return ExitUsage
	case *version:
		fmt.Fprintln(stdout, name, Version())
		return ExitOK
	}
	err := runConfigured(stderr, run)
	if err == nil {
		return ExitOK
	}
	fmt.Fprintf(stderr, "%s: %v\n", name, err)
	if _, ok := errors.AsType[*ConfigError](err); ok {
		return ExitUsage
	}
	return ExitFailed
}

func runConfigured(stderr io.Writer, run func(context.Context, Config, *slog.Logger) error) error {
	lookup, file, err := readEnv()
	if err != nil {
		return err
	}
	config, err := LoadConfig(lookup)
	if err != nil {
		return err
	}
	ctx, stop := StopOnSignal(context.Background())
	defer stop()
	log := logs.New(stderr, config.LogLevel, config.LogJSON)
	warnOfUnknown(log, lookup, file)
	return run(ctx, config, log)
}

// secondSignalAfter is how long signals are ignored after the first: supervisors may send two at once, one to the program and
// one to its group, or SIGINT and SIGTERM.
const secondSignalAfter = 2 * time.Second

// StopOnSignal returns a context that is done when the program is asked to stop. Another signal in the next 2 s is
// ignored; after that it ends the program on the spot.
func StopOnSignal(parent context.Context) (ctx context.Context, stop context.CancelFunc) {
	ctx, stop = signal.NotifyContext(parent, syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT)
	context.AfterFunc(ctx, func() { time.AfterFunc(secondSignalAfter, stop) })
	return ctx, stop
}

// version is set when the program is linked.
var version string

// Version is the program's version: what it was linked with, else its module's, else "dev".
func Version() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "dev"
}
