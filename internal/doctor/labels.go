package doctor

import (
	"encoding/json"
	"fmt"
	"strings"

	"routemaster/internal/bus"
	"routemaster/internal/machines"
	"routemaster/internal/wire"
)

// labelExam examines labels. Its keys have the namespace. A label's id is the machine, a slash and
// the name.
type labelExam struct {
	*Examination
}

// findLabels looks for damage in records, lists, metadata and histories.
func findLabels(e *Examination) {
	x := labelExam{e}
	for id, label := range e.Labels {
		x.findRecord(id, label)
	}
	for of, names := range e.Each(LabelsPrefix) {
		colon := strings.LastIndexByte(of, ':') // a machine's name may have one, a state's has not
		machine, state := of[:colon], of[colon+1:]
		for name := range names {
			label := e.Labels[machine+"/"+name]
			x.findListed(LabelsPrefix+of, machine, name, !label.Deleted && label.State == state, whatIs(label))
		}
	}
	for machine, names := range e.Each(keys.LabelNames("")) {
		for name := range names {
			label := e.Labels[machine+"/"+name]
			x.findListed(keys.LabelNames(machines.Name(machine)), machine, name, label.There && !label.Deleted, whatIs(label))
		}
	}
	for machine, names := range e.Each(keys.ErroredLabels("")) {
		for name := range names {
			label, what := e.Labels[machine+"/"+name], "is not errored"
			if !label.There || label.Deleted {
				what = whatIs(label)
			}
			x.findListed(keys.ErroredLabels(machines.Name(machine)), machine, name, isErrored(label), what)
		}
	}
	x.findLost()
	x.findLeft()
	x.findOutboxes()
}

func isErrored(label Label) bool { return label.Errored && !label.Deleted }

// whatIs describes a label's current state.
func whatIs(label Label) string {
	switch {
	case !label.There:
		return "is not there"
	case label.Deleted:
		return "is deleted"
	}
	return "is in " + label.State
}

// record is the key of a label's record.
func (x labelExam) record(id string) string {
	return x.Full(keyOfLabel(id))
}

// keyOfLabel is record without the namespace.
func keyOfLabel(id string) string {
	machine, name, _ := strings.Cut(id, "/")
	return keys.Label(machines.Name(machine), machines.LabelName(name))
}

// unchanged checks that a label's record, or its absence, is as scanned.
func (x labelExam) unchanged(id string) []Check {
	record, label := x.record(id), x.Labels[id]
	return []Check{
		Is(label.State, "HGET", record, "state"), x.says(id, "deleted_at", label.Deleted),
		x.says(id, "errored_at", label.Errored),
	}
}

// says checks whether a label's record has a field.
func (x labelExam) says(id, field string, has bool) Check {
	number := 0
	if has {
		number = 1
	}
	return Is(number, "HEXISTS", x.record(id), field)
}

// findRecord checks a record: the lists must match it, and its metadata must exist.
func (x labelExam) findRecord(id string, label Label) {
	if label.Deleted {
		return
	}
	machine, name, _ := strings.Cut(id, "/")
	lists := []string{
		keys.LabelsIn(machines.Name(machine), machines.StateName(label.State)), keys.LabelNames(machines.Name(machine)),
	}
	if label.Errored {
		lists = append(lists, keys.ErroredLabels(machines.Name(machine)))
	}
	for _, list := range lists {
		x.mustList(keyOfLabel(id), list, name, 0, x.unchanged(id)...)
	}
	if _, there := x.Elements[MetadataPrefix+id]; !there {
		x.Add(x.record(id), "has no metadata", "",
			append(x.unchanged(id), Is(0, "EXISTS", x.Full(MetadataPrefix+id))))
	}
}

// findListed checks that a label in a list belongs there.
func (x labelExam) findListed(list, machine, name string, fits bool, what string) {
	if !fits {
		x.mustNotList(list, "lists "+name+", which "+what, name, x.unchanged(machine+"/"+name)...)
	}
}

// findLeft looks for metadata that was left of labels. Without a record it is kept: clients may
// have it nowhere else.
func (x labelExam) findLeft() {
	for id := range x.Each(MetadataPrefix) {
		switch label := x.Labels[id]; {
		case !label.There:
			x.Add(x.Full(MetadataPrefix+id), "is of a label that is not there", "",
				append(x.unchanged(id), x.isThere(MetadataPrefix+id)))
		case label.Deleted:
			x.mustGo(MetadataPrefix+id, "is of a label that is deleted", x.unchanged(id)...)
		}
	}
}

// place is a state of a machine.
type place struct {
	machine machines.Name
	state   machines.StateName
}

func placeOf(id string, label Label) place {
	machine, _, _ := strings.Cut(id, "/")
	return place{machines.Name(machine), machines.StateName(label.State)}
}

// findLabelEntries looks for labels that need a worker and have no queue entry: labels that were
// asked for, labels with a trigger that is not over, and labels in an action that are not errored.
// [findEntries] covers misplaced entries.
func findLabelEntries(e *Examination) {
	x := labelExam{e}
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

// states returns the defined states: true for gates. It is nil if there are no definitions, or they
// cannot be read.
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

// actions returns the states that are actions, except states under review: they may have been
// gates, and the review asks for their labels one by one.
func (x labelExam) actions() map[place]bool {
	actions := map[place]bool{}
	for of, isGate := range x.states() {
		if !isGate {
			actions[of] = true
		}
	}
	var none machines.Definitions // without definitions, a walk can only be a review
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
