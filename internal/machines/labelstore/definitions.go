package labelstore

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/machines"
	"routemaster/internal/machines/definition"
	"routemaster/internal/rdb"
)

// definitionCache is the definitions that a process has read last. They are replaced as a whole.
type definitionCache struct {
	atomic.Pointer[machines.Definitions]
}

// Definitions returns those of now. It fails with [bus.ErrUnavailable].
func (s *Store) Definitions(ctx context.Context) (*machines.Definitions, error) {
	version, err := s.redis.HGet(ctx, s.keys.Definitions(), "version").Result()
	if err != nil && !errors.Is(err, rdb.Nil) {
		return nil, rdb.Wrap("read version of definitions", err)
	}
	return s.definitions(ctx, version)
}

// DefinitionsOf returns those by which a label was taken. It fails with [bus.ErrUnavailable].
func (s *Store) DefinitionsOf(ctx context.Context, v *Visit) (*machines.Definitions, error) {
	return s.definitions(ctx, v.definitions)
}

// definitions returns those of a version, or later ones. It asks Redis only if it has others.
func (s *Store) definitions(ctx context.Context, version string) (*machines.Definitions, error) {
	if latest := s.latest.Load(); latest != nil && strconv.FormatInt(latest.Version, 10) == version {
		return latest, nil
	}
	if version == "" {
		return &machines.Definitions{}, nil
	}
	fields, err := s.redis.HGetAll(ctx, s.keys.Definitions()).Result()
	if err != nil {
		return nil, rdb.Wrap("read definitions", err)
	}
	read, err := readDefinitions(fields)
	if err != nil {
		return nil, err
	}
	s.latest.Store(read)
	return read, nil
}

func readDefinitions(fields map[string]string) (*machines.Definitions, error) {
	read, _, err := definition.Load(definition.File{Name: "definitions", Content: []byte(fields["yaml"])})
	if err != nil {
		return nil, fmt.Errorf("read definitions, perhaps of a newer version of this program: %w", err)
	}
	read.Version = rdb.Integer(fields["version"], 0)
	read.Source = []byte(fields["yaml"])
	read.AppliedAt = fromMillis(fields["applied_at"])
	if err := json.Unmarshal([]byte(fields["moves"]), &read.Moves); err != nil {
		return nil, fmt.Errorf("read definitions: moves: %w", err)
	}
	return read, nil
}

// Put replaces definitions as they were read by others, and has the labels of states that vanish
// move as the moves say, besides those that are still to move as before. It returns the version of
// the new ones. It fails with a [bus.Invalid] for what is not supported, a
// [machines.LabelsRestError], [machines.ErrChanged] if somebody else has replaced them, or
// [bus.ErrUnavailable].
func (s *Store) Put(
	ctx context.Context, current, next *machines.Definitions, moves []machines.StateMove, now time.Time,
) (version int64, err error) {
	if err := supported(next); err != nil {
		return 0, err
	}
	vanished, going := vanishing(current, next, moves)
	packed, err := json.Marshal(going)
	if err != nil {
		return 0, err
	}
	args := []any{current.Version, now.UnixMilli(), next.Source, packed, len(vanished)}
	for _, state := range vanished {
		args = append(args, string(state.Machine), string(state.State))
	}
	after := *next
	after.Moves = going
	for _, walk := range append(after.Walks(), after.Reviews(current)...) {
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

// supported refuses what definitions may say, but no worker does yet.
func supported(d *machines.Definitions) error {
	for _, m := range d.Machines {
		if m.Publish != nil {
			return bus.Invalidf("", "state_machines.%s.publish: moves are not published yet; leave it out", m.Name)
		}
		for _, state := range m.States {
			if state.Gate != nil && slices.ContainsFunc(state.Gate.Triggers, func(t machines.Trigger) bool { return t.Topic != nil }) {
				return bus.Invalidf("", "state_machines.%s: %s has a trigger by topic, which does nothing yet; leave it out", m.Name, state.Name)
			}
		}
	}
	return nil
}

// Apply is [Store.Put] for whatever definitions there are. If they are the same, nothing changes.
// It returns the version. It fails as Put does.
func (s *Store) Apply(
	ctx context.Context, next *machines.Definitions, moves []machines.StateMove, now time.Time,
) (version int64, err error) {
	for range maxTries {
		current, err := s.Definitions(ctx)
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

// vanishing returns the states that must have no labels, and the moves of those that may.
func vanishing(
	current, next *machines.Definitions, moves []machines.StateMove,
) (vanished []machines.StateCount, going []machines.StateMove) {
	for _, move := range slices.Concat(moves, current.Moves) {
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
