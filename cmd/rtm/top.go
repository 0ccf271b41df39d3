package main

import (
	"errors"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"routemaster/client"
	"routemaster/internal/terminal"
	"routemaster/internal/top"
)

func newTopCommand() *cobra.Command {
	var bus busFlags
	var options top.Options
	var once, asJSON bool
	command := &cobra.Command{
		Use:   "top",
		Short: "watch a bus: topics, subscribers, job types and machines with their rates, the memory of Redis",
		Long: `Show a bus on the terminal, over its HTTP API: topics with the events published a second, subscribers with
what is queued for them, the age of the oldest event, the events acknowledged a second, and their health; job types and
state machines, if there are any, with what waits, what is done and what fails; the memory of Redis beside its marks; and
what is wrong, worst first. It sends the bus one request every interval, GET /overview. The bus takes a sample every 2 s
while it is looked at, up to 3.5 s if it is large: with a shorter interval some answers are the same. The key ? explains
the rest.

With --once it prints the state of the bus, and exits. If the bus does not know its rates yet, because it was not looked at
lately and no worker runs, it asks again at the interval, for 5 s.`,
		Example: "  rtm top -b @production\n  rtm top -b bus.example -t shop--1 --sort oldest --filter '^shop'\n" +
			"  rtm top -b @production --once --json",
		Args: arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := options.Validate(); err != nil {
				return usageError{err}
			}
			if asJSON && !once {
				return usageError{errors.New("--json needs --once")}
			}
			if bus.verbose && !once {
				return usageError{errors.New("--verbose needs --once: the screen has no place for it")}
			}
			if !once && !terminal.Is(cmd.OutOrStdout()) {
				return usageError{errors.New("the output is not a terminal; --once prints the state of the bus and exits")}
			}
			bus.stderr = cmd.ErrOrStderr()
			reader, err := newTopReader(&bus, &options)
			if err != nil {
				return err
			}
			defer reader.Close()
			if once {
				return explain(top.Once(cmd.Context(), reader, options, cmd.OutOrStdout(), asJSON))
			}
			return top.Watch(cmd.Context(), reader, options)
		},
	}
	bus.add(command)
	flags := command.Flags()
	flags.DurationVar(&options.Interval, "interval", 2*time.Second, "time between two requests to the bus")
	flags.StringVar(&options.Sort, "sort", "", "column to sort by: "+strings.Join(top.SortNames(), ", "))
	flags.StringVar(&options.Filter, "filter", "", "show only names that match: a regular expression, or a part of them")
	flags.BoolVar(&once, "once", false, "print the state of the bus, and exit")
	flags.BoolVar(&asJSON, "json", false, "with --once, print JSON")
	_ = command.RegisterFlagCompletionFunc("sort", cobra.FixedCompletions(top.SortNames(), cobra.ShellCompDirectiveNoFileComp))
	return command
}

// newTopReader makes a reader of the bus that the flags name. It sends each request once: if one
// fails, the next one asks again.
func newTopReader(bus *busFlags, options *top.Options) (*top.Reader, error) {
	url, _, err := bus.resolve()
	if err != nil {
		return nil, usageError{err}
	}
	c, err := bus.client(client.WithRetries(0))
	if err != nil {
		return nil, err
	}
	options.Bus = url
	return top.NewReader(c), nil
}
