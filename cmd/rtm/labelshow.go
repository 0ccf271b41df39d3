package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"routemaster/client"
	"routemaster/client/machines"
	"routemaster/internal/bus"
	"routemaster/internal/terminal"
	"routemaster/internal/top"
)

func newLabelShowCommand(to *busFlags) *cobra.Command {
	var asJSON bool
	command := &cobra.Command{
		Use:   "show MACHINE LABEL",
		Short: "show a label: where it is, and why it waits there",
		Long: `Show where a label is, since when, and why: the condition of its gate with the value of each part, and what will have it
evaluated, first what comes next; or how its action has failed. As a table on a terminal, else a line for each, with name
and value separated by a tab. What depends on a feed is unknown: rtm label evaluate --dry-run asks it. If no worker of the
bus moves labels, a line on stderr says so.`,
		Example:           "  rtm label show drip_feed user-7 -b @production\n  rtm label show drip_feed user-7 --json -b @production",
		Args:              labelArgs(1, 1, 1),
		ValidArgsFunction: to.completeMachines,
		RunE: to.run(func(cmd *cobra.Command, c *client.Client, args []string) error {
			status, err := machines.Of(c, args[0]).Label(cmd.Context(), args[1])
			if err != nil {
				return err
			}
			sayThatNoneMoves(cmd, c, status)
			return printStatus(cmd, status, asJSON)
		}),
	}
	command.Flags().BoolVar(&asJSON, "json", false, "print a JSON object")
	return command
}

// sayThatNoneMoves says on stderr why no label moves, if that is so and a label is not at its end.
func sayThatNoneMoves(cmd *cobra.Command, c *client.Client, s machines.Status) {
	if s.Waiting == nil && s.Action == nil {
		return
	}
	if p, found := top.NewReader(c).Find(cmd.Context(), "no-worker", "no-machine-threads"); found {
		fmt.Fprintln(cmd.ErrOrStderr(), "rtm: no label moves now: "+terminal.Escape(p.Title+" "+p.Detail))
	}
}

