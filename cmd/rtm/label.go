package main

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"routemaster/client"
	"routemaster/client/machines"
	"routemaster/client/subscriber"
	internal "routemaster/internal/machines"
	"routemaster/internal/terminal"
)

func newLabelCommand() *cobra.Command {
	var bus busFlags
	group := newGroup("label", "look at the labels of state machines, and change them",
		"  rtm label show drip_feed user-7 -b @production\n  rtm label set drip_feed user-7 plan=pro -b @production",
		newLabelShowCommand(&bus), newLabelListCommand(&bus), newLabelAddCommand(&bus), newLabelSetCommand(&bus), newLabelDelCommand(&bus),
		newLabelRetryCommand(&bus), newLabelEvaluateCommand(&bus), newLabelHistoryCommand(&bus))
	bus.add(group)
	return group
}

// labelAction does something with a machine's labels. The arguments are those behind the machine.
type labelAction func(cmd *cobra.Command, m *machines.Machine, args []string) error

// runLabels makes a cobra function from one that needs a machine.
func (b *busFlags) runLabels(do labelAction) func(*cobra.Command, []string) error {
	return b.run(func(cmd *cobra.Command, c *client.Client, args []string) error {
		return do(cmd, machines.Of(c, args[0]), args[1:])
	})
}

// labelArgs accepts a machine and atLeast to atMost further arguments, the first of which are names
// of labels.
func labelArgs(atLeast, atMost, names int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if atMost >= 0 {
			atMost++
		}
		if err := machineArgs(1+atLeast, atMost)(cmd, args); err != nil {
			return err
		}
		for i, name := range args[1:] {
			if i == names {
				break
			}
			if err := internal.LabelName(name).Validate(); err != nil {
				return usageError{fmt.Errorf("%q does not name a label: %s", name, detailOf(err))}
			}
		}
		return nil
	}
}

// waitFlag says how long a change waits for its label to come to rest.
type waitFlag struct{ wait time.Duration }

func (f *waitFlag) add(command *cobra.Command) {
	command.Flags().DurationVar(&f.wait, "wait", time.Second, "wait so long for the label to come to rest, 0s to 10s")
}

// run is [busFlags.runLabels] with the flag.
func (f *waitFlag) run(bus *busFlags, do labelAction) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		if f.wait < 0 || f.wait > 10*time.Second || f.wait%time.Millisecond != 0 {
			return wrongFlag("wait", "0s to 10s, in whole ms")
		}
		return bus.runLabels(func(cmd *cobra.Command, m *machines.Machine, args []string) error {
			return do(cmd, m.Waiting(subscriber.Milliseconds(f.wait.Milliseconds())), args)
		})(cmd, args)
	}
}

func newLabelDelCommand(bus *busFlags) *cobra.Command {
	return &cobra.Command{
		Use:   "del MACHINE LABEL [LABEL...]",
		Short: "delete labels",
		Long: `Delete labels with their metadata. It is no error if there is none. The name of a label that was deleted cannot be used
for 24 hours, in which rtm label history still shows its moves.`,
		Example:           "  rtm label del drip_feed user-7 -b @production",
		Args:              labelArgs(1, -1, -1),
		ValidArgsFunction: bus.completeMachines,
		RunE: bus.runLabels(func(cmd *cobra.Command, m *machines.Machine, labels []string) error {
			for _, label := range labels {
				if err := m.Delete(cmd.Context(), label); err != nil {
					return err
				}
			}
			return nil
		}),
	}
}

func newLabelRetryCommand(bus *busFlags) *cobra.Command {
	var wait waitFlag
	command := &cobra.Command{
		Use:   "retry MACHINE LABEL [LABEL...]",
		Short: "have errored labels try their action again",
		Long: `Have errored labels try their action again, and say where each is then. It ends with the first that is not errored.
rtm label list MACHINE --errored has those that are.`,
		Example: "  rtm label retry drip_feed user-7 -b @production\n" +
			"  rtm label list drip_feed --errored -b @production | cut -f 1 | xargs -d '\\n' rtm label retry drip_feed -b @production",
		Args:              labelArgs(1, -1, -1),
		ValidArgsFunction: bus.completeMachines,
		RunE: wait.run(bus, func(cmd *cobra.Command, m *machines.Machine, labels []string) error {
			for _, label := range labels {
				status, err := m.Retry(cmd.Context(), label)
				if err != nil {
					return err
				}
				line := fmt.Sprintf("retried %s: it is in %s", label, status.State)
				if status.Errored != nil {
					line += ", errored: " + status.Errored.Reason
				}
				fmt.Fprintln(cmd.OutOrStdout(), terminal.Escape(line))
			}
			return nil
		}),
	}
	wait.add(command)
	return command
}

// labelLister is what rtm label list is told.
type labelLister struct {
	filter machines.Filter
	after  string
	limit  int
	asJSON bool
}

