package main

import (
	"context"
	"fmt"
	"slices"

	"routemaster/client"
	clientmachines "routemaster/client/machines"
	"routemaster/internal/machines"
)

// machineChange describes in words how a definition changes the machines of a bus.
type machineChange struct {
	lines []string
	// removes is whether a machine or a state goes.
	removes bool
}

// changeOf compares a definition with the machines that a bus has.
func changeOf(ctx context.Context, c *client.Client, d *machines.Definitions, moves []clientmachines.StateMove) (change machineChange, err error) {
	names, _, err := clientmachines.Names(ctx, c)
	if err != nil {
		return change, err
	}
	for _, name := range names {
		now, err := clientmachines.Of(c, name).Show(ctx)
		if isNotFound(err) { // it has gone since
			continue
		}
		if err != nil {
			return change, err
		}
		rows, _, err := stateRows(now)
		if err != nil {
			return change, err
		}
		var states []string
		for _, row := range rows {
			states = append(states, row[0])
		}
		change.compare(now, states, d.Machine(machines.Name(name)), moves)
	}
	for _, m := range d.Machines {
		if !slices.Contains(names, string(m.Name)) {
			change.say("machine %s is new, with %s", m.Name, count(len(m.States), "state"))
		}
	}
	if len(change.lines) == 0 {
		change.say("no machine and no state is added or removed")
	}
	return change, nil
}

// compare compares a machine of the bus, which has some states, with its next definition, nil if it
// goes.
func (c *machineChange) compare(now clientmachines.Info, states []string, next *machines.Machine, moves []clientmachines.StateMove) {
	if next == nil {
		c.removes = true
		c.say("machine %s goes, with %s and %s", now.Name, count(len(states), "state"), count(int(total(now.Labels)), "label"))
		return
	}
	for _, state := range states {
		if next.State(machines.StateName(state)) != nil {
			continue
		}
		c.removes = true
		where := ""
		for _, move := range moves {
			if move.Machine == now.Name && move.From == state {
				where = ", to " + move.To
			}
		}
		c.say("state %s.%s goes, with %s%s", now.Name, state, count(int(now.Labels[state]), "label"), where)
	}
	for _, state := range next.States {
		if !slices.Contains(states, string(state.Name)) {
			c.say("state %s.%s is new", now.Name, state.Name)
		}
	}
}

func (c *machineChange) say(format string, args ...any) {
	c.lines = append(c.lines, fmt.Sprintf(format, args...))
}
