// Command rtm is the operator's and developer's command line of the event bus.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"routemaster/internal/app"
)

func main() {
	ctx, stop := app.StopOnSignal(context.Background())
	defer stop()
	os.Exit(run(ctx, os.Args[1:]))
}

// usageError is wrong usage, as against a failure.
type usageError struct{ error }

func run(ctx context.Context, args []string) int {
	root := &cobra.Command{
		Use:           "rtm",
		Short:         "the command line of the Routemaster event bus",
		Version:       app.Version(),
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.AddCommand(newDevCommand())
	root.SetArgs(args)
	command, err := root.ExecuteContextC(ctx)
	if err == nil {
		return app.ExitOK
	}
	fmt.Fprintf(os.Stderr, "rtm: %v\n", err)
	_, wrong := errors.AsType[usageError](err)
	_, misconfigured := errors.AsType[*app.ConfigError](err)
	if wrong || misconfigured || command == root {
		fmt.Fprintf(os.Stderr, "%q says what is right.\n", command.CommandPath()+" --help")
		return app.ExitUsage
	}
	return app.ExitFailed
}
