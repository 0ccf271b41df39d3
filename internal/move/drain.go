package move

import (
	"context"
	"errors"
	"slices"

	"routemaster/internal/bus"
	"routemaster/internal/move/queued"
	"routemaster/internal/rdb"
)

// Waiting is what waits on the old bus for a subscriber, which gets nothing from the new one until
// that is delivered.
type Waiting struct {
	// Name is the client's name.
	Name bus.ClientName `json:"subscriber"`
	queued.Left
	// Paused is whether its client has paused it.
	Paused bool `json:"paused"`
	// Error is why it cannot be released, or what its client has changed does not hold on the old bus;
	// empty for nothing.
	Error string `json:"error,omitempty"`
}

// drain releases the subscribers for whom nothing is left on the old bus, and reports the others.
// What clients have changed since the switch holds on the old bus too.
func (m *mover) drain(ctx context.Context) error {
	held, err := m.to.heldTokens(ctx)
	if err != nil {
		return m.to.blame(err)
	}
	all, err := queued.Read(ctx, m.from.Bus) // first: what nothing is queued for does not change any more
	if err != nil {
		return m.from.blame(err)
	}
	tokens := slices.Concat(held, all.Tokens())
	slices.Sort(tokens)
	tokens = slices.Compact(tokens)
	from, err := m.from.readOf(ctx, tokens)
	if err != nil {
		return m.from.blame(err)
	}
	to, err := m.to.readOf(ctx, tokens)
	if err != nil {
		return m.to.blame(err)
	}
	for _, token := range tokens {
		waiting := Waiting{Left: all.Of(token)}
		was, is := from.subscribers[token], to.subscribers[token]
		if _, isHeld := slices.BinarySearch(held, token); isHeld {
			err := m.drainOne(ctx, token, was, is, waiting.Left == queued.Left{})
			if errors.Is(err, bus.ErrUnavailable) {
				return err
			}
			if err != nil {
				waiting.Error = err.Error()
			}
		} else if was == nil {
			continue // it is dropped there
		}
		if waiting == (Waiting{}) {
			continue
		}
		waiting.Name = bus.PublicName(token, from.tokens[token])
		waiting.Paused = is != nil && rdb.Integer(is.pausedUntil, 0) > m.Now().UnixMilli()
		m.report.Waiting = append(m.report.Waiting, waiting)
	}
	return nil
}

// drainOne has a subscriber that is held be on the old bus what it is on the new one, and releases
// it if nothing is left there.
func (m *mover) drainOne(ctx context.Context, token bus.Token, was, is *subscriber, nothingLeft bool) error {
	if was == nil {
		was = &subscriber{}
	} else if err := m.follow(ctx, token, was, is); err != nil && !errors.Is(err, bus.ErrNotSubscribed) {
		return m.from.blame(err)
	}
	if !nothingLeft {
		return nil
	}
	if err := m.release(ctx, token, was); err != nil {
		return m.to.blame(err)
	}
	m.report.Released++
	m.step("released")
	return nil
}

// follow has what waits on the old bus go to where its client is now, if it is a subscriber still.
func (m *mover) follow(ctx context.Context, token bus.Token, was, is *subscriber) error {
	st := m.from.Of(token)
	if is == nil {
		return st.DeleteSubscriber(ctx, token)
	}
	if !was.equal(is.settings, false) {
		change := is.subscription()
		change.Topics = nil
		if err := st.PatchSubscriber(ctx, token, change, m.Now()); err != nil {
			return err
		}
		args := append([]any{string(token), is.secrets, bus.NewPlan()}, is.fields()...)
		if err := st.Change(ctx, "change subscriber", scriptFollow, args...); err != nil {
			return err
		}
	}
	switch {
	case was.pausedUntil == is.pausedUntil:
		return nil
	case is.pausedUntil == "0":
		return st.Resume(ctx, token)
	}
	return st.Pause(ctx, token, msTime(is.pausedUntil))
}
