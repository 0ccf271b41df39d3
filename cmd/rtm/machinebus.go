package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"routemaster/client"
	clientmachines "routemaster/client/machines"
	"routemaster/internal/machines"
	"routemaster/internal/terminal"
)

// machineSummary is a machine in the list of all.
type machineSummary struct {
	Name   string           `json:"name"`
	Labels map[string]int64 `json:"labels"`
	// Errored is how many labels are errored.
	Errored int64 `json:"errored"`
}

func newMachineListCommand() *cobra.Command {
	var bus busFlags
	var asJSON bool
	command := &cobra.Command{
		Use:   "list",
		Short: "list the state machines of a bus, with how many labels they have",
		Long: `List the state machines of a bus, by name. ERRORED is how many labels are: their action has failed for good, and waits for
rtm label retry.

Without a terminal each machine is a line with name, and the numbers of states, of labels and of those that are errored,
separated by tabs.`,
		Example: "  rtm machine list -b @production\n  rtm machine list -b bus.example -t shop--1 --json",
		Args:    arguments(0, 0),
		RunE: bus.run(func(cmd *cobra.Command, c *client.Client, _ []string) error {
			all, err := summarizeMachines(cmd.Context(), c)
			if err != nil {
				return err
			}
			var rows [][]string
			for _, m := range all {
				rows = append(rows, []string{m.Name, strconv.Itoa(len(m.Labels)), number(total(m.Labels)), number(m.Errored)})
			}
			return list{
				json: asJSON, value: append([]machineSummary{}, all...), empty: "There are no state machines.",
				header: []string{"MACHINE", "STATES", "LABELS", "ERRORED"}, rows: rows,
				plain: func(w io.Writer) error { return lines(w, rows) },
			}.print(cmd.OutOrStdout())
		}),
	}
	bus.add(command)
	addJSONFlag(command, &asJSON)
	return command
}

// summarizeMachines reads all machines. One that vanishes meanwhile is left out.
func summarizeMachines(ctx context.Context, c *client.Client) (all []machineSummary, err error) {
	names, _, err := clientmachines.Names(ctx, c)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		info, err := clientmachines.Of(c, name).Show(ctx)
		if isNotFound(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		all = append(all, machineSummary{info.Name, info.Labels, info.Errored})
	}
	return all, nil
}

func number(n int64) string { return strconv.FormatInt(n, 10) }

func total(labels map[string]int64) (sum int64) {
	for _, n := range labels {
		sum += n
	}
	return sum
}

func newMachineShowCommand() *cobra.Command {
	var bus busFlags
	var asJSON bool
	command := &cobra.Command{
		Use:   "show MACHINE",
		Short: "show a state machine: its states, and how many labels are in each",
		Long: `Show a state machine as the bus has it. WHAT is the condition of a gate, or the webhook of an action.

Without a terminal each state is a line with its name, gate or action, the number of its labels, its condition or
webhook, its triggers, and what is next, separated by tabs. --json has all of the definition.`,
		Example:           "  rtm machine show drip_feed -b @production\n  rtm machine show drip_feed -b bus.example -t shop--1 --json",
		Args:              machineArgs(1, 1),
		ValidArgsFunction: bus.completeMachines,
		RunE: bus.run(func(cmd *cobra.Command, c *client.Client, args []string) error {
			info, err := clientmachines.Of(c, args[0]).Show(cmd.Context())
			if err != nil {
				return err
			}
			rows, clients, err := stateRows(info)
			if err != nil {
				return err
			}
			if out := cmd.OutOrStdout(); !asJSON && terminal.Is(out) {
				fmt.Fprintf(out, "%s: version %d, applied %s; %s, %d errored; for %s\n\n",
					printable(info.Name), info.Version, clock(info.AppliedAt.Time), count(int(total(info.Labels)), "label"), info.Errored,
					cmp.Or(strings.Join(clients, ", "), "all clients"))
			}
			return list{
				json: asJSON, value: info, header: []string{"STATE", "KIND", "LABELS", "WHAT", "TRIGGERS", "NEXT"}, rows: rows,
				plain: func(w io.Writer) error { return lines(w, rows) },
			}.print(cmd.OutOrStdout())
		}),
	}
	bus.add(command)
	command.Flags().BoolVar(&asJSON, "json", false, "print a JSON object")
	return command
}

