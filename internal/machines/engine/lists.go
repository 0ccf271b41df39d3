package engine

import (
	"context"
	"slices"

	"routemaster/internal/machines"
	"routemaster/internal/rdb"
)

// Filter says which labels of a machine to list. Zero fields do not filter.
type Filter struct {
	State machines.StateName
	// Errored lists labels that are errored only.
	Errored bool
	// After is the name behind which the page begins.
	After machines.LabelName
	// Limit is the maximum number of labels, at least 1.
	Limit int
}

// Listed is a label in a list.
type Listed struct {
	Name  machines.LabelName
	State machines.StateName
}

// List lists labels of a machine in the order of the bytes of their names. It reads at most as many
// names as are asked for, and the states of these. Next is the name after which the next page
// begins, empty if there is none; while there is one, a page may have fewer labels than asked for.
// It fails with [bus.ErrUnavailable].
func (s *Store) List(
	ctx context.Context, machine machines.Name, f Filter,
) (list []Listed, next machines.LabelName, err error) {
	key := s.keys.LabelNames(machine)
	switch {
	case f.Errored:
		key = s.keys.ErroredLabels(machine)
	case f.State != "":
		key = s.keys.LabelsIn(machine, f.State)
	}
	names, err := s.redis.ZRangeByLex(ctx, key, rdb.LexRange(string(f.After), f.Limit)).Result()
	if err != nil {
		return nil, "", rdb.Wrap("list labels", err)
	}
	if len(names) >= f.Limit {
		next = machines.LabelName(names[f.Limit-1])
	}
	if f.State != "" && !f.Errored {
		for _, name := range names {
			list = append(list, Listed{machines.LabelName(name), f.State})
		}
		return list, next, nil
	}
	list, err = s.statesOfLabels(ctx, machine, names)
	return slices.DeleteFunc(list, func(l Listed) bool {
		return l.State == "" || f.State != "" && l.State != f.State // it was deleted meanwhile, or is in another
	}), next, err
}

// statesOfLabels reads in which states labels are: empty for one that is not there any more.
func (s *Store) statesOfLabels(ctx context.Context, machine machines.Name, names []string) ([]Listed, error) {
	states := make([]rdb.Reply[string], len(names))
	err := s.redis.Reads(ctx, "list labels", func(pipe rdb.Commands) {
		for i, name := range names {
			states[i] = pipe.HGet(ctx, s.keys.Label(machine, machines.LabelName(name)), "state")
		}
	})
	if err != nil {
		return nil, err
	}
	list := make([]Listed, len(names))
	for i, name := range names {
		list[i] = Listed{machines.LabelName(name), machines.StateName(states[i].Val())}
	}
	return list, nil
}

// statesOf returns the states of a machine in which labels may be, including vanished ones.
func statesOf(d *machines.Definitions, machine machines.Name) (states []machines.StateName) {
	if m := d.Machine(machine); m != nil {
		for _, state := range m.States {
			states = append(states, state.Name)
		}
	}
	for _, move := range d.Moves {
		if move.Machine == machine {
			states = append(states, move.From)
		}
	}
	return states
}

// CountAll counts the labels of all machines. Without definitions it costs one command. It fails
// with [bus.ErrUnavailable].
func (s *Store) CountAll(ctx context.Context) (counts []machines.Count, err error) {
	definitions, err := s.Definitions(ctx)
	if err != nil {
		return nil, err
	}
	for _, m := range definitions.Machines {
		states, errored, err := s.Counts(ctx, definitions, m.Name)
		if err != nil {
			return nil, err
		}
		count := machines.Count{Machine: m.Name, States: states, Errored: errored}
		if m.Publish != nil {
			if count.Unpublished, err = s.redis.LLen(ctx, s.keys.MachineOutbox(m.Name)).Result(); err != nil {
				return nil, rdb.Wrap("count moves to publish", err)
			}
		}
		counts = append(counts, count)
	}
	return counts, nil
}

// Counts returns how many labels of a machine there are in each state, in the order of its
// definition, and how many of them are errored. It fails with [bus.ErrUnavailable].
func (s *Store) Counts(
	ctx context.Context, d *machines.Definitions, machine machines.Name,
) (counts []machines.StateCount, errored int64, err error) {
	states := statesOf(d, machine)
	sizes := make([]rdb.Reply[int64], len(states))
	var erroredSize rdb.Reply[int64]
	err = s.redis.Pipelined(ctx, "count labels", func(pipe rdb.Commands) {
		for i, state := range states {
			sizes[i] = pipe.ZCard(ctx, s.keys.LabelsIn(machine, state))
		}
		erroredSize = pipe.ZCard(ctx, s.keys.ErroredLabels(machine))
	})
	if err != nil {
		return nil, 0, err
	}
	for i, state := range states {
		counts = append(counts, machines.StateCount{Machine: machine, State: state, Labels: sizes[i].Val()})
	}
	return counts, erroredSize.Val(), nil
}
