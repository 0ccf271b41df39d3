package definition

import (
	"strings"

	"routemaster/internal/machines"
)

// way is a state and the states it leads to, as far as they could be read.
type way struct {
	// from is empty if the state has no readable name.
	from machines.StateName
	to   []machines.StateName
	// lost is whether the state may also lead anywhere else.
	lost bool
}

// loseWay says that where the state leads that is being read cannot be read.
func (r *stateReader) loseWay() { r.ways[len(r.ways)-1].lost = true }

// checkReachable refuses states to which no way leads from the first. States whose names cannot be
// read may be any that others lead to, so they are taken to be reached.
func (r *stateReader) checkReachable() {
	if len(r.ways) == 0 || r.ways[0].from == "" {
		return
	}
	ways := map[machines.StateName][]way{}
	for _, w := range r.ways {
		ways[w.from] = append(ways[w.from], w)
	}
	reached := map[machines.StateName]bool{}
	for ahead := []machines.StateName{"", r.machine.First().Name}; len(ahead) > 0; {
		name := ahead[len(ahead)-1]
		ahead = ahead[:len(ahead)-1]
		for _, w := range ways[name] {
			if w.lost {
				return
			}
			if !reached[name] {
				ahead = append(ahead, w.to...)
			}
		}
		reached[name] = true
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
		if s == nil || s.Action == nil || left[s.Name] { // nil if there is no such state, which is refused
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

// refuseLoop reports a circle, at whichever of its states is defined first.
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
