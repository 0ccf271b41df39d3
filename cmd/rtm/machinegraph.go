package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"routemaster/client"
	clientmachines "routemaster/client/machines"
	"routemaster/internal/machines"
	"routemaster/internal/machines/definition"
	"routemaster/internal/terminal"
)

func newMachineGraphCommand() *cobra.Command {
	var bus busFlags
	var format string
	of := row{use: "graph MACHINE", kinds: []kind{machine}} // with -b
	command := &cobra.Command{
		Use:   "graph {FILE… [MACHINE] | MACHINE -b BUS}",
		Short: "draw a state machine of a definition or of a bus",
		Long: `Draw a state machine of a definition, without a bus, or with -b one that a bus has. Several files are layers, and
earlier ones win. MACHINE, which comes last, is needed if there are several machines.

Gates are round, actions have corners. Dashed arrows are for all values that no other arrow has.`,
		Example: "  rtm machine graph machines.yaml\n" +
			"  rtm machine graph production.yaml machines.yaml drip_feed --format svg > drip_feed.svg\n" +
			"  rtm machine graph drip_feed -b @production --format dot",
		Args: arguments(1, -1),
		ValidArgsFunction: func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
			if bus.bus == "" {
				return nil, cobra.ShellCompDirectiveDefault // files
			}
			return of.complete(&bus)(cmd, args, prefix)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if !slices.Contains(definition.Formats, format) {
				return wrongFlag("format", "dot, mermaid or svg")
			}
			if bus.bus == "" {
				return drawFiles(cmd, args, format)
			}
			if err := of.checkArguments(cmd, args); err != nil {
				return err
			}
			return bus.run(func(cmd *cobra.Command, c *client.Client, args []string) error {
				drawn, err := clientmachines.Of(c, args[0]).Graph(cmd.Context(), format)
				if err != nil {
					return err
				}
				return printGraph(cmd, string(drawn))
			})(cmd, args)
		},
	}
	bus.add(command)
	command.Flags().StringVar(&format, "format", "mermaid", "what to write: dot, mermaid or svg")
	_ = command.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(definition.Formats, cobra.ShellCompDirectiveNoFileComp))
	return command
}

// drawFiles draws a machine of a definition: the arguments are files, and perhaps its name.
func drawFiles(cmd *cobra.Command, args []string, format string) error {
	names, machine := splitMachine(args)
	definitions, _, err := readDefinition(cmd.InOrStdin(), cmd.ErrOrStderr(), names)
	if err != nil {
		return err
	}
	m, err := selectMachine(definitions, machine)
	if err != nil {
		return err
	}
	drawn, err := definition.Draw(m, format)
	if err != nil {
		return err
	}
	return printGraph(cmd, drawn)
}

func printGraph(cmd *cobra.Command, drawn string) error {
	_, err := io.WriteString(cmd.OutOrStdout(), terminal.EscapeLines(drawn))
	return err
}

// splitMachine takes the last of several arguments for the name of a machine, if there is no file
// of that name.
func splitMachine(args []string) (files []string, machine string) {
	last := len(args) - 1
	if _, err := os.Stat(args[last]); last > 0 && args[last] != "-" && errors.Is(err, fs.ErrNotExist) {
		return args[:last], args[last]
	}
	return args, ""
}

// selectMachine is the machine of a name or, without a name, the only one.
func selectMachine(d *machines.Definitions, name string) (*machines.Machine, error) {
	if name == "" && len(d.Machines) == 1 {
		return d.Machines[0], nil
	}
	if m := d.Machine(machines.Name(name)); m != nil {
		return m, nil
	}
	names := namesOf(d.Machines, func(m *machines.Machine) string { return string(m.Name) })
	switch {
	case len(names) == 0:
		return nil, errors.New("the definition has no machine")
	case name == "":
		return nil, usageError{fmt.Errorf("name one of the machines: %s", strings.Join(names, ", "))}
	}
	return nil, fmt.Errorf("there is no file and no machine %q; the machines are %s", name, strings.Join(names, ", "))
}
