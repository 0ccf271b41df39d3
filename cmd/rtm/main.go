// Command rtm is the operator's and developer's command line of the event bus.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"routemaster/internal/app"
	"routemaster/internal/terminal"
)

//go:generate go test -run TestThePageHasTheHelp . -args -write-page

func main() {
	ctx, stop := app.StopOnSignal(context.Background())
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// usageError is an error of usage, not of execution: it has its own exit status.
type usageError struct{ error }

// newRoot makes the command rtm with all its commands.
func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:           "rtm",
		Short:         "the command line of the Routemaster event bus",
		Version:       app.Version(),
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return flagError(err) })
	allowBefore(root)
	root.AddCommand(newFamily(tokenRows), newFamily(topicRows), newFamily(subRows), newPubCommand(), newTailCommand(), newTopCommand(),
		newFamily(workersRow), newFamily(consoleRow), newHealthCommand())
	root.AddCommand(newFamily(attemptsRow), newFamily(queueRows), newFamily(deadRows), newFamily(eventsRow), newFamily(replayRows), newVerifyCommand())
	root.AddCommand(newFamily(jobRows), newMachineCommand(), newFamily(labelRows))
	root.AddCommand(newDevCommand(), newClusterCommand(), newDoctorCommand(), newMigrateCommand(), newCopyCommand(), newVersionCommand())
	root.InitDefaultCompletionCmd()
	for _, command := range root.Commands() {
		if command.Name() == "completion" {
			demandCommand(command)
			for _, shell := range command.Commands() {
				shell.Args = arguments(0, 0) // cobra's own error would not be a usageError
			}
		}
	}
	return root
}

// run runs a command line and returns its exit status.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	root := newRoot()
	if len(args) == 1 && args[0] == "-version" { // as the daemons have it
		args = []string{"--version"}
	}
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	command, err := root.ExecuteContextC(ctx)
	if err == nil {
		return app.ExitOK
	}
	fmt.Fprintf(stderr, "rtm: %s\n", terminal.EscapeLines(strings.ReplaceAll(err.Error(), "\t", "  "))) // it may repeat the bus's text
	_, wrong := errors.AsType[usageError](err)
	_, misconfigured := errors.AsType[*app.ConfigError](err)
	if wrong || misconfigured || command == root {
		fmt.Fprintf(stderr, "Run %q for usage.\n", command.CommandPath()+" --help")
		return app.ExitUsage
	}
	return app.ExitFailed
}