// shownState is a state of a definition, as the bus shows it.
type shownState struct {
	Gate      string           `json:"gate"`
	Condition string           `json:"exit_condition"`
	Triggers  []map[string]any `json:"triggers"`
	Action    string           `json:"action"`
	Webhook   string           `json:"webhook"`
	Next      json.RawMessage  `json:"next"`
}

// stateRows are the states of a machine in the order of its definition, and the clients that it is
// for, none if it is for all.
func stateRows(info clientmachines.Info) (rows [][]string, clients []string, err error) {
	var definition struct {
		States  []shownState
		Clients []string
	}
	if err := json.Unmarshal(info.Definition, &definition); err != nil {
		return nil, nil, fmt.Errorf("the bus shows a definition that is none: %w", err)
	}
	for _, s := range definition.States {
		kind := "gate"
		if s.Action != "" {
			kind = "action"
		}
		name := cmp.Or(s.Gate, s.Action)
		rows = append(rows, []string{
			name, kind, number(info.Labels[name]), cmp.Or(s.Webhook, oneLine(s.Condition)), showTriggers(s.Triggers), showNext(s.Next),
		})
	}
	return rows, definition.Clients, nil
}

// oneLine is a condition on one line, unless it has a comment, which goes to the end of its line.
func oneLine(condition string) string {
	if strings.Contains(condition, "#") {
		return condition
	}
	var parts []string
	for line := range strings.Lines(condition) {
		parts = append(parts, strings.TrimSpace(line))
	}
	return strings.TrimSpace(strings.Join(parts, " "))
}

// showTriggers names triggers by their kind and its value, "-" if there is none.
func showTriggers(triggers []map[string]any) string {
	var texts []string
	for _, t := range triggers {
		// A topic's may have metadata too, which say where its data go.
		for _, kind := range []string{"topic", "metadata", "time", "interval", "event"} {
			if value, ok := t[kind]; ok {
				texts = append(texts, fmt.Sprintf("%s %v", kind, value))
				break
			}
		}
	}
	return cmp.Or(strings.Join(texts, ", "), "-")
}

// showNext says where a state leads: to another, or by a value to several; "-" if nowhere.
func showNext(next json.RawMessage) string {
	var state string
	if len(next) == 0 || json.Unmarshal(next, &state) == nil {
		return cmp.Or(state, "-")
	}
	var by struct {
		Path         string
		Destinations []struct {
			State string
			Value json.RawMessage
		}
		Default string
	}
	if json.Unmarshal(next, &by) != nil {
		return string(next)
	}
	var texts []string
	for _, d := range by.Destinations {
		texts = append(texts, fmt.Sprintf("%s: %s", d.Value, d.State))
	}
	return fmt.Sprintf("by %s: %s", by.Path, strings.Join(append(texts, "else "+by.Default), ", "))
}

// machineArgs accepts atLeast to atMost arguments, the first of which names a machine.
func machineArgs(atLeast, atMost int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := arguments(atLeast, atMost)(cmd, args); err != nil || len(args) == 0 {
			return err
		}
		if err := machines.Name(args[0]).Validate(); err != nil {
			return usageError{fmt.Errorf("%q does not name a machine: %s", args[0], detailOf(err))}
		}
		return nil
	}
}

// plainName is a machine's name that shells, which evaluate what they complete, leave as it is.
var plainName = regexp.MustCompile(`^[\w.-]+$`)

// completeMachines completes the first argument with the bus's machines.
func (b *busFlags) completeMachines(cmd *cobra.Command, args []string, start string) ([]string, cobra.ShellCompDirective) {
	return b.complete(0, 1, func(ctx context.Context, c *client.Client) []string {
		names, _, _ := clientmachines.Names(ctx, c)
		return names
	}, plainName.MatchString)(cmd, args, start)
}
