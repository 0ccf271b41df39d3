package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"routemaster/internal/machines"
	"routemaster/internal/rdb"
)

// errUnreadable says that definitions are of a newer version of this program, perhaps.
var errUnreadable = errors.New("definitions cannot be read, perhaps as they are of a newer version of this program")

// outline is the states of all machines, true for gates. It stands beside the YAML so that any
// version of this program can replace that, even if it cannot read it.
type outline map[machines.Name]map[machines.StateName]bool

func outlineOf(d *machines.Definitions) outline {
	o := outline{}
	for _, m := range d.Machines {
		o[m.Name] = map[machines.StateName]bool{}
		for _, state := range m.States {
			o[m.Name][state.Name] = state.Gate != nil
		}
	}
	return o
}

// definitions returns the part of the definitions that an outline has.
func (o outline) definitions() *machines.Definitions {
	d := &machines.Definitions{}
	for name, states := range o {
		m := &machines.Machine{Name: name}
		for state, gate := range states {
			s := &machines.State{Name: state, Action: &machines.Action{}}
			if gate {
				s.Gate, s.Action = &machines.Gate{}, nil
			}
			m.States = append(m.States, s)
		}
		d.Machines = append(d.Machines, m)
	}
	slices.SortFunc(d.Machines, func(a, b *machines.Machine) int { return cmp.Compare(a.Name, b.Name) })
	return d
}

// Replaceable returns the current definitions for [NewReplacement]: their outline if this version
// of the program cannot read them. It fails with [bus.ErrUnavailable].
func (s *Store) Replaceable(ctx context.Context) (*machines.Definitions, error) {
	d, err := s.Definitions(ctx)
	if !errors.Is(err, errUnreadable) {
		return d, err
	}
	fields, err := s.redis.HGetAll(ctx, s.keys.Definitions()).Result()
	if err != nil {
		return nil, rdb.Wrap("read outline of definitions", err)
	}
	var o outline
	if err := json.Unmarshal([]byte(fields["outline"]), &o); err != nil {
		return nil, fmt.Errorf("read outline of definitions: %w", err)
	}
	d = o.definitions()
	return d, readBesides(d, fields)
}
