package labelstore

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/machines"
	"routemaster/internal/machines/definition"
	"routemaster/internal/rdb"
)

// definitionCache is the definitions that a process has read last. They are replaced as a whole,
// by later ones.
type definitionCache struct {
	atomic.Pointer[machines.Definitions]
	// reading is held by the one who reads: that costs memory and time, so all others wait for it.
	reading sync.Mutex
}

// of returns the definitions if they are of a version; else nil.
func (c *definitionCache) of(version string) *machines.Definitions {
	if latest := c.Load(); latest != nil && strconv.FormatInt(latest.Version, 10) == version {
		return latest
	}
	return nil
}

// Definitions returns those of now. It fails with [bus.ErrUnavailable].
func (s *Store) Definitions(ctx context.Context) (*machines.Definitions, error) {
	found, err := s.redis.HMGet(ctx, s.keys.Definitions(), "version", "applied_at").Result()
	if err != nil {
		return nil, rdb.Wrap("read version of definitions", err)
	}
	version := rdb.Text(found[0])
	// A Redis that has lost definitions gives others the same version.
	if latest := s.latest.of(version); latest != nil && !latest.AppliedAt.Equal(fromMillis(found[1])) {
		s.latest.CompareAndSwap(latest, nil)
	}
	return s.definitions(ctx, version)
}

// MachineNames returns the names of all machines. It fails with [bus.ErrUnavailable].
func (s *Store) MachineNames(ctx context.Context) (map[string]bool, error) {
	definitions, err := s.Definitions(ctx)
	if err != nil {
		return nil, err
	}
	names := make(map[string]bool, len(definitions.Machines))
	for _, m := range definitions.Machines {
		names[string(m.Name)] = true
	}
	return names, nil
}

// DefinitionsOf returns those by which a label was taken. It fails with [bus.ErrUnavailable].
func (s *Store) DefinitionsOf(ctx context.Context, v *Visit) (*machines.Definitions, error) {
	return s.definitions(ctx, v.definitions)
}

// definitions returns those of a version, or later ones. It asks Redis only if it has others.
func (s *Store) definitions(ctx context.Context, version string) (*machines.Definitions, error) {
	if version == "" {
		return &machines.Definitions{}, nil
	}
	if latest := s.latest.of(version); latest != nil {
		return latest, nil
	}
	s.latest.reading.Lock()
	defer s.latest.reading.Unlock()
	if latest := s.latest.of(version); latest != nil {
		return latest, nil
	}
	fields, err := s.redis.HGetAll(ctx, s.keys.Definitions()).Result()
	if err != nil {
		return nil, rdb.Wrap("read definitions", err)
	}
	if latest := s.latest.of(fields["version"]); latest != nil { // a label was taken by earlier ones
		return latest, nil
	}
	read, err := readDefinitions(fields)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errUnreadable, err)
	}
	s.latest.Store(read)
	return read, nil
}

func readDefinitions(fields map[string]string) (*machines.Definitions, error) {
	read, err := load([]byte(fields["yaml"]))
	if err != nil {
		return nil, err
	}
	return read, readBesides(read, fields)
}

// readBesides reads what stands beside the YAML.
func readBesides(d *machines.Definitions, fields map[string]string) error {
	d.Version = rdb.Integer(fields["version"], 0)
	d.Source = []byte(fields["yaml"])
	d.AppliedAt = fromMillis(fields["applied_at"])
	if err := json.Unmarshal([]byte(fields["moves"]), &d.Moves); err != nil {
		return fmt.Errorf("moves of definitions: %w", err)
	}
	return nil
}

// load reads definitions from the YAML of all of them.
func load(source []byte) (*machines.Definitions, error) {
	d, _, err := definition.Load(definition.File{Name: "definitions", Content: source})
	return d, err
}

