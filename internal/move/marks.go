package move

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"routemaster/internal/fence"
	"routemaster/internal/rdb"
	"routemaster/internal/store"
)

// role is what a bus is of a move. Every change of a role is made in the first partition first, by
// comparing and setting: so of two runs at once, one goes on.
type role string

const (
	// spareBus is what is to be a new bus, or was until its move was cancelled: no old one knows it,
	// and any move may take it.
	spareBus role = "spare"
	// newBus is one that the old bus of the same move knows.
	newBus role = "new"
	// oldBus is the old one before the switch.
	oldBus role = "old"
	// cancelledBus is an old one that no switch can close any more.
	cancelledBus role = "cancelled"
	// switchedBus is an old one whose publishes go to the new one, or will: there is no way back.
	switchedBus role = "switched"
	// overBus is an old one from which nothing is left to be delivered.
	overBus role = "over"
)

// mark is what a partition says of a move; its zero value is that of one that does not move.
type mark struct {
	isClosed bool
	role     role
	// move is its UID, which both buses have.
	move string
	// run is the UID of the run that has closed an old bus, or that may write to a new one, which is
	// closed; else empty.
	run string
}

// String is the mark as it is stored; empty for none.
func (m mark) String() string {
	if m.role == "" {
		return ""
	}
	state := "open"
	if m.isClosed {
		state = fence.Closed
	}
	return strings.TrimSuffix(strings.Join([]string{state, string(m.role), m.move, m.run}, "/"), "/")
}

// isAny is whether the mark has one of some roles.
func (m mark) isAny(roles ...role) bool { return slices.Contains(roles, m.role) }

// parseMark reads what [mark.String] returns. It fails if a text is none.
func parseMark(text string) (m mark, err error) {
	if text == "" {
		return m, nil
	}
	if parts := strings.Split(text+"/", "/"); len(parts) >= 4 {
		m = mark{parts[0] == fence.Closed, role(parts[1]), parts[2], parts[3]}
	}
	if m.String() != text || !m.isAny(spareBus, newBus, oldBus, cancelledBus, switchedBus, overBus) {
		return mark{}, fmt.Errorf("%s has the field %s with %q, which no version of rtm move writes that this one knows",
			store.Keys{}.Plans(), fence.Field, text)
	}
	return m, nil
}

// readMarks reads those of all partitions of a bus, by number.
func (s *side) readMarks(ctx context.Context) error {
	s.marks = make([]mark, len(s.partitions))
	for i, p := range s.partitions {
		if err := p.RequireOpen(ctx); err != nil { // or it may say nothing
			return s.blame(err)
		}
		text, err := p.HGet(ctx, s.keys[i].Plans(), fence.Field).Result()
		if err = rdb.Wrap("read the mark", err); err != nil {
			return s.blame(err)
		}
		if s.marks[i], err = parseMark(text); err != nil {
			return err
		}
	}
	return nil
}

// become has all partitions of the bus have a mark, if they have those that were read, and what is
// written from now on need it. It fails with errOvertaken if one has another. The first one is
// marked first, and unmarked last.
func (s *side) become(ctx context.Context, m mark) error {
	for i := range s.partitions {
		if m == (mark{}) {
			i = len(s.partitions) - 1 - i
		}
		if err := s.setMark(ctx, i, s.marks[i], m); err != nil {
			return err
		}
	}
	s.useMark(m)
	return nil
}

// setMark has a partition have a mark, also if it has it already, instead of what it was. It fails
// with errOvertaken if that is another one, which is noted then.
func (s *side) setMark(ctx context.Context, number int, was, is mark) error {
	change := s.partitions[number].Change(ctx, scriptMark, was.String(), is.String())
	if change.Err != nil {
		return s.blame(rdb.Wrap("mark the bus", change.Err))
	}
	if change.Changed {
		s.marks[number] = is
		s.step("marked")
		return nil
	}
	other, err := parseMark(change.Text(0))
	if err != nil {
		return err
	}
	s.marks[number] = other
	return errOvertaken
}

// first is the mark that decides what the bus is.
func (s *side) first() mark { return s.marks[0] }

