package machines

import (
	"slices"
	"strings"
)

// TriggerReview is the trigger of labels that are in a state which has changed from a gate to an
// action or the other way round, or which has vanished.
const TriggerReview = "definitions"

// Walk looks at all labels in a state when a trigger is due or, without a trigger, because the
// definitions have changed.
type Walk struct {
	Machine Name
	State   StateName
	Trigger *Trigger
}

// TriggerName names what the walk is for.
func (w Walk) TriggerName() string {
	if w.Trigger == nil {
		return TriggerReview
	}
	return w.Trigger.String()
}

// Name names the walk among those of its machine.
func (w Walk) Name() string { return string(w.State) + " " + w.TriggerName() }

// Walks returns the walks that the definitions need at times.
func (d *Definitions) Walks() (walks []Walk) {
	for _, m := range d.Machines {
		for _, state := range m.States {
			if state.Gate == nil {
				continue
			}
			for i, trigger := range state.Gate.Triggers {
				if trigger.Timed() {
					walks = append(walks, Walk{m.Name, state.Name, &state.Gate.Triggers[i]})
				}
			}
		}
	}
	return walks
}

// Reviews returns the walks that are needed once, when the definitions take the place of others.
func (d *Definitions) Reviews(old *Definitions) (walks []Walk) {
	for _, move := range d.Moves {
		walks = append(walks, Walk{Machine: move.Machine, State: move.From})
	}
	for _, m := range d.Machines {
		for _, state := range m.States {
			before := old.State(m.Name, state.Name)
			if before != nil && (before.Gate == nil) != (state.Gate == nil) {
				walks = append(walks, Walk{Machine: m.Name, State: state.Name})
			}
		}
	}
	return walks
}

// Walk returns the walk of a machine that has a name; false if the definitions have no such
// trigger.
func (d *Definitions) Walk(machine Name, name string) (Walk, bool) {
	state, trigger, _ := strings.Cut(name, " ")
	walk := Walk{Machine: machine, State: StateName(state)}
	if trigger == TriggerReview {
		return walk, true
	}
	s := d.State(machine, walk.State)
	if s == nil || s.Gate == nil {
		return walk, false
	}
	i := slices.IndexFunc(s.Gate.Triggers, func(t Trigger) bool { return t.Timed() && t.String() == trigger })
	if i < 0 {
		return walk, false
	}
	walk.Trigger = &s.Gate.Triggers[i]
	return walk, true
}
