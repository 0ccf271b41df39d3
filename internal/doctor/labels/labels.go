// Package labels examines the labels of state machines: their records, the lists of machines, of
// states and of errored labels, their metadata and histories, their entries in the queue, and the
// moves that are to be published.
//
// Where the record and something else differ, the record is right. What belongs to a label is not
// enough to make its record again.
package labels

import (
	"strings"

	"routemaster/internal/doctor/exam"
	"routemaster/internal/doctor/scan"
	"routemaster/internal/machines"
	"routemaster/internal/machines/labelstore"
)

// examination is that of labels. Its keys have the namespace. Labels are named by their id: the
// machine, a slash and the name.
type examination struct {
	*exam.Examination
	labels labelstore.Keys
}

func newExamination(e *exam.Examination) examination {
	return examination{e, labelstore.Keys{Namespace: e.Keys.Namespace}}
}

// Find looks for what does not fit in records, lists, metadata and histories.
func Find(e *exam.Examination) {
	x := newExamination(e)
	for id, label := range e.Labels {
		x.findForeign(id, label)
		x.findRecord(id, label)
	}
	for of, names := range e.Each(scan.LabelsPrefix) {
		colon := strings.LastIndexByte(of, ':') // a machine's name may have one, a state's has not
		machine, state := of[:colon], of[colon+1:]
		for name := range names {
			label := e.Labels[machine+"/"+name]
			x.findListed(e.Full(scan.LabelsPrefix+of), machine, name, !label.Deleted && label.State == state, whatIs(label))
		}
	}
	for machine, names := range e.Each(labelstore.Keys{}.Names("")) {
		for name := range names {
			label := e.Labels[machine+"/"+name]
			x.findListed(x.labels.Names(machines.Name(machine)), machine, name, label.There && !label.Deleted, whatIs(label))
		}
	}
	for machine, names := range e.Each(labelstore.Keys{}.Errored("")) {
		for name := range names {
			label, what := e.Labels[machine+"/"+name], "is not errored"
			if !label.There || label.Deleted {
				what = whatIs(label)
			}
			x.findListed(x.labels.Errored(machines.Name(machine)), machine, name, isErrored(label), what)
		}
	}
	x.findLost()
	x.findLeft()
	x.findOutboxes()
}

func isErrored(label scan.Label) bool { return label.Errored && !label.Deleted }

// whatIs says what has become of a label.
func whatIs(label scan.Label) string {
	switch {
	case !label.There:
		return "is not there"
	case label.Deleted:
		return "is deleted"
	}
	return "is in " + label.State
}

// record is the key of a label's record.
func (x examination) record(id string) string {
	machine, name, _ := strings.Cut(id, "/")
	return x.labels.Label(machines.Name(machine), machines.LabelName(name))
}

// unchanged checks that a label's record says what was read of it; also if there was none.
func (x examination) unchanged(id string) []exam.Check {
	record, label := x.record(id), x.Labels[id]
	return []exam.Check{
		exam.Is(label.State, "HGET", record, "state"), x.says(id, "deleted_at", label.Deleted),
		x.says(id, "errored_at", label.Errored),
	}
}

// says checks whether a label's record has a field.
func (x examination) says(id, field string, has bool) exam.Check {
	number := 0
	if has {
		number = 1
	}
	return exam.Is(number, "HEXISTS", x.record(id), field)
}

// findForeign looks for a label that belongs to another partition. Nobody would look for it here.
// What is there of it is judged as that of others is.
func (x examination) findForeign(id string, label scan.Label) {
	if x.Redis.IsOneOfSeveral() && !x.Redis.Owns(id) && label.There {
		x.Add(x.record(id), "belongs to another partition", "", []exam.Check{exam.Is(1, "EXISTS", x.record(id))})
	}
}

// findRecord looks at a record: what it says has to be in the lists, and its metadata there.
func (x examination) findRecord(id string, label scan.Label) {
	if label.Deleted {
		return
	}
	machine, name, _ := strings.Cut(id, "/")
	x.findUnlisted(labelstore.Keys{}.Labels(machines.Name(machine), machines.StateName(label.State)), id, name)
	x.findUnlisted(labelstore.Keys{}.Names(machines.Name(machine)), id, name)
	if label.Errored {
		x.findUnlisted(labelstore.Keys{}.Errored(machines.Name(machine)), id, name)
	}
	if _, there := x.Elements[scan.MetadataPrefix+id]; !there {
		x.Add(x.record(id), "has no metadata", "",
			append(x.unchanged(id), exam.Is(0, "EXISTS", x.Full(scan.MetadataPrefix+id))))
	}
}

// findUnlisted looks for a label in a list, without the namespace, that has to have it.
func (x examination) findUnlisted(list, id, name string) {
	if !x.Has(list, name) {
		x.Add(x.record(id), "is not in "+list, "added there",
			append(x.unchanged(id), exam.Is("", "ZSCORE", x.Full(list), name)), exam.Command{"ZADD", x.Full(list), 0, name})
	}
}

// findListed looks at a label in a list, in which it has to be or not.
func (x examination) findListed(list, machine, name string, fits bool, what string) {
	if !fits {
		x.Add(list, "lists "+name+", which "+what, "removed",
			append(x.unchanged(machine+"/"+name), exam.Not("", "ZSCORE", list, name)), exam.Command{"ZREM", list, name})
	}
}

// findLeft looks for metadata and histories that were left of labels. Metadata without a record is
// kept: clients may have it nowhere else. A history is not, lest a new label of that name has it.
func (x examination) findLeft() {
	for id := range x.Each(scan.MetadataPrefix) {
		metadata := x.Full(scan.MetadataPrefix + id)
		checks := append(x.unchanged(id), exam.Is(1, "EXISTS", metadata))
		switch label := x.Labels[id]; {
		case !label.There:
			x.Add(metadata, "is of a label that is not there", "", checks)
		case label.Deleted:
			x.Add(metadata, "is of a label that is deleted", "removed", checks, exam.Command{"DEL", metadata})
		}
	}
	for id := range x.Each(scan.MovesPrefix) {
		if moves := x.Full(scan.MovesPrefix + id); !x.Labels[id].There {
			x.Add(moves, "is of a label that is not there", "removed",
				append(x.unchanged(id), exam.Is(1, "EXISTS", moves)), exam.Command{"DEL", moves})
		}
	}
}
