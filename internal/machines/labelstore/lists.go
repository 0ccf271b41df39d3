package labelstore

import (
	"cmp"
	"context"
	"slices"

	"routemaster/internal/machines"
	"routemaster/internal/rdb"
)

// Filter says which labels of a machine to list. What is zero is not set.
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

// List lists labels of a machine in the order of the bytes of their names. Next is the name after
// which the next page begins, empty if there is none; while there is one, a page may have less
// labels than asked for. It fails with [bus.ErrUnavailable].
func (s *Store) List(
	ctx context.Context, d *machines.Definitions, machine machines.Name, f Filter,
) (list []Listed, next machines.LabelName, err error) {
	if f.Errored {
		list, err = s.listErrored(ctx, machine, f)
	} else {
		list, err = s.listStates(ctx, d, machine, f)
	}
	if err != nil {
		return nil, "", err
	}
	if len(list) >= f.Limit {
		list = list[:f.Limit]
		next = list[len(list)-1].Name
	}
	if f.Errored && f.State != "" {
		list = slices.DeleteFunc(list, func(l Listed) bool { return l.State != f.State })
	}
	return list, next, nil
}

// listStates reads a page of every state, and merges them.
func (s *Store) listStates(
	ctx context.Context, d *machines.Definitions, machine machines.Name, f Filter,
) (list []Listed, err error) {
	states := statesOf(d, machine)
	if f.State != "" {
		states = []machines.StateName{f.State}
	}
	pages := make([]rdb.Reply[[]string], len(states))
	err = s.redis.Pipelined(ctx, "list labels", func(pipe rdb.Commands) {
		for i, state := range states {
			pages[i] = pipe.ZRangeByLex(ctx, s.keys.Labels(machine, state), rdb.LexRange(string(f.After), f.Limit))
		}
	})
	if err != nil {
		return nil, err
	}
	for i, state := range states {
		for _, name := range pages[i].Val() {
			list = append(list, Listed{machines.LabelName(name), state})
		}
	}
	slices.SortFunc(list, func(a, b Listed) int { return cmp.Compare(a.Name, b.Name) })
	// A label that moves while the states are read may be found in two of them.
	return slices.CompactFunc(list, func(a, b Listed) bool { return a.Name == b.Name }), nil
}

func (s *Store) listErrored(ctx context.Context, machine machines.Name, f Filter) ([]Listed, error) {
	names, err := s.redis.ZRangeByLex(ctx, s.keys.Errored(machine), rdb.LexRange(string(f.After), f.Limit)).Result()
	if err != nil {
		return nil, rdb.Wrap("list errored labels", err)
	}
	states := make([]rdb.Reply[string], len(names))
	err = s.redis.Reads(ctx, "list errored labels", func(pipe rdb.Commands) {
		for i, name := range names {
			states[i] = pipe.HGet(ctx, s.keys.Label(machine, machines.LabelName(name)), "state")
		}
	})
	list := make([]Listed, len(names))
	for i, name := range names {
		list[i] = Listed{machines.LabelName(name), machines.StateName(states[i].Val())}
	}
	return list, err
}

// statesOf returns the states of a machine in which labels may be: those that have vanished too.
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
			if count.Unpublished, err = s.redis.LLen(ctx, s.keys.Outbox(m.Name)).Result(); err != nil {
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
			sizes[i] = pipe.ZCard(ctx, s.keys.Labels(machine, state))
		}
		erroredSize = pipe.ZCard(ctx, s.keys.Errored(machine))
	})
	if err != nil {
		return nil, 0, err
	}
	for i, state := range states {
		counts = append(counts, machines.StateCount{Machine: machine, State: state, Labels: sizes[i].Val()})
	}
	return counts, erroredSize.Val(), nil
}
