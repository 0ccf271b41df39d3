package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"routemaster/internal/machines"
	"routemaster/internal/machines/definition"
	"routemaster/internal/terminal"
)

func newMachineCommand() *cobra.Command {
	return newGroup("machine", "check, draw and apply state machines, and look at them",
		"  rtm machine validate machines.yaml\n  rtm machine apply machines.yaml -b @production -t $ROOT_KEY\n  rtm machine list -b @production",
		newMachineValidateCommand(), newMachineGraphCommand(), newMachineApplyCommand(), newFamily(machineListRow), newFamily(machineShowRow))
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
			definitions, _, err := readDefinition(cmd.InOrStdin(), cmd.ErrOrStderr(), args)
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
	command.Flags().BoolVar(&asJSON, "json", false, jsonArray)
	return command
}

// readDefinition reads a definition from files, behind layers that win over them. It returns all
// layers, too. Warnings are printed.
func readDefinition(
	stdin io.Reader, stderr io.Writer, names []string, before ...definition.File,
) (definitions *machines.Definitions, files []definition.File, err error) {
	files = before
	for _, name := range names {
		content, err := readInput(stdin, name)
		if err != nil {
			return nil, nil, err
		}
		files = append(files, definition.File{Name: name, Content: content})
	}
	definitions, warnings, err := definition.Load(files...)
	for _, w := range warnings {
		fmt.Fprintf(stderr, "warning: %s\n", terminal.Escape(w.String()))
	}
	return definitions, files, err
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
