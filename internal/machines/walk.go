package machines

// TriggerLeave is the trigger of labels that are in a state which has vanished.
const TriggerLeave = "definitions"

// Walk looks at all labels in a state when a trigger is due or, without one, because the state
// has vanished.
type Walk struct {
	Machine Name
	State   StateName
	Trigger *Trigger
}

// Name names the walk among those of its machine.
func (w Walk) Name() string {
	if w.Trigger == nil {
		return string(w.State) + " " + TriggerLeave
	}
	return string(w.State) + " " + w.Trigger.String()
}

// Walks returns the walks that the definitions need.
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
	for _, move := range d.Moves {
		walks = append(walks, Walk{Machine: move.Machine, State: move.From})
	}
	return walks
}

// Walk returns the walk of a machine that has a name, if the definitions need it.
func (d *Definitions) Walk(machine Name, name string) (Walk, bool) {
	for _, walk := range d.Walks() {
		if walk.Machine == machine && walk.Name() == name {
			return walk, true
		}
	}
	return Walk{}, false
}
