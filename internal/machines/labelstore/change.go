package labelstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/machines"
)

// maxTries is how often a change is tried that others get ahead of.
const maxTries = 100

// errContended says that others have changed a label or the definitions all the time.
var errContended = fmt.Errorf("%w: others change the label all the time", bus.ErrUnavailable)

// errClosing says that no label may come to a state now, as it vanishes with definitions that are
// about to come.
var errClosing = fmt.Errorf("%w: the first state of the machine is about to vanish", bus.ErrUnavailable)

// errBehind says that a partition does not have yet the definitions by which a change was made.
var errBehind = fmt.Errorf("%w: the definitions have not come to the partition of the label yet", bus.ErrUnavailable)

// closingPause is how long a label waits that is to be made in such a state.
const closingPause = 10 * time.Millisecond

// Add makes a label. It returns the label as it was made. It fails with
// [machines.ErrUnknownMachine], [machines.ErrLabelExists], [machines.ErrLabelDeleted], a
// [bus.Invalid] for metadata that is too long, or [bus.ErrUnavailable].
func (s *Store) Add(
	ctx context.Context, machine machines.Name, name machines.LabelName, metadata machines.Object, now time.Time,
) (label machines.Label, err error) {
	packed, err := metadata.Pack()
	if err != nil {
		return label, err
	}
	return s.add(ctx, machine, name, packed, &machines.Change{}, now)
}

// add makes a label with metadata. A change may set off a trigger of its first gate.
func (s *Store) add(
	ctx context.Context, machine machines.Name, name machines.LabelName, metadata []byte, c *machines.Change, now time.Time,
) (label machines.Label, err error) {
	definitions := s.latest.Load()
	contended := errContended
	for range maxTries {
		if definitions == nil || definitions.Machine(machine) == nil || definitions.Version < c.Definitions {
			if definitions, err = s.Definitions(ctx); err != nil {
				return label, err
			}
		}
		if definitions.Version < c.Definitions {
			return label, errBehind
		}
		m := definitions.Machine(machine)
		if m == nil {
			return label, machines.ErrUnknownMachine
		}
		first := m.First()
		trigger, _ := first.TriggerOf(machine, name, c)
		if first.RunsOn() {
			trigger = machines.TriggerEntry
		}
		err := s.create(ctx, m, name, definitions, metadata, trigger, now)
		if errors.Is(err, errClosing) {
			contended = errClosing
			pause(ctx, closingPause)
		}
		if errors.Is(err, machines.ErrChanged) || errors.Is(err, errClosing) {
			definitions = nil
			continue
		}
		return machines.Label{
			Machine: machine, Name: name, State: first.Name, Metadata: metadata, CreatedAt: now, EnteredAt: now, Resting: trigger == "",
		}, err
	}
	return label, contended
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
// [machines.ErrUnknownLabel], [machines.ErrLabelDeleted], a [bus.Invalid] for metadata that is too
// long, or [bus.ErrUnavailable].
func (s *Store) Change(
	ctx context.Context, machine machines.Name, name machines.LabelName, c machines.Change, now time.Time,
) (label machines.Label, err error) {
	looks := newPacer(c.Patience)
	for range maxTries {
		label, definitions, err := s.rested(ctx, machine, name, looks)
		switch {
		case definitions == nil:
		case definitions.Version < c.Definitions:
			return label, errBehind
		case definitions.Machine(machine) == nil:
			err = machines.ErrUnknownMachine
		}
		missing := c.Create && errors.Is(err, machines.ErrUnknownLabel)
		if missing {
			label.Metadata = []byte("{}")
		} else if err != nil {
			return label, err
		}
		metadata, err := machines.ParseObject(label.Metadata)
		if err != nil {
			return label, err
		}
		packed, err := metadata.Merge(c.Patch, c.KeepNull).Pack()
		if err != nil {
			return label, err
		}
		if missing {
			if label, err = s.add(ctx, machine, name, packed, &c, now); !errors.Is(err, machines.ErrLabelExists) {
				return label, err
			}
			continue
		}
		trigger, pending := definitions.State(machine, label.State).TriggerOf(machine, name, &c)
		err = s.patch(ctx, &label, definitions, packed, trigger, pending)
		if errors.Is(err, machines.ErrChanged) {
			continue
		}
		label.Metadata, label.Version = packed, label.Version+1
		label.Resting = label.Resting && trigger == ""
		return label, err
	}
	return label, errContended
}

// Rest waits until no worker has something to do for a label that has just been changed, at most
// for some time, and returns it as it is then. It fails as [Store.Label] does.
func (s *Store) Rest(
	ctx context.Context, machine machines.Name, name machines.LabelName, wait time.Duration,
) (label machines.Label, definitions *machines.Definitions, err error) {
	looks := newPacer(time.Now().Add(wait))
	looks.pause(ctx)
	return s.rested(ctx, machine, name, looks)
}

// rested reads a label, again and again until it rests, or the pacer does not wait any more.
func (s *Store) rested(
	ctx context.Context, machine machines.Name, name machines.LabelName, looks *pacer,
) (label machines.Label, definitions *machines.Definitions, err error) {
	for {
		label, definitions, err = s.Label(ctx, machine, name)
		if err != nil || label.Resting || !looks.pause(ctx) {
			return label, definitions, err
		}
	}
}

// A worker mostly needs a few ms for a label, and its webhook may need long: so the looks at it are
// firstLook apart at first, then twice as far each time, and lastLook at most.
const (
	firstLook = 2 * time.Millisecond
	lastLook  = 32 * time.Millisecond
)

// pacer says when to look at a label again.
type pacer struct {
	next time.Duration
	over time.Time
}

func newPacer(over time.Time) *pacer { return &pacer{next: firstLook, over: over} }

// pause waits until the next look, or until the time is over. It reports whether it has waited.
func (p *pacer) pause(ctx context.Context) bool {
	left := time.Until(p.over)
	if left <= 0 {
		return false
	}
	waited := pause(ctx, min(p.next, left))
	p.next = min(2*p.next, lastLook)
	return waited
}

// pause waits for some time. It reports whether it did, before the context was done.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}
