package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// arguments accepts atLeast to atMost arguments; an atMost below 0 means no maximum.
func arguments(atLeast, atMost int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) >= atLeast && (atMost < 0 || len(args) <= atMost) {
			return nil
		}
		return usageError{fmt.Errorf("got %d arguments; usage: %s", len(args), strings.TrimSuffix(cmd.UseLine(), " [flags]"))}
	}
}

// newGroup makes a command that only holds others.
func newGroup(name, short, example string, commands ...*cobra.Command) *cobra.Command {
	group := &cobra.Command{Use: name, Short: short, Example: example}
	group.AddCommand(commands...)
	demandCommand(group)
	return group
}

// demandCommand makes it wrong usage to run a command that only holds others. Cobra would print its
// help and succeed.
func demandCommand(group *cobra.Command) {
	group.Args = cobra.ArbitraryArgs // or cobra reports it in its own words
	group.RunE = func(cmd *cobra.Command, args []string) error {
		list := strings.Join(namesOf(cmd.Commands(), (*cobra.Command).Name), ", ")
		if len(args) == 0 {
			return usageError{fmt.Errorf("%s needs one of its commands: %s", cmd.CommandPath(), list)}
		}
		return usageError{fmt.Errorf("%s has no command %q; it has: %s", cmd.CommandPath(), args[0], list)}
	}
}

// flagError is the error of flags that cannot be read.
func flagError(err error) error {
	if wrong, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		if right := rightValues[wrong.GetFlag().Value.Type()]; right != "" {
			return wrongFlag(wrong.GetFlag().Name, right)
		}
	}
	return usageError{err}
}

// rightValues says what flags take, by the types of their values. Flags of other types say so in
// their errors.
var rightValues = map[string]string{
	"bool": "true or false", "duration": "a duration such as 30s, 90m or 48h", "int": "an integer", "int64": "an integer",
}

// wrongFlag is the error of a flag with a wrong value.
func wrongFlag(flag, right string) error {
	return usageError{errors.New("--" + flag + " must be " + right)}
}
