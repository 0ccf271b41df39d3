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

	"routemaster/internal/machines"
	"routemaster/internal/machines/definition"
	"routemaster/internal/machines/graph"
	"routemaster/internal/terminal"
)

func newMachineCommand() *cobra.Command {
	return newGroup("machine", "check and draw state machines",
		"  rtm machine validate machines.yaml",
		newMachineValidateCommand(), newMachineGraphCommand())
}

func newMachineValidateCommand() *cobra.Command {
	var asJSON bool
	command := &cobra.Command{
		Use:   "validate FILE…",
		Short: "check a definition of state machines",
		Long: `Check a definition of state machines, without a bus. Several files are layers, and earlier ones win. One of them may
be -, which is the standard input.

Each problem is printed as file:line:column: message, and the exit status is then 1. Warnings go to stderr.`,
		Example: "  rtm machine validate machines.yaml\n" +
			"  rtm machine validate production.yaml machines.yaml --json",
		Args: arguments(1, -1),
		RunE: func(cmd *cobra.Command, args []string) error {
			files, err := readDefinition(cmd.InOrStdin(), args)
			if err != nil {
				return err
			}
			definitions, err := loadDefinition(cmd.ErrOrStderr(), files)
			problems, wrong := errors.AsType[definition.Errors](err)
			switch {
			case err != nil && !wrong:
				return err
			case asJSON:
				err = writeJSON(cmd.OutOrStdout(), append([]definition.Problem{}, problems...))
			case wrong:
				err = printProblems(cmd.OutOrStdout(), problems)
			default:
				_, err = fmt.Fprintln(cmd.OutOrStdout(), sizeOf(definitions))
			}
			if err == nil && wrong {
				return fmt.Errorf("the definition has %s", count(len(problems), "problem"))
			}
			return err
		},
	}
	addJSONFlag(command, &asJSON)
	return command
}

func newMachineGraphCommand() *cobra.Command {
	var format string
	command := &cobra.Command{
		Use:   "graph FILE… [MACHINE]",
		Short: "draw a state machine",
		Long: `Draw a state machine of a definition, without a bus. Several files are layers, and earlier ones win. MACHINE, which
comes last, is needed if there are several machines.

Gates are round, actions have corners. Dashed arrows are for all values that no other arrow has.`,
		Example: "  rtm machine graph machines.yaml\n" +
			"  rtm machine graph production.yaml machines.yaml drip_feed --format svg > drip_feed.svg",
		Args: arguments(1, -1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !slices.Contains(graph.Formats, format) {
				return wrongFlag("format", "dot, mermaid or svg")
			}
			names, machine := splitMachine(args)
			files, err := readDefinition(cmd.InOrStdin(), names)
			if err != nil {
				return err
			}
			definitions, err := loadDefinition(cmd.ErrOrStderr(), files)
			if err != nil {
				return err
			}
			m, err := selectMachine(definitions, machine)
			if err != nil {
				return err
			}
			drawn, err := graph.Draw(m, format)
			if err == nil {
				_, err = io.WriteString(cmd.OutOrStdout(), terminal.EscapeLines(drawn))
			}
			return err
		},
	}
	command.Flags().StringVar(&format, "format", "mermaid", "what to write: dot, mermaid or svg")
	_ = command.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(graph.Formats, cobra.ShellCompDirectiveNoFileComp))
	return command
}

// readDefinition reads the files of a definition.
func readDefinition(stdin io.Reader, names []string) (files []definition.File, err error) {
	for _, name := range names {
		content, err := readInput(stdin, name)
		if err != nil {
			return nil, err
		}
		files = append(files, definition.File{Name: name, Content: content})
	}
	return files, nil
}

// loadDefinition loads a definition. Warnings are printed.
func loadDefinition(stderr io.Writer, files []definition.File) (*machines.Definitions, error) {
	definitions, warnings, err := definition.Load(files...)
	for _, w := range warnings {
		fmt.Fprintf(stderr, "warning: %s\n", terminal.Escape(w.String()))
	}
	return definitions, err
}

func printProblems(w io.Writer, problems []definition.Problem) error {
	for _, p := range problems {
		if _, err := fmt.Fprintln(w, terminal.Escape(p.String())); err != nil {
			return err
		}
	}
	return nil
}

// sizeOf says how much a definition has.
func sizeOf(d *machines.Definitions) string {
	states := 0
	for _, m := range d.Machines {
		states += len(m.States)
	}
	return count(len(d.Machines), "machine") + ", " + count(states, "state")
}

// count is a number of things.
func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
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
	var names []string
	for _, m := range d.Machines {
		names = append(names, string(m.Name))
	}
	switch {
	case len(names) == 0:
		return nil, errors.New("the definition has no machine")
	case name == "":
		return nil, usageError{fmt.Errorf("name one of the machines: %s", strings.Join(names, ", "))}
	}
	return nil, fmt.Errorf("there is no file and no machine %q; the machines are %s", name, strings.Join(names, ", "))
}
