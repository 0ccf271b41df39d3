package tail

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"slices"
	"strings"

	"routemaster/client"
	"routemaster/internal/terminal"
)

// takeNote takes the note of this tail, and removes what earlier tails have left on the bus.
func (s *subscription) takeNote(ctx context.Context, notes *notes) error {
	name := noteName(s.name, s.Token)
	if s.asRoot {
		name = rand.Text()
	}
	own, left, err := notes.take(ctx, name, s.name)
	if errors.Is(err, errTaken) {
		return errors.New("another tail with this token runs on this host, and a client has one subscription: " +
			"with the root key each tail has a client of its own")
	}
	if err != nil {
		return err
	}
	s.note = own
	for _, old := range left {
		err := s.cleanUp(ctx, old)
		if old == own {
			if err != nil {
				return errors.Join(err, own.keep())
			}
			continue // it is written again
		}
		if err != nil {
			s.say("could not remove everything that an earlier tail has left: %v", err)
			_ = old.keep()
			continue
		}
		_ = old.remove()
	}
	if s.asRoot {
		s.reportUnknown(left)
	}
	return nil
}

// errNeedsRoot says that a leftover belongs to another client.
var errNeedsRoot = errors.New("that needs the root key, or the token that the tail had")

// cleanUp removes from the bus what a note names.
func (s *subscription) cleanUp(ctx context.Context, note *note) error {
	switch {
	case note.Token != "" && s.asRoot:
		return s.bus.DeleteToken(ctx, note.Token)
	case note.Token != "":
		err := s.unsubscribe(ctx, note.Token)
		if hasStatus(err, http.StatusUnauthorized) {
			return nil // the client has been removed already
		}
		return cmp.Or(err, errNeedsRoot)
	}
	subscriptions, err := s.bus.Subscriptions(ctx)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(subscriptions, func(sub client.SubscriptionStatus) bool { return sub.UUID == note.UUID })
	switch {
	case i >= 0:
		return s.unsubscribe(ctx, subscriptions[i].Subscriber)
	case s.asRoot || note == s.note:
		return nil // it is gone, or another one has replaced it
	}
	return errNeedsRoot
}

// unsubscribe removes the subscription of a token, if there is one.
func (s *subscription) unsubscribe(ctx context.Context, token string) error {
	subscriber, err := s.Connect(token)
	if err != nil {
		return err
	}
	defer subscriber.CloseIdleConnections()
	if err = subscriber.UnsubscribeAll(ctx); hasStatus(err, http.StatusNotFound) {
		return nil
	}
	return err
}

// hasStatus reports whether an error is a response of the bus with one of some statuses.
func hasStatus(err error, statuses ...int) bool {
	answer, ok := errors.AsType[*client.Error](err)
	return ok && slices.Contains(statuses, answer.Status)
}

// reportUnknown names the clients of tails of which there is no note: they may run on another host.
func (s *subscription) reportUnknown(left []*note) {
	var names []string
	for _, known := range s.known {
		ours := slices.ContainsFunc(left, func(note *note) bool { return note.Token == known.Token })
		if strings.HasPrefix(known.Name, mark) && !ours && !s.note.notes.has(known.Token) {
			names = append(names, terminal.Escape(known.Name))
		}
	}
	if len(names) > 0 {
		s.say("clients of tails that run on other hosts, or were left there: %s", strings.Join(names, " "))
	}
}