func newLabelEvaluateCommand(to *busFlags) *cobra.Command {
	var wait waitFlag
	var dryRun, asJSON bool
	command := &cobra.Command{
		Use:   "evaluate MACHINE LABEL",
		Short: "evaluate the gate of a label now, or say what would happen",
		Long: `Evaluate the gate of a label now, which may move it, and show the label then as rtm label show does. With --dry-run show
what would happen, and change nothing: the value of the condition and of its parts, and where the label would go. Feeds are
asked.`,
		Example:           "  rtm label evaluate drip_feed user-7 --dry-run -b @production\n  rtm label evaluate drip_feed user-7 -b @production",
		Args:              labelArgs(1, 1, 1),
		ValidArgsFunction: to.completeMachines,
		RunE: wait.run(to, func(cmd *cobra.Command, m *machines.Machine, args []string) error {
			if !dryRun {
				status, err := m.Evaluate(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				return printStatus(cmd, status, asJSON)
			}
			would, err := m.DryRun(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			to := cmp.Or(would.To, "nowhere: it would stay")
			rows := append([][]string{{"state", would.State}}, explanationRows(would.Explanation)...)
			return printRows(cmd.OutOrStdout(), append(rows, []string{"would move to", to}), would, asJSON)
		}),
	}
	wait.add(command)
	command.Flags().BoolVar(&dryRun, "dry-run", false, "only say what would happen")
	command.Flags().BoolVar(&asJSON, "json", false, "print a JSON object")
	return command
}

// printStatus prints the status of the label that a command is about.
func printStatus(cmd *cobra.Command, status machines.Status, asJSON bool) error {
	evaluate := bus.Command("label evaluate", cmd.Flags().Args()...)
	return printRows(cmd.OutOrStdout(), statusRows(status, evaluate, time.Now()), status, asJSON)
}

// printRows prints what is known of one thing: names and values, or an object.
func printRows(w io.Writer, rows [][]string, value any, asJSON bool) error {
	return list{
		json: asJSON, value: value, header: []string{"WHAT", "VALUE"}, rows: rows,
		plain: func(w io.Writer) error { return lines(w, rows) },
	}.print(w)
}

// statusRows are the rows of rtm label show. Evaluate is the command that has the gate evaluated.
func statusRows(s machines.Status, evaluate string, now time.Time) [][]string {
	rows := [][]string{{"state", s.State}, {"since", s.EnteredAt.Format(time.RFC3339) + " (" + span(now.Sub(s.EnteredAt.Time)) + " ago)"}}
	if s.Waiting != nil {
		rows = append(rows, explanationRows(s.Waiting.Explanation)...)
		rows = append(rows, triggerRows(s.Waiting.Triggers, evaluate, now)...)
		if mayMove(*s.Waiting) {
			rows = append(rows, []string{"hint", "the condition holds, but has not been evaluated since: " + evaluate + " does that now"})
		}
	}
	if s.Action != nil {
		rows = append(rows, actionRows(*s.Action, now)...)
	}
	if s.Waiting == nil && s.Action == nil && s.Errored == nil && len(s.Route) == 0 {
		rows = append(rows, []string{"end", "the label moves no further"})
	}
	if s.Errored != nil {
		rows = append(rows, []string{"errored", s.Errored.At.Format(time.RFC3339) + ": " + s.Errored.Reason})
	}
	if len(s.Route) > 0 {
		rows = append(rows, []string{"route", strings.Join(s.Route, ", ")})
	}
	return append(rows, []string{"metadata", terminal.JSON(s.Metadata)})
}

// mayMove reports whether a gate would open, and has not been evaluated again yet.
func mayMove(w machines.Waiting) bool {
	isRetry := func(t machines.Trigger) bool { return t.Type == "retry" }
	return w.Value != nil && *w.Value && w.Error == "" && !slices.ContainsFunc(w.Triggers, isRetry)
}

// explanationRows are a condition, its value, and those of its parts.
func explanationRows(x machines.Explanation) [][]string {
	value := "-"
	if x.Value != nil {
		value = strconv.FormatBool(*x.Value)
	}
	rows := [][]string{{"condition", oneLine(x.Condition)}, {"value", valueText(value, x.Unknown, x.Error)}}
	for _, p := range x.Parts {
		rows = append(rows, []string{"part", p.Text + " -> " + valueText(terminal.JSON(p.Value), p.Unknown, p.Error)})
	}
	return rows
}

// valueText is a value, or why there is none.
func valueText(value string, unknown bool, failure string) string {
	switch {
	case failure != "":
		return "fails: " + failure
	case unknown:
		return "unknown, since it depends on a feed"
	}
	return value
}

// triggerRows are what will have a gate evaluated: first what is due at a time, soonest first.
func triggerRows(triggers []machines.Trigger, evaluate string, now time.Time) (rows [][]string) {
	order := slices.SortedStableFunc(slices.Values(triggers), func(a, b machines.Trigger) int {
		if a.At.IsZero() != b.At.IsZero() {
			if a.At.IsZero() {
				return 1
			}
			return -1
		}
		return a.At.Compare(b.At.Time)
	})
	for _, t := range order {
		name := "trigger"
		if len(rows) == 0 && !t.At.IsZero() {
			name = "next trigger"
		}
		rows = append(rows, []string{name, triggerText(t, now)})
	}
	if len(rows) == 0 {
		rows = [][]string{{"trigger", "none: only " + evaluate + " has it evaluated"}}
	}
	return rows
}

func triggerText(t machines.Trigger, now time.Time) string {
	text := t.Type
	switch {
	case t.Type == "metadata":
		return "metadata " + t.Path
	case t.Type == "topic":
		return "topic " + t.Topic
	case t.At.IsZero():
		return text + ", never: the metadata names no time zone"
	}
	return text + " " + dueText(t.At.Time, now)
}

// dueText is a time to come.
func dueText(at, now time.Time) string {
	in := "now"
	if at.After(now) {
		in = "in " + span(at.Sub(now))
	}
	return at.Format(time.RFC3339) + " (" + in + ")"
}

// span is a duration, rounded to what matters.
func span(d time.Duration) string {
	switch {
	case d > 48*time.Hour:
		return fmt.Sprintf("%dd", int(d.Hours())/24)
	case d > time.Hour:
		return strings.TrimSuffix(d.Round(time.Minute).String(), "0s")
	}
	return max(d, 0).Round(time.Second).String()
}

// actionRows are what has come of a webhook so far.
func actionRows(a machines.Action, now time.Time) [][]string {
	rows := [][]string{{"failed attempts", strconv.Itoa(a.Attempts)}}
	if a.LastStatus != 0 {
		rows = append(rows, []string{"last status", strconv.Itoa(a.LastStatus)})
	}
	if a.LastError != "" {
		rows = append(rows, []string{"last error", a.LastError})
	}
	if !a.NextTryAt.IsZero() {
		rows = append(rows, []string{"next try", dueText(a.NextTryAt.Time, now)})
	}
	return rows
}
