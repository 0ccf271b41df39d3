package machines

import (
	"slices"
	"strconv"
	"strings"
)

// TriggerReview is the trigger of labels that are in a state which has changed from a gate to an
// action or the other way round, or which has vanished.
const TriggerReview = "definitions"

// Walk looks at all labels in a state when a trigger is due or, without a trigger, because the
// definitions have changed: that is a review.
type Walk struct {
	Machine Name
	State   StateName
	Trigger *Trigger
	// Version is the version of the definitions that need a review. It is part of the name: others
	// that come during the review need one of their own.
	Version int64
}

// TriggerName names the trigger of the walk, or the review.
func (w Walk) TriggerName() string {
	if w.Trigger == nil {
		return TriggerReview
	}
	return w.Trigger.String()
}

// Name names the walk among the walks of its machine.
func (w Walk) Name() string {
	name := string(w.State) + " " + w.TriggerName()
	if w.Trigger == nil {
		name += " " + strconv.FormatInt(w.Version, 10)
	}
	return name
}

// Walks returns the walks that the definitions need at times.
func (d *Definitions) Walks() (walks []Walk) {
	for _, m := range d.Machines {
		for _, state := range m.States {
			if !state.MayOpen() {
				continue
			}
			for i, trigger := range state.Gate.Triggers {
				if trigger.Timed() {
					walks = append(walks, Walk{Machine: m.Name, State: state.Name, Trigger: &state.Gate.Triggers[i]})
				}
			}
		}
	}
	return walks
}

// Reviews returns the walks that are needed once, when the definitions take the place of others.
func (d *Definitions) Reviews(old *Definitions) (walks []Walk) {
	for _, move := range d.Moves {
		walks = append(walks, Walk{Machine: move.Machine, State: move.From, Version: old.Version + 1})
	}
	for _, m := range d.Machines {
		for _, state := range m.States {
			before := old.State(m.Name, state.Name)
			if before != nil && (before.Gate == nil) != (state.Gate == nil) {
				walks = append(walks, Walk{Machine: m.Name, State: state.Name, Version: old.Version + 1})
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
	if version, isReview := strings.CutPrefix(trigger, TriggerReview+" "); isReview {
		walk.Version, _ = strconv.ParseInt(version, 10, 64)
		return walk, walk.Version > 0
	}
	s := d.State(machine, walk.State)
	if !s.MayOpen() {
		return walk, false
	}
	i := slices.IndexFunc(s.Gate.Triggers, func(t Trigger) bool { return t.Timed() && t.String() == trigger })
	if i < 0 {
		return walk, false
	}
	walk.Trigger = &s.Gate.Triggers[i]
	return walk, true
}
