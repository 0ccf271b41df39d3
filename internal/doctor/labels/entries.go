package labels

import (
	"context"
	"encoding/json"
	"strings"

	"routemaster/internal/bus"
	"routemaster/internal/doctor/exam"
	"routemaster/internal/doctor/scan"
	"routemaster/internal/machines"
	"routemaster/internal/machines/labelstore"
	"routemaster/internal/wire"
)

// place is a state of a machine.
type place struct {
	machine machines.Name
	state   machines.StateName
}

func placeOf(id string, label scan.Label) place {
	machine, _, _ := strings.Cut(id, "/")
	return place{machines.Name(machine), machines.StateName(label.State)}
}

// Check looks again at labels for which workers have something to do, and of which the queue has
// nothing: those that were asked for, or are looked at for a trigger until that has come to an end,
// and those in an action that are not errored. An entry that is only somewhere is looked at with
// those of other queues.
func Check(ctx context.Context, e *exam.Examination) error {
	x := newExamination(e)
	definitions, actions := e.Elements[labelstore.Keys{}.Definitions()], x.actions()
	required := func(yield func(string) bool) {
		for id, label := range e.Labels {
			due := label.Asked || label.Triggered || actions[placeOf(id, label)] && !label.Errored
			if !due || label.Deleted {
				continue
			}
			entry := scan.EntryOfLabel(id)
			if _, seen := e.Queues[bus.QueueMachines].Entries[entry]; !seen && !yield(entry) {
				return
			}
		}
	}
	if err := x.checkOutboxes(ctx); err != nil {
		return err
	}
	return e.FindMissing(ctx, bus.QueueMachines, required, func(entry string) (string, []exam.Check) {
		id := scan.LabelIn(entry)
		label := e.Labels[id]
		checks := append(x.unchanged(id), x.says(id, "asked", label.Asked), x.says(id, "trigger", label.Triggered))
		if !label.Asked && !label.Triggered {
			checks = append(checks, exam.Is(definitions["version"], "HGET", x.labels.Definitions(), "version"))
		}
		return x.record(id), checks
	})
}

// actions are the states that are actions, but those of which a review is under way: they may have
// been gates, and it asks for their labels one after the other.
func (x examination) actions() map[place]bool {
	var outline map[machines.Name]map[machines.StateName]bool // true for gates
	text := x.Elements[labelstore.Keys{}.Definitions()]["outline"]
	if err := json.Unmarshal([]byte(text), &outline); err != nil {
		return nil // there are no definitions, or nobody can tell what they are
	}
	actions := map[place]bool{}
	for machine, states := range outline {
		for state, isGate := range states {
			if !isGate {
				actions[place{machine, state}] = true
			}
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