// find is the first mark with one of some roles, if there is any.
func (s *side) find(roles ...role) (mark, bool) {
	i := slices.IndexFunc(s.marks, func(m mark) bool { return m.isAny(roles...) })
	if i < 0 {
		return mark{}, false
	}
	return s.marks[i], true
}

// isAll is whether all partitions of the bus have marks of a role.
func (s *side) isAll(is role) bool {
	return !slices.ContainsFunc(s.marks, func(m mark) bool { return m.role != is })
}

// isOf is whether a partition of the bus has a mark of a move.
func (s *side) isOf(move string) bool {
	return slices.ContainsFunc(s.marks, func(m mark) bool { return m.move == move })
}

// isClosed is whether a partition of the bus is.
func (s *side) isClosed() bool {
	return slices.ContainsFunc(s.marks, func(m mark) bool { return m.isClosed })
}

// state is how far a move is.
type state int

const (
	fresh      state = iota // nothing says that these two are of a move
	copying                 // the old bus is open, the new one closed
	broken                  // a part of the old bus, or all, is closed, and none of the new one open
	elsewhere               // the old bus is copied to another one than this
	cancelling              // a cancel was broken off
	draining                // publishes go to the new bus
	finished                // all is over, but perhaps for marks
)

// readState reads both buses, and says how far the move is; or why that cannot go on. The new bus
// comes first: it has a mark before the old one, and loses it after the old one has its last.
func (m *mover) readState(ctx context.Context) (state, error) {
	if err := errors.Join(m.to.readMarks(ctx), m.from.readMarks(ctx)); err != nil {
		return 0, err
	}
	if _, is := m.from.find(spareBus, newBus); is {
		return 0, errMixedUp
	}
	if _, is := m.to.find(oldBus, cancelledBus, switchedBus, overBus); is {
		return 0, errMixedUp
	}
	if found, is := m.from.find(overBus); is {
		return finished, m.goOnWith(ctx, found)
	}
	if found, is := m.from.find(switchedBus); is {
		return draining, m.goOnWith(ctx, found)
	}
	there := m.to.first()
	if i := slices.IndexFunc(m.to.marks, func(m mark) bool { return m.role == newBus && !m.isClosed }); i >= 0 {
		there = m.to.marks[i]
		if m.from.isOf(there.move) { // a failover of the old bus has lost that it was switched
			m.id = there.move
			return draining, nil
		}
	}
	m.id = m.from.first().move
	switch {
	case m.from.first().role == cancelledBus:
		return cancelling, nil
	case m.id == "":
		if _, is := m.to.find(newBus); is {
			return 0, errTaken
		}
		return fresh, nil
	case there.move != m.id:
		return elsewhere, nil
	case m.from.isClosed():
		return broken, nil
	}
	return copying, nil
}

// goOnWith notes the move that has been switched, or fails if it was to another bus. When it is
// over, the new bus has no mark any more; but it has tokens.
func (m *mover) goOnWith(ctx context.Context, old mark) error {
	m.id = old.move
	if m.to.isOf(m.id) {
		return nil
	}
	if _, isMarked := m.to.find(spareBus, newBus); !isMarked && old.role == overBus {
		tokens, err := m.to.First().Tokens(ctx)
		if err != nil || len(tokens) > 0 {
			return err
		}
	}
	return errMoved
}

// Errors of a run that is refused.
var (
	errSwitched = errors.New("publishes go to the new bus already, so that cannot be undone: to go back, move it back when all is over")
	errNothing  = errors.New("nothing is being moved between these two")
	errMixedUp  = errors.New("these two are not the buses of one move: one of them moves from or to another Redis, " +
		"or --from and --to were mixed up")
	errTaken = errors.New("the Redis that --to names belongs to the move of another bus, or to one that was cancelled with another --to: " +
		"give an empty one")
	errElsewhere = errors.New("this bus is being moved to another Redis: give that one, or --cancel")
	errMoved     = errors.New("this bus was moved to another Redis than --to names, and stays closed: give that one")
	errBroken    = errors.New("a switch was broken off, and publishers get 503: run the same with --switch to try it again, " +
		"or with --cancel to go on with the old bus (unless one runs at this moment)")
	errCancelling = errors.New("a cancel was broken off: run the same with --cancel again")
	errOvertaken  = errors.New("another rtm move went on; run this again to see how far it is")
)
