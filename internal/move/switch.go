package move

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// reopenTimeout is how long a switch that has failed tries to open the old bus again.
const reopenTimeout = 10 * time.Second

// begin marks both buses. The old one comes first: the new one has what it is copied from in its
// mark.
func (m *mover) begin(ctx context.Context) error {
	if m.id == "" {
		m.id = newID()
	}
	if m.from.marks[0].role == "" {
		if err := m.from.setMark(ctx, m.mark(oldBus, false), 0); err != nil {
			return err
		}
	}
	fresh := m.to.unlike(m.mark(newBus, true))
	if len(fresh) == len(m.to.all) {
		if err := m.to.requireEmpty(ctx); err != nil {
			return err
		}
	}
	return m.to.setMark(ctx, m.mark(newBus, true), fresh...)
}

// switchOver has publishes go to the new bus from now on. Until the last step begins, whatever
// fails has the old bus opened again.
func (m *mover) switchOver(ctx context.Context) error {
	if err := m.from.requireVersion(ctx, m.Version, m.now()); err != nil {
		return err
	}
	// What takes long is done while the old bus is open.
	if err := m.copy(ctx); err != nil {
		return err
	}
	if err := m.close(ctx); err != nil {
		reopening, cancel := context.WithTimeout(context.WithoutCancel(ctx), reopenTimeout)
		defer cancel()
		if failed := m.reopen(reopening); failed != nil {
			return fmt.Errorf("%w; and the old bus is closed, publishers get 503: run this again, or rtm move --cancel (%w)", err, failed)
		}
		return fmt.Errorf("not switched, the old bus is open: %w", err)
	}
	if err := m.to.setMark(ctx, m.mark(newBus, false), m.to.all...); err != nil {
		return fmt.Errorf("the switch was not ended, and cannot be undone; publishers get 503 in part: run rtm move again: %w", err)
	}
	return nil
}

// close closes the old bus, and copies what has changed since it was copied.
func (m *mover) close(ctx context.Context) error {
	if err := m.from.setMark(ctx, m.mark(oldBus, true), m.from.all...); err != nil {
		return err
	}
	m.step("closed")
	if err := m.from.requireMovable(ctx); err != nil {
		return err
	}
	if err := m.copy(ctx); err != nil {
		return err
	}
	return m.copyHistories(ctx)
}

// reopen opens the old bus, of a switch that was not ended.
func (m *mover) reopen(ctx context.Context) error {
	return m.from.setMark(ctx, m.mark(oldBus, false), m.from.all...)
}

// Errors of a run that is refused.
var (
	errSwitched   = errors.New("publishes go to the new bus already, so that cannot be undone: to go back, move it back when all is over")
	errNothing    = errors.New("nothing is being moved between these two")
	errUnmatching = errors.New("these two are not the buses of one move: one of them moves from or to another Redis, " +
		"or --from and --to were mixed up")
	errBroken = errors.New("a switch was broken off, and publishers get 503: run rtm move --switch to end it, " +
		"or rtm move --cancel to go on with the old bus")
)
