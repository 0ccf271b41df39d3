package move

import (
	"context"
	"errors"
	"fmt"
	"time"

	"routemaster/internal/bus"
)

// How long a switch that has failed tries to open the old bus again, and how often.
const (
	reopenTimeout  = 10 * time.Second
	reopenInterval = 100 * time.Millisecond
)

// begin marks both buses. The new one is marked first: so an old one that has a mark has no more
// than one that it may be copied to. What a switch has closed that was broken off is opened. From
// here on no other run writes to the new bus.
func (m *mover) begin(ctx context.Context, is state) error {
	if is == fresh {
		if err := m.from.requireBus(ctx); err != nil {
			return err
		}
		m.id = newID()
		if !m.to.isAll(spareBus) {
			if err := m.to.requireEmpty(ctx); err != nil {
				return err
			}
		}
		if err := m.to.become(ctx, m.mark(spareBus)); err != nil {
			return err
		}
	}
	if err := m.from.become(ctx, m.mark(oldBus)); err != nil {
		return err
	}
	return m.to.become(ctx, m.ofRun(newBus))
}

// switchOver has publishes go to the new bus from now on. Whatever fails until the old one says so
// has it opened again.
func (m *mover) switchOver(ctx context.Context) error {
	err := m.requireMovable(ctx)
	if err == nil {
		err = m.copy(ctx) // what takes long is done while the old bus is open
	}
	if err == nil {
		err = m.close(ctx)
	}
	if err == nil {
		// The step that decides: after it nobody can open the old bus any more.
		err = m.from.setMark(ctx, 0, m.ofRun(oldBus), m.mark(switchedBus))
	}
	if err == nil {
		return nil
	}
	failed := m.reopen(context.WithoutCancel(ctx))
	switch now := m.from.first(); {
	case failed != nil:
		return fmt.Errorf("%w; and the old bus may be closed, then publishers get 503: run this again, or the same with --cancel (%w)", err, failed)
	case now == m.mark(switchedBus): // the answer of the step that decides was lost
		return nil
	case now != m.mark(oldBus) && !errors.Is(err, errOvertaken):
		return fmt.Errorf("%w (%w)", errOvertaken, err)
	case now != m.mark(oldBus):
		return err
	}
	return fmt.Errorf("not switched, the old bus is open: %w", err)
}

// close closes the old bus, and copies what has changed since it was copied.
func (m *mover) close(ctx context.Context) error {
	if err := m.from.become(ctx, m.ofRun(oldBus)); err != nil {
		return err
	}
	m.step("closed")
	if err := m.requireMovable(ctx); err != nil {
		return err
	}
	return m.copy(ctx)
}

// reopen opens what this run has closed of the old bus, also if that is away for some seconds; and
// nothing if the first partition is not this run's any more, which may have been switched.
func (m *mover) reopen(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, reopenTimeout)
	defer cancel()
	for i := 0; i < len(m.from.partitions); {
		err := m.from.setMark(ctx, i, m.ofRun(oldBus), m.mark(oldBus))
		switch {
		case errors.Is(err, bus.ErrUnavailable) && ctx.Err() == nil:
			time.Sleep(reopenInterval)
			continue
		case errors.Is(err, errOvertaken) && i == 0:
			return nil
		case err != nil && !errors.Is(err, errOvertaken):
			return err
		}
		i++
	}
	return nil
}

// cancel ends a move before its switch. What was copied stays in the new bus, which stays closed,
// and may be taken by another move.
func (m *mover) cancel(ctx context.Context, is state) error {
	switch is {
	case fresh:
		return errNothing
	case draining, finished:
		return errSwitched
	}
	m.report.Phase = Cancelled
	if err := m.from.become(ctx, m.mark(cancelledBus)); err != nil {
		return err
	}
	if m.to.isOf(m.id) {
		// Not with the UID that it had when it was spare before: a run may be about to go on from there.
		if err := m.to.become(ctx, mark{isClosed: true, role: spareBus, move: newID()}); err != nil {
			return fmt.Errorf("the old bus is open, but the move is not cancelled yet, run this again: %w", err)
		}
	}
	return m.from.become(ctx, mark{})
}

// requireMovable fails while the old bus has what is not moved, and must not be lost, or a process
// of either may not know of moves.
func (m *mover) requireMovable(ctx context.Context) error {
	if err := m.from.requireMovable(ctx); err != nil {
		return err
	}
	if err := m.from.requireVersion(ctx, m.Version, m.Now()); err != nil {
		return err
	}
	return m.to.requireVersion(ctx, m.Version, m.Now())
}

func newID() string { return string(bus.NewBatchID()) }

// mark is that of a role which does not depend on a run.
func (m *mover) mark(is role) mark {
	return mark{isClosed: is == spareBus || is == switchedBus || is == overBus, role: is, move: m.id}
}

// ofRun is the mark of a bus that this run has closed.
func (m *mover) ofRun(is role) mark { return mark{isClosed: true, role: is, move: m.id, run: m.runID} }
