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

	"routemaster/internal/clock"
	"routemaster/internal/telemetry"
)

// Exit statuses of all programs.
const (
	ExitOK     = 0
	ExitFailed = 1
	ExitUsage  = 2
)

// Daemon runs a daemon as a program: it parses the arguments, reads the configuration, runs the
// daemon until a signal stops it, and returns the exit status. Help and version go to stdout,
// errors and logs to stderr.
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
	log := telemetry.NewLogger(stderr, config.LogLevel, config.LogJSON)
	defer telemetry.Flush(log)
	warnOfUnknown(log, lookup, file)
	warnOfUnusedKeys(log, lookup)
	err = run(ctx, config, log)
	if ctx.Err() != nil && errors.Is(err, context.Canceled) { // stopped before it had begun
		return nil
	}
	return err
}

// secondSignalDelay is how long more signals are ignored after the first: supervisors may send two
// at once, one to the program and one to its group, or SIGINT and SIGTERM.
const secondSignalDelay = 2 * time.Second

// StopOnSignal returns a context that is done once the program gets SIGINT, SIGTERM or SIGQUIT.
// More signals in the 2 s after the first are ignored; a later one ends the program at once.
func StopOnSignal(parent context.Context) (ctx context.Context, stop context.CancelFunc) {
	ctx, stop = signal.NotifyContext(parent, syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT)
	context.AfterFunc(ctx, func() { time.AfterFunc(secondSignalDelay, stop) })
	return ctx, stop
}

// newClock makes the clock of a daemon.
func newClock(c Config, log *slog.Logger) *clock.Clock {
	if c.Wall == nil {
		c.Wall = time.Now
	}
	return clock.New(c.Wall, log)
}

// version is set by the linker: see the Makefile.
var version string

// Version is the version that the linker set, or else the module's, or else "dev".
func Version() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "dev"
}
