package move

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"routemaster/internal/rdb"
	"routemaster/internal/store"
	"routemaster/internal/store/fence"
)

// role is what a bus is of a move.
type role string

const (
	oldBus  role = "old"
	newBus  role = "new"
	leftBus role = "left" // the old one, when all is over
)

// mark is what a partition says of a move; its zero value is that of one that does not move.
type mark struct {
	isClosed bool
	role     role
	// move is its UID, which both buses have.
	move string
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
	return state + "/" + string(m.role) + "/" + m.move
}

// parseMark reads what [mark.String] returns. It fails if a text is none.
func parseMark(text string) (m mark, err error) {
	if text == "" {
		return m, nil
	}
	parts := strings.Split(text, "/")
	if len(parts) == 3 {
		m = mark{parts[0] == fence.Closed, role(parts[1]), parts[2]}
	}
	if m.String() != text {
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
			return err
		}
		text, err := p.HGet(ctx, s.keys[i].Plans(), fence.Field).Result()
		if err = rdb.Wrap("read the mark", err); err != nil {
			return err
		}
		if s.marks[i], err = parseMark(text); err != nil {
			return err
		}
	}
	return nil
}

// setMark has some partitions of the bus say what they are.
func (s *side) setMark(ctx context.Context, m mark, partitions ...int) error {
	for _, i := range partitions {
		change := s.partitions[i].Change(ctx, scriptMark, m.String())
		if change.Err != nil {
			return rdb.Wrap("mark the bus", change.Err)
		}
		s.marks[i] = m
	}
	return nil
}

// unlike are the numbers of the partitions with other marks.
func (s *side) unlike(m mark) (numbers []int) {
	for i, said := range s.marks {
		if said != m {
			numbers = append(numbers, i)
		}
	}
	return numbers
}

// state is how far a move is.
type state int

const (
	fresh      state = iota // nothing says that anything moves
	copying                 // the old bus is open, the new one closed
	broken                  // a part of the old bus, or all, is closed, and none of the new one open
	switched                // a part of the new bus, or all, is open
	finished                // all is over, but perhaps for marks
	unmatching              // these are not of one move
)

// readState reads both buses, and says how far the move is.
func (m *mover) readState(ctx context.Context) (state, error) {
	if err := errors.Join(m.from.readMarks(ctx), m.to.readMarks(ctx)); err != nil {
		return 0, err
	}
	m.id = ""
	var isClosed, isOpen, isLeft bool // the old bus, the new bus, the old bus
	for _, side := range []*side{m.from, m.to} {
		for _, said := range side.marks {
			isNew := said.role == newBus
			if said.role == "" {
				continue
			}
			if isNew != (side == m.to) || m.id != "" && said.move != m.id {
				return unmatching, nil
			}
			m.id = said.move
			isClosed = isClosed || !isNew && said.isClosed
			isOpen = isOpen || isNew && !said.isClosed
			isLeft = isLeft || said.role == leftBus
		}
	}
	switch {
	case isLeft:
		return finished, nil
	case isOpen:
		return switched, nil
	case isClosed:
		return broken, nil
	case m.id != "":
		return copying, nil
	}
	return fresh, nil
}
