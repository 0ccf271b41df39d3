package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	clientmachines "routemaster/client/machines"
	"routemaster/internal/terminal"
)

// machineSummary is a machine in the list of all.
type machineSummary struct {
	Name   string           `json:"name"`
	Labels map[string]int64 `json:"labels"`
	// Errored is how many labels are errored.
	Errored int64 `json:"errored"`
}

var machineListRow = row{
	use: "list", short: "list the state machines of a bus, with how many labels they have",
	long: `List the state machines of a bus, by name. ERRORED is how many labels are: their action has failed for good, and waits for
rtm label retry.

Without a terminal each machine is a line with name, and the numbers of states, of labels and of those that are errored,
separated by tabs.`,
	example: "  rtm machine list -b @production\n  rtm machine list -b bus.example -t shop--1 --json",
	json:    jsonArray,
	run: listing(summarizeMachines, "There are no state machines.", "MACHINE|STATES|LABELS|ERRORED", func(m machineSummary) []any {
		return []any{m.Name, len(m.Labels), total(m.Labels), m.Errored}
	}),
}

// summarizeMachines reads all machines. One that vanishes meanwhile is left out.
func summarizeMachines(c *call) (all []machineSummary, err error) {
	names, _, err := clientmachines.Names(c.Context(), c.bus)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		info, err := clientmachines.Of(c.bus, name).Show(c.Context())
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

func total(labels map[string]int64) (sum int64) {
	for _, n := range labels {
		sum += n
	}
	return sum
}

var machineShowRow = row{
	use: "show MACHINE", short: "show a state machine: its states, and how many labels are in each", kinds: []kind{machine},
	long: `Show a state machine as the bus has it. WHAT is the condition of a gate, or the webhook of an action.

Without a terminal each state is a line with its name, gate or action, the number of its labels, its condition or
webhook, its triggers, and what is next, separated by tabs. --json has all of the definition.`,
	example: "  rtm machine show drip_feed -b @production\n  rtm machine show drip_feed -b bus.example -t shop--1 --json",
	json:    jsonObject,
	run: func(c *call) error {
		info, err := c.machine().Show(c.Context())
		if err != nil {
			return err
		}
		rows, clients, err := stateRows(info)
		if err != nil {
			return err
		}
		if out := c.OutOrStdout(); !c.is("json") && terminal.Is(out) {
			fmt.Fprintf(out, "%s: version %d, applied %s; %s, %d errored; for %s\n\n",
				printable(info.Name), info.Version, clock(info.AppliedAt.Time), count(int(total(info.Labels)), "label"), info.Errored,
				cmp.Or(strings.Join(clients, ", "), "all clients"))
		}
		return c.print(list{value: info, header: []string{"STATE", "KIND", "LABELS", "WHAT", "TRIGGERS", "NEXT"}, rows: rows})
	},
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