// Put replaces definitions as they were read by others, and has the labels of states that vanish
// move as the moves say, besides those that are still to move as before. It returns the version of
// the new ones. It fails with a [bus.Invalid] for definitions that are too long, a
// [machines.LabelsRestError], [machines.ErrChanged] if somebody else has replaced them, or
// [bus.ErrUnavailable].
func (s *Store) Put(
	ctx context.Context, current, next *machines.Definitions, moves []machines.StateMove, now time.Time,
) (version int64, err error) {
	// Definitions in several files may hold more than one file can.
	if _, err := load(next.Source); err != nil {
		return 0, bus.Invalidf("", "all definitions together: %v", err)
	}
	unfinished, err := s.unfinished(ctx, current.Moves)
	if err != nil {
		return 0, err
	}
	vanished, going := vanishing(current, next, append(moves[:len(moves):len(moves)], unfinished...))
	packed, err := json.Marshal(going)
	if err != nil {
		return 0, err
	}
	outlined, err := json.Marshal(outlineOf(next))
	if err != nil {
		return 0, err
	}
	args := []any{current.Version, now.UnixMilli(), next.Source, packed, outlined, len(vanished)}
	for _, state := range vanished {
		args = append(args, string(state.Machine), string(state.State))
	}
	after := *next
	after.Moves = going
	for _, walk := range after.Reviews(current) {
		args = append(args, string(walk.Machine), walk.Name())
	}
	change := s.redis.Change(ctx, scriptDefinitionsPut, args...)
	if change.Err == nil && change.Text(0) == "labels rest" {
		return 0, readResting(change.Results[1:])
	}
	if err := replied("put definitions", change); err != nil {
		return 0, err
	}
	return rdb.Integer(change.Text(0), 0), nil
}

// Apply is [Store.Put] for whatever definitions there are. If they are the same, nothing changes;
// if this version of the program cannot read them, it can replace them all the same.
// It returns the version. It fails as Put does.
func (s *Store) Apply(
	ctx context.Context, next *machines.Definitions, moves []machines.StateMove, now time.Time,
) (version int64, err error) {
	for range maxTries {
		current, err := s.replaceable(ctx)
		if err != nil {
			return 0, err
		}
		if len(moves) == 0 && current.Version > 0 && bytes.Equal(current.Source, next.Source) {
			return current.Version, nil
		}
		version, err = s.Put(ctx, current, next, moves, now)
		if !errors.Is(err, machines.ErrChanged) {
			return version, err
		}
	}
	return 0, errContended
}

// unfinished returns those of the moves of before that still have labels. No label comes to them
// any more, as their states are not defined.
func (s *Store) unfinished(ctx context.Context, moves []machines.StateMove) (unfinished []machines.StateMove, err error) {
	counts := make([]rdb.Reply[int64], len(moves))
	err = s.redis.Pipelined(ctx, "count labels", func(pipe rdb.Commands) {
		for i, move := range moves {
			counts[i] = pipe.ZCard(ctx, s.keys.Labels(move.Machine, move.From))
		}
	})
	if err != nil {
		return nil, err
	}
	for i, move := range moves {
		if counts[i].Val() > 0 {
			unfinished = append(unfinished, move)
		}
	}
	return unfinished, nil
}

// vanishing returns the states that must have no labels, and those of the moves that are needed.
func vanishing(
	current, next *machines.Definitions, moves []machines.StateMove,
) (vanished []machines.StateCount, going []machines.StateMove) {
	for _, move := range moves {
		known := slices.ContainsFunc(going, func(m machines.StateMove) bool { return m.Machine == move.Machine && m.From == move.From })
		if !known && next.State(move.Machine, move.From) == nil && next.State(move.Machine, move.To) != nil {
			going = append(going, move)
		}
	}
	require := func(machine machines.Name, state machines.StateName) {
		moved := slices.ContainsFunc(going, func(m machines.StateMove) bool { return m.Machine == machine && m.From == state })
		if next.State(machine, state) == nil && !moved {
			vanished = append(vanished, machines.StateCount{Machine: machine, State: state})
		}
	}
	for _, m := range current.Machines {
		for _, state := range m.States {
			require(m.Name, state.Name)
		}
	}
	for _, move := range current.Moves {
		require(move.Machine, move.From)
	}
	return vanished, going
}

func readResting(values []any) error {
	resting := &machines.LabelsRestError{}
	for triple := range slices.Chunk(values, 3) {
		count, _ := triple[2].(int64)
		resting.States = append(resting.States, machines.StateCount{
			Machine: machines.Name(rdb.Text(triple[0])), State: machines.StateName(rdb.Text(triple[1])), Labels: count,
		})
	}
	return resting
}