func newLabelListCommand(bus *busFlags) *cobra.Command {
	var l labelLister
	command := &cobra.Command{
		Use:   "list MACHINE",
		Short: "list the labels of a state machine, with their states",
		Long: `List labels of a machine in the order of the bytes of their names. At most --limit are printed. If there are more, a line
on stderr says which --after goes on with them.

Without a terminal each label is a line with its name and its state, separated by a tab.`,
		Example: "  rtm label list drip_feed -b @production\n  rtm label list drip_feed --state send_welcome --errored -b @production\n" +
			"  rtm label list drip_feed --limit 1000000 --json -b @production",
		Args:              machineArgs(1, 1),
		ValidArgsFunction: bus.completeMachines,
		RunE: func(cmd *cobra.Command, args []string) error {
			if l.limit < 1 {
				return wrongFlag("limit", "1 or more")
			}
			return bus.runLabels(l.run)(cmd, args)
		},
	}
	addJSONFlag(command, &l.asJSON)
	flags := command.Flags()
	flags.StringVar(&l.filter.State, "state", "", "only those in this `STATE`")
	flags.BoolVar(&l.filter.Errored, "errored", false, "only those whose action has failed for good")
	flags.IntVar(&l.limit, "limit", 100, "print `COUNT` labels at most")
	flags.StringVar(&l.after, "after", "", "go on behind this `LABEL`")
	return command
}

func (l *labelLister) run(cmd *cobra.Command, m *machines.Machine, _ []string) error {
	var found []machines.Listed
	var rows [][]string
	more := false
	for label, err := range m.Labels(cmd.Context(), l.filter, l.after) {
		if err != nil {
			return err
		}
		if more = len(found) == l.limit; more {
			break
		}
		found, rows = append(found, label), append(rows, []string{label.Name, label.State})
	}
	err := list{
		json: l.asJSON, value: append([]machines.Listed{}, found...), empty: "There are no such labels.",
		header: []string{"LABEL", "STATE"}, rows: rows,
		plain: func(w io.Writer) error { return lines(w, rows) },
	}.print(cmd.OutOrStdout())
	if more {
		fmt.Fprintf(cmd.ErrOrStderr(), "rtm: there are more labels; go on with --after %s\n", strconv.Quote(terminal.Escape(found[len(found)-1].Name)))
	}
	return err
}

func newLabelHistoryCommand(bus *busFlags) *cobra.Command {
	var asJSON bool
	command := &cobra.Command{
		Use:   "history MACHINE LABEL",
		Short: "list the moves of a label, and why it has moved",
		Long: `List the last 100 moves of a label, the latest first; also of one that was deleted, for 24 hours. If there were more, a
line on stderr says how many. TRIGGER is what had the gate evaluated, STATUS that of the answer to the action's webhook.
--json also has the values of the condition's parts.

Without a terminal each move is a line with its time, the states that it was from and to (empty for the creation and the
deletion), the trigger and the status, separated by tabs.`,
		Example:           "  rtm label history drip_feed user-7 -b @production\n  rtm label history drip_feed user-7 --json -b @production",
		Args:              labelArgs(1, 1, 1),
		ValidArgsFunction: bus.completeMachines,
		RunE: bus.runLabels(func(cmd *cobra.Command, m *machines.Machine, args []string) error {
			history, err := m.History(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			var rows, table [][]string
			for _, move := range history.Moves {
				row := []string{move.At.Format(time.RFC3339Nano), orEmpty(move.From), orEmpty(move.To), move.Why.Trigger, unlessZero(move.Why.Status)}
				shown := []string{clock(move.At.Time)}
				for _, cell := range row[1:] {
					shown = append(shown, orDash(cell))
				}
				rows, table = append(rows, row), append(table, shown)
			}
			err = list{
				json: asJSON, value: append([]machines.Move{}, history.Moves...), empty: "It has not moved.",
				header: []string{"AT", "FROM", "TO", "TRIGGER", "STATUS"}, rows: table,
				plain: func(w io.Writer) error { return lines(w, rows) },
			}.print(cmd.OutOrStdout())
			if shown := int64(len(rows)); shown < history.Count {
				fmt.Fprintf(cmd.ErrOrStderr(), "rtm: these are the last %d of %d moves; older ones are not kept\n", shown, history.Count)
			}
			return err
		}),
	}
	addJSONFlag(command, &asJSON)
	return command
}

func orEmpty(state *string) string {
	if state == nil {
		return ""
	}
	return *state
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

func unlessZero(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

// errNoChange is the error of a change that changes nothing.
var errNoChange = usageError{errors.New("nothing to merge; give PATH=VALUE, such as plan=pro, or --data")}

// assign reads path=value into an object: the value is JSON, or else a string as it is.
func assign(object internal.Object, text string) (internal.Object, error) {
	path, value, found := strings.Cut(text, "=")
	if !found || path == "" || strings.HasPrefix(path, ".") || strings.HasSuffix(path, ".") || strings.Contains(path, "..") {
		return nil, usageError{fmt.Errorf("%q is not PATH=VALUE, such as plan=pro or address.city=null", text)}
	}
	names := strings.Split(path, ".")
	wrapped, err := internal.ParseObject([]byte(`{"value":` + value + `}`))
	if err != nil && strings.ContainsAny(value[:min(1, len(value))], `{["`) {
		return nil, usageError{fmt.Errorf("%s: the value is not JSON", text)}
	}
	leaf := any(value)
	if err == nil && len(wrapped) == 1 {
		leaf = wrapped["value"]
	}
	for i := len(names) - 1; i >= 0; i-- {
		leaf = map[string]any{names[i]: leaf}
	}
	return object.Merge(leaf.(map[string]any), true), nil
}
