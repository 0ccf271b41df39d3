package console

import (
	"encoding/json"
	"html/template"
	"slices"

	"routemaster/client/machines"
	"routemaster/internal/console/view"
	"routemaster/internal/overview"
)

// machinePage is the data of a state machine's page.
type machinePage struct {
	Name string
	// Row is nil if the figures do not have the machine, or not yet.
	Row *overview.Machine
	// Info is the bus's description, Graph is an SVG, Labels are some of the labels.
	Info   Panel[machines.Info]
	Graph  Panel[template.HTML]
	Labels Panel[[]machines.Listed]
	// Clients may use the machine; it is open to all if there are none.
	Clients []string
	// States are in the order of the definition, with the number of labels in each.
	States []state
	// State filters the labels by state, empty for all; Errored shows only errored ones. After is the
	// last label shown, empty if there are no more.
	State   string
	Errored bool
	After   string
}

// state is a state with how many labels are in it.
type state struct {
	Name   string
	Labels int64
}

func loadMachine(v *Visit) (any, error) {
	p := machinePage{Name: v.Path("machine"), State: v.Query("state"), Errored: v.Query("errored") != ""}
	if i := slices.IndexFunc(v.Figures.Machines, func(m overview.Machine) bool { return m.Name == p.Name }); i >= 0 {
		p.Row = &v.Figures.Machines[i]
	}
	m := machines.Of(v.Bus, p.Name)
	info, err := m.Show(v.Context())
	if err != nil && p.Row == nil {
		return nil, err
	}
	if p.Info = Part(info, err); err != nil {
		return p, nil
	}
	p.States, p.Clients = states(info), clients(info)
	svg, err := m.Graph(v.Context(), "svg")
	p.Graph = Part(template.HTML(svg), err) // the bus has escaped its text
	filter := machines.Filter{State: p.State, Errored: p.Errored}
	labels, more, err := view.First(view.PageSize, m.Labels(v.Context(), filter, v.Query("after")))
	p.Labels = Part(labels, err)
	if more {
		p.After = labels[len(labels)-1].Name
	}
	return p, nil
}

// clients are the clients that a machine is for, none if it is for all.
func clients(info machines.Info) []string {
	var definition struct{ Clients []string }
	_ = json.Unmarshal(info.Definition, &definition) // its states say if it is none
	return definition.Clients
}

// states returns a machine's states, gates and actions, in the order of its definition.
func states(info machines.Info) (all []state) {
	var definition struct {
		States []struct{ Gate, Action string }
	}
	if json.Unmarshal(info.Definition, &definition) != nil {
		return nil
	}
	for _, s := range definition.States {
		name := s.Gate + s.Action
		all = append(all, state{name, info.Labels[name]})
	}
	return all
}
