package doctor

import (
	"encoding/json"
	"fmt"
	"strings"

	"routemaster/internal/bus"
	"routemaster/internal/machines"
	"routemaster/internal/wire"
)

// place is a state of a machine.
type place struct {
	machine machines.Name
	state   machines.StateName
}

func placeOf(id string, label Label) place {
	machine, _, _ := strings.Cut(id, "/")
	return place{machines.Name(machine), machines.StateName(label.State)}
}

// findLabelEntries looks for labels for which workers have something to do, and of which the queue
// has nothing: those that were asked for, or are looked at for a trigger until that has come to an
// end, and those in an action that are not errored. [findEntries] looks at an entry that is only
// somewhere.
func findLabelEntries(e *Examination) {
	x := newLabelExam(e)
	definitions, actions := e.Elements[keys.Definitions()], x.actions()
	required := func(yield func(string) bool) {
		for id, label := range e.Labels {
			due := label.Asked || label.Triggered || actions[placeOf(id, label)] && !label.Errored
			if !due || label.Deleted {
				continue
			}
			entry := EntryOfLabel(id)
			if _, seen := e.Queues[bus.QueueMachines].Entries[entry]; !seen && !yield(entry) {
				return
			}
		}
	}
	e.findMissing(bus.QueueMachines, required, func(entry string) (string, []Check) {
		id := LabelIn(entry)
		label := e.Labels[id]
		checks := append(x.unchanged(id), x.says(id, "asked", label.Asked), x.says(id, "trigger", label.Triggered))
		if !label.Asked && !label.Triggered {
			checks = append(checks, Is(definitions["version"], "HGET", x.Keys.Definitions(), "version"))
		}
		return x.record(id), checks
	})
}

// states are those that are defined: true for gates. It is nil if there are no definitions, or
// nobody can tell what they are.
func (x labelExam) states() map[place]bool {
	var outline map[machines.Name]map[machines.StateName]bool
	text := x.Elements[keys.Definitions()]["outline"]
	if err := json.Unmarshal([]byte(text), &outline); err != nil {
		return nil
	}
	states := map[place]bool{}
	for machine, of := range outline {
		for state, isGate := range of {
			states[place{machine, state}] = isGate
		}
	}
	return states
}

// findLost looks for labels in states that are not defined, and that they are not about to leave.
// No list of the bus shows them.
func (x labelExam) findLost() {
	states, definitions := x.states(), x.Elements[keys.Definitions()]
	var moves []machines.StateMove
	if states == nil || json.Unmarshal([]byte(definitions["moves"]), &moves) != nil {
		return
	}
	for _, move := range moves {
		states[place{move.Machine, move.From}] = true
	}
	for id, label := range x.Labels {
		of := placeOf(id, label)
		if _, defined := states[of]; defined || label.Deleted || !label.There {
			continue
		}
		problem := fmt.Sprintf("is in %s, which is not defined: apply definitions with ?move=%s.%[1]s:STATE", of.state, of.machine)
		x.Add(x.record(id), problem, "", append(x.unchanged(id),
			Is(definitions["version"], "HGET", x.Keys.Definitions(), "version")))
	}
}

// actions are the states that are actions, but those of which a review is under way: they may have
// been gates, and it asks for their labels one after the other.
func (x labelExam) actions() map[place]bool {
	actions := map[place]bool{}
	for of, isGate := range x.states() {
		if !isGate {
			actions[of] = true
		}
	}
	var none machines.Definitions // of which a walk can only be a review
	for entry := range x.Queues[bus.QueueMachines].Entries {
		job, err := wire.UnpackJob(entry)
		if err != nil || job.Name != bus.JobWalk || len(job.Args) != 2 {
			continue
		}
		if walk, isReview := none.Walk(machines.Name(job.Args[0]), job.Args[1]); isReview {
			delete(actions, place{walk.Machine, walk.State})
		}
	}
	return actions
}
