package definition

import (
	"strings"

	"routemaster/internal/machines"
)

// checkReachable refuses states to which no way leads from the first.
func (r *stateReader) checkReachable() {
	reached := map[machines.StateName]bool{}
	for ahead := []machines.StateName{r.machine.First().Name}; len(ahead) > 0; {
		name := ahead[len(ahead)-1]
		ahead = ahead[:len(ahead)-1]
		if !reached[name] {
			reached[name] = true
			ahead = append(ahead, r.machine.State(name).Next.States()...)
		}
	}
	for _, s := range r.machine.States {
		if !reached[s.Name] {
			r.Refuse(r.places[s.Name], "no label can come to %s: no way leads there from the first state, %s; remove it, or lead to it",
				s.Name, r.machine.First().Name)
		}
	}
}

// checkLoops refuses circles of actions, in which labels never rest. Each action is entered once:
// whatever leads back to one that is on the way closes a circle.
func (r *stateReader) checkLoops() {
	left := map[machines.StateName]bool{}
	var way []machines.StateName
	var enter func(s *machines.State)
	enter = func(s *machines.State) {
		if s.Action == nil || left[s.Name] {
			return
		}
		for i, name := range way {
			if name == s.Name {
				r.refuseLoop(way[i:])
				return
			}
		}
		way = append(way, s.Name)
		for _, next := range s.Next.States() {
			enter(r.machine.State(next))
		}
		way = way[:len(way)-1]
		left[s.Name] = true
	}
	for _, s := range r.machine.States {
		enter(s)
	}
}

// refuseLoop reports a circle at that of its states which is defined first.
func (r *stateReader) refuseLoop(loop []machines.StateName) {
	first := r.places[loop[0]]
	var names []string
	for _, name := range loop {
		names = append(names, string(name))
		if at := r.places[name]; at.Line < first.Line {
			first = at
		}
	}
	names = append(names, names[0])
	r.Refuse(first, "actions lead in a circle: %s; put a gate into it, since labels would never rest", strings.Join(names, ", "))
}
