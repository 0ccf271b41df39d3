package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"routemaster/client"
	clientmachines "routemaster/client/machines"
	"routemaster/internal/machines"
	"routemaster/internal/machines/definition"
	"routemaster/internal/terminal"
)

// machineApplier has the flags of rtm machine apply.
type machineApplier struct {
	moves  []string
	asJSON bool
	asking consent
}

func newMachineApplyCommand() *cobra.Command {
	var bus busFlags
	var a machineApplier
	command := &cobra.Command{
		Use:   "apply FILE…",
		Short: "replace the state machines of a bus by those of a definition",
		Long: `Replace all state machines of a bus in one step. Several files are layers, and earlier ones win. One of them may be -,
which is the standard input. A machine that is left out goes. It needs the root key.

A definition that is wrong is not sent: each problem is printed as file:line:column: message. Warnings go to stderr.
While labels are in a state that would vanish the definition is refused; --move says where they go. MACHINE can be left
out if the definition has one machine.

It says on stderr which machines and states are new and which go, with how many labels. If one goes, it asks first on a
terminal.`,
		Example: "  rtm machine apply machines.yaml -b @production -t $ROOT_KEY\n" +
			"  rtm machine apply production.yaml machines.yaml --move drip_feed.waiting:paused -b @production -t $ROOT_KEY",
		Args: arguments(1, -1),
		RunE: func(cmd *cobra.Command, args []string) error {
			definitions, files, err := readDefinition(cmd.InOrStdin(), cmd.ErrOrStderr(), args)
			if err != nil {
				return a.report(cmd.OutOrStdout(), err)
			}
			moves, err := readMoves(definitions, a.moves)
			if err != nil {
				return err
			}
			yaml, err := definition.Merged(files...)
			if err != nil {
				return err
			}
			return bus.run(func(cmd *cobra.Command, c *client.Client, _ []string) error {
				if err := a.announce(cmd, c, definitions, moves); err != nil {
					return err
				}
				applied, err := clientmachines.Apply(cmd.Context(), c, yaml, moves...)
				if err != nil {
					return a.report(cmd.OutOrStdout(), explainResting(err, definitions))
				}
				if a.asJSON {
					return writeJSON(cmd.OutOrStdout(), applied)
				}
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "version %d: %s\n", applied.Version, sizeOf(definitions))
				return err
			})(cmd, args)
		},
	}
	bus.add(command)
	command.Flags().StringArrayVar(&a.moves, "move", nil, "have the labels in the state OLD of a machine, which vanishes, go to NEW: `[MACHINE.]OLD:NEW`; may be repeated")
	a.asking.add(command)
	command.Flags().BoolVar(&a.asJSON, "json", false, "print a JSON object; of a wrong definition, a JSON array of its problems")
	return command
}

// announce prints what a definition changes, and asks if it removes anything.
func (a *machineApplier) announce(cmd *cobra.Command, c *client.Client, d *machines.Definitions, moves []clientmachines.StateMove) error {
	change, err := changeOf(cmd.Context(), c, d, moves)
	if err != nil {
		return err
	}
	asking := consent{yes: a.asking.yes || !change.removes}
	return asking.ask(cmd, change.lines...)
}

// report prints the problems of a definition, including the ones that the bus found, which may be
// of another version than rtm. The positions are in the files, merged. It returns other errors.
func (a *machineApplier) report(w io.Writer, err error) error {
	problems, _ := errors.AsType[definition.Errors](err)
	if refused, ok := errors.AsType[*client.Error](err); ok {
		for _, f := range refused.Faults {
			problems = append(problems, definition.Problem{File: "merged", Line: f.Line, Column: f.Column, Message: f.Message})
		}
	}
	if len(problems) == 0 {
		return err
	}
	if a.asJSON {
		err = writeJSON(w, problems)
	} else {
		err = printProblems(w, problems)
	}
	if err != nil {
		return err
	}
	return fmt.Errorf("the definition has %s; nothing was changed", count(len(problems), "problem"))
}

// readMoves reads where labels go. The names of states have neither a dot nor a colon. Errors are
// [usageError]s.
func readMoves(d *machines.Definitions, texts []string) (moves []clientmachines.StateMove, err error) {
	for _, text := range texts {
		var move clientmachines.StateMove
		before, to := text, ""
		if i := strings.LastIndex(text, ":"); i >= 0 {
			before, to = text[:i], text[i+1:]
		}
		move.From, move.To = before, to
		if i := strings.LastIndex(before, "."); i >= 0 {
			move.Machine, move.From = before[:i], before[i+1:]
		} else if len(d.Machines) == 1 {
			move.Machine = string(d.Machines[0].Name)
		} else {
			return nil, wrongFlag("move", "MACHINE.OLD:NEW, since the definition has several machines")
		}
		if move.Machine == "" || move.From == "" || move.To == "" {
			return nil, wrongFlag("move", "MACHINE.OLD:NEW, such as drip_feed.waiting:paused")
		}
		if d.State(machines.Name(move.Machine), machines.StateName(move.To)) == nil {
			return nil, usageError{fmt.Errorf("--move %s: the definition has no state %q of a machine %q", text, move.To, move.Machine)}
		}
		moves = append(moves, move)
	}
	return moves, nil
}

// explainResting adds to the bus's refusal to remove states with labels the remedy for each state.
func explainResting(err error, d *machines.Definitions) error {
	refused, ok := errors.AsType[*client.Error](err)
	if !ok || len(refused.States) == 0 {
		return err
	}
	text := []string{"nothing was changed, since labels are in states that would vanish:"}
	for _, s := range refused.States {
		place := terminal.Escape(s.Machine + "." + s.State)
		text = append(text, fmt.Sprintf("  %s has %s: %s", place, count(int(s.Labels), "label"), adviceOn(s, d.Machine(machines.Name(s.Machine)))))
	}
	return errors.New(strings.Join(text, "\n"))
}

// adviceOn says where the labels in a state that vanishes can go; m is their machine, nil if it
// vanishes too.
func adviceOn(s client.StateLabels, m *machines.Machine) string {
	if m == nil {
		return "delete them first, or keep the machine"
	}
	var names []string
	for _, state := range m.States {
		names = append(names, string(state.Name))
	}
	return fmt.Sprintf("give --move '%s.%s:NEW', where NEW is one of %s", s.Machine, s.State, strings.Join(names, ", "))
}
