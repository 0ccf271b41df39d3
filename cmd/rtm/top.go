package main

import (
	"errors"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"routemaster/client"
	"routemaster/internal/terminal"
	"routemaster/internal/top"
	"routemaster/internal/top/stats"
)

func newTopCommand() *cobra.Command {
	var bus busFlags
	var options top.Options
	var once, asJSON bool
	command := &cobra.Command{
		Use:   "top",
		Short: "watch a bus: topics and subscribers with their rates, jobs, the memory of Redis",
		Long: `Show a bus on the terminal, over its HTTP API: topics with the events published a second, subscribers with
what is queued for them, the age of the oldest event, the events acknowledged a second, and their health; jobs, and the
memory of Redis beside its marks. It asks the bus three questions every interval. The key ? explains the rest.

With --once it prints how the bus is, from two looks an interval apart, and exits. Workers tell what failed, and what was dropped,
every 5 s: with --interval 10s it is seen for sure.`,
		Example: "  rtm top -b @production\n  rtm top -b bus.example -t shop--1 --sort oldest --filter '^shop'\n" +
			"  rtm top -b @production --once --json --interval 10s",
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
				return usageError{errors.New("the output is no terminal; --once prints how the bus is, and exits")}
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
	flags.DurationVar(&options.Interval, "interval", 2*time.Second, "time from one look at the bus to the next")
	flags.StringVar(&options.Sort, "sort", "", "column to sort by: "+strings.Join(top.SortNames(), ", "))
	flags.StringVar(&options.Filter, "filter", "", "show only names that match: a regular expression, or a part of them")
	flags.BoolVar(&once, "once", false, "print how the bus is, and exit")
	flags.BoolVar(&asJSON, "json", false, "with --once, print JSON")
	_ = command.RegisterFlagCompletionFunc("sort", cobra.FixedCompletions(top.SortNames(), cobra.ShellCompDirectiveNoFileComp))
	return command
}

// newTopReader makes a reader of the bus that the flags name. It asks once: who is not answered is
// asked again anyway.
func newTopReader(bus *busFlags, options *top.Options) (*stats.Reader, error) {
	url, token, err := bus.resolve()
	if err != nil {
		return nil, usageError{err}
	}
	c, err := bus.client(client.WithRetries(0))
	if err != nil {
		return nil, err
	}
	options.Bus = url
	return stats.NewReader(c, token), nil
}
