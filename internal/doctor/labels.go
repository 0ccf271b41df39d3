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
	return x.Full(keyOfLabel(id))
}

// keyOfLabel is record without the namespace.
func keyOfLabel(id string) string {
	machine, name, _ := strings.Cut(id, "/")
	return keys.Label(machines.Name(machine), machines.LabelName(name))
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

// findRecord looks at a record: what it says has to be in the lists, and its metadata there.
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

// findListed looks at a label in a list, in which it has to be or not.
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
