package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/machines"
)

// maxTries is how often a change is tried that other processes get ahead of.
const maxTries = 100

// errMoving says that a change waits until its label rests.
var errMoving = errors.New("the label does not rest yet")

// errClosing says that no label may come to a state now, as it vanishes with definitions that are
// about to come.
var errClosing = fmt.Errorf("%w: the first state of the machine is about to vanish", machines.ErrReplacing)

// errBehind says that a partition does not have yet the definitions by which a change was made.
var errBehind = fmt.Errorf("%w: the definitions have not come to the partition of the label yet", machines.ErrReplacing)

// closingPause is how long a label waits that is to be made in such a state.
const closingPause = 10 * time.Millisecond

// Add makes a label for the store's client, whose account is charged. It returns the label as it
// was made. It fails with [machines.ErrUnknownMachine], [machines.ErrNotClient],
// [machines.ErrLabelExists], [machines.ErrLabelDeleted], a [bus.Invalid] for metadata that is too
// long, an [account.FullError], [machines.ErrReplacing] or [bus.ErrUnavailable].
func (s *Store) Add(
	ctx context.Context, machine machines.Name, name machines.LabelName, metadata machines.Object, now time.Time,
) (label machines.Label, err error) {
	packed, err := metadata.Pack()
	if err != nil {
		return label, err
	}
	r := &request{Change: machines.Change{By: s.client}, traceparent: s.traceparent(ctx), client: s.client}
	return s.add(ctx, machine, name, packed, r, now)
}

// add makes a label with metadata, for a request whose change may set off a trigger of its first
// gate.
func (s *Store) add(
	ctx context.Context, machine machines.Name, name machines.LabelName, metadata []byte, r *request, now time.Time,
) (label machines.Label, err error) {
	definitions, replacing := s.latest.Load(), machines.ErrReplacing
	for range maxTries {
		if definitions == nil || definitions.Machine(machine) == nil || definitions.Version < r.Definitions {
			if definitions, err = s.Definitions(ctx); err != nil {
				return label, err
			}
		}
		if definitions.Version < r.Definitions {
			return label, errBehind
		}
		m := definitions.Machine(machine)
		if m == nil {
			return label, machines.ErrUnknownMachine
		}
		if !m.Clients.Allow(r.client) {
			return label, machines.ErrNotClient
		}
		first := m.First()
		trigger, _ := first.TriggerOf(machine, name, &r.Change)
		if first.RunsOn() {
			trigger = machines.TriggerEntry
		}
		err := s.create(ctx, m, name, definitions, metadata, trigger, r, now)
		if errors.Is(err, errClosing) {
			replacing = errClosing
			sleepUnlessDone(ctx, closingPause)
		}
		if errors.Is(err, machines.ErrChanged) || errors.Is(err, errClosing) {
			definitions = nil
			continue
		}
		return machines.Label{
			Machine: machine, Name: name, State: first.Name, Metadata: metadata, CreatedAt: now, EnteredAt: now, Resting: trigger == "",
		}, err
	}
	return label, replacing
}

// Merge merges a patch of a client into the metadata of a label; see [Store.Change].
func (s *Store) Merge(
	ctx context.Context, machine machines.Name, name machines.LabelName, patch machines.Object, keepNull bool,
) (machines.Label, error) {
	return s.Change(ctx, machine, name, machines.Change{Patch: patch, KeepNull: keepNull}, time.Time{})
}

// Change merges a patch into the metadata of a label, and has its gate evaluated if the change sets
// off one of its triggers. It returns the label as it was after that: of version 0, if it was made,
// and not resting, if a worker is to look at it. It fails with [machines.ErrUnknownMachine],
// [machines.ErrNotClient], [machines.ErrUnknownLabel], [machines.ErrLabelDeleted], a [bus.Invalid]
// for metadata that is too long, an [account.FullError], [machines.ErrContended] or
// [bus.ErrUnavailable].
func (s *Store) Change(
	ctx context.Context, machine machines.Name, name machines.LabelName, c machines.Change, now time.Time,
) (label machines.Label, err error) {
	id := labelID{machine, name}
	for {
		r := &request{Change: c, traceparent: s.traceparent(ctx), client: s.client, now: now}
		if err := s.turns.do(ctx, id, r); err != nil {
			return label, err
		}
		if !errors.Is(r.err, errMoving) {
			return r.label, r.err
		}
		if s.rests.await(ctx, id, c.Patience); ctx.Err() != nil {
			return label, fmt.Errorf("%w: %w", bus.ErrUnavailable, context.Cause(ctx))
		}
	}
}

// Rest waits until no worker has work to do for a label that has just been changed, at most for
// some time, and returns it as it is then. It fails as [Store.Label] does.
func (s *Store) Rest(
	ctx context.Context, machine machines.Name, name machines.LabelName, wait time.Duration,
) (label machines.Label, definitions *machines.Definitions, err error) {
	s.rests.await(ctx, labelID{machine, name}, time.Now().Add(wait))
	return s.Label(ctx, machine, name)
}

// sleepUnlessDone waits for some time. It reports whether it did, before the context was done.
func sleepUnlessDone(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}
