package doctor

import (
	"strings"

	"routemaster/internal/machines"
)

// labelExam is that of labels. Its keys have the namespace. Labels are named by their id: the
// machine, a slash and the name.
type labelExam struct {
	*Examination
}

func newLabelExam(e *Examination) labelExam {
	return labelExam{e}
}

// findLabels looks for what does not fit in records, lists, metadata and histories.
func findLabels(e *Examination) {
	x := newLabelExam(e)
	for id, label := range e.Labels {
		x.findForeign(id, label)
		x.findRecord(id, label)
	}
	for of, names := range e.Each(LabelsPrefix) {
		colon := strings.LastIndexByte(of, ':') // a machine's name may have one, a state's has not
		machine, state := of[:colon], of[colon+1:]
		for name := range names {
			label := e.Labels[machine+"/"+name]
			x.findListed(e.Full(LabelsPrefix+of), machine, name, !label.Deleted && label.State == state, whatIs(label))
		}
	}
	for machine, names := range e.Each(keys.LabelNames("")) {
		for name := range names {
			label := e.Labels[machine+"/"+name]
			x.findListed(x.Keys.LabelNames(machines.Name(machine)), machine, name, label.There && !label.Deleted, whatIs(label))
		}
	}
	for machine, names := range e.Each(keys.ErroredLabels("")) {
		for name := range names {
			label, what := e.Labels[machine+"/"+name], "is not errored"
			if !label.There || label.Deleted {
				what = whatIs(label)
			}
			x.findListed(x.Keys.ErroredLabels(machines.Name(machine)), machine, name, isErrored(label), what)
		}
	}
	x.findLost()
	x.findLeft()
	x.findOutboxes()
}

func isErrored(label Label) bool { return label.Errored && !label.Deleted }

// whatIs says what has become of a label.
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
	machine, name, _ := strings.Cut(id, "/")
	return x.Keys.Label(machines.Name(machine), machines.LabelName(name))
}

// unchanged checks that a label's record says what was read of it; also if there was none.
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

// findForeign looks for a label that belongs to another partition. Nobody would look for it here.
// What is there of it is judged as that of others is.
func (x labelExam) findForeign(id string, label Label) {
	if x.Redis.IsOneOfSeveral() && !x.Redis.Owns(id) && label.There {
		x.Add(x.record(id), "belongs to another partition", "", []Check{Is(1, "EXISTS", x.record(id))})
	}
}

// findRecord looks at a record: what it says has to be in the lists, and its metadata there.
func (x labelExam) findRecord(id string, label Label) {
	if label.Deleted {
		return
	}
	machine, name, _ := strings.Cut(id, "/")
	x.findUnlisted(keys.LabelsIn(machines.Name(machine), machines.StateName(label.State)), id, name)
	x.findUnlisted(keys.LabelNames(machines.Name(machine)), id, name)
	if label.Errored {
		x.findUnlisted(keys.ErroredLabels(machines.Name(machine)), id, name)
	}
	if _, there := x.Elements[MetadataPrefix+id]; !there {
		x.Add(x.record(id), "has no metadata", "",
			append(x.unchanged(id), Is(0, "EXISTS", x.Full(MetadataPrefix+id))))
	}
}

// findUnlisted looks for a label in a list, without the namespace, that has to have it.
func (x labelExam) findUnlisted(list, id, name string) {
	if !x.Has(list, name) {
		x.Add(x.record(id), "is not in "+list, "added there",
			append(x.unchanged(id), Is("", "ZSCORE", x.Full(list), name)), Command{"ZADD", x.Full(list), 0, name})
	}
}

// findListed looks at a label in a list, in which it has to be or not.
func (x labelExam) findListed(list, machine, name string, fits bool, what string) {
	if !fits {
		x.Add(list, "lists "+name+", which "+what, "removed",
			append(x.unchanged(machine+"/"+name), Not("", "ZSCORE", list, name)), Command{"ZREM", list, name})
	}
}

// findLeft looks for metadata and histories that were left of labels. Metadata without a record is
// kept: clients may have it nowhere else. A history is not, lest a new label of that name has it.
func (x labelExam) findLeft() {
	for id := range x.Each(MetadataPrefix) {
		metadata := x.Full(MetadataPrefix + id)
		checks := append(x.unchanged(id), Is(1, "EXISTS", metadata))
		switch label := x.Labels[id]; {
		case !label.There:
			x.Add(metadata, "is of a label that is not there", "", checks)
		case label.Deleted:
			x.Add(metadata, "is of a label that is deleted", "removed", checks, Command{"DEL", metadata})
		}
	}
	for id := range x.Each(MovesPrefix) {
		if moves := x.Full(MovesPrefix + id); !x.Labels[id].There {
			x.Add(moves, "is of a label that is not there", "removed",
				append(x.unchanged(id), Is(1, "EXISTS", moves)), Command{"DEL", moves})
		}
	}
}
