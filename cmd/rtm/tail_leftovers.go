package main

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	"routemaster/client"
)

// takeNote takes the note of this tail, and removes what tails before it have left on the bus.
func (s *tailSubscription) takeNote(ctx context.Context, notes *tailNotes) error {
	name := noteName(s.name, s.token)
	if s.asRoot {
		name = newSecret()
	}
	note, left, err := notes.take(ctx, name, s.name)
	if errors.Is(err, errTailRuns) {
		return errors.New("another rtm tail with this token runs on this machine, and a client has one subscription: " +
			"with the root key each tail has a client of its own")
	}
	if err != nil {
		return err
	}
	s.note = note
	for _, old := range left {
		err := s.cleanUp(ctx, old)
		if old == note {
			if err != nil {
				return errors.Join(err, note.keep())
			}
			continue // it is written anew
		}
		if err != nil {
			s.say("could not remove all that an earlier tail has left: %v", err)
			_ = old.keep()
			continue
		}
		_ = old.remove()
	}
	if s.asRoot {
		s.tellStrangers(left)
	}
	return nil
}

// errNeedsRoot says that a leftover is somebody else's.
var errNeedsRoot = errors.New("the root key, or the token that it was run with, is needed for that")

// cleanUp removes from the bus what a note says.
func (s *tailSubscription) cleanUp(ctx context.Context, note *tailNote) error {
	switch {
	case note.Token != "" && s.asRoot:
		return s.bus.DeleteToken(ctx, note.Token)
	case note.Token != "":
		err := s.unsubscribe(ctx, note.Token)
		if hasStatus(err, http.StatusUnauthorized) {
			return nil // somebody else has removed that client
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
		return nil // it is gone, or another one is in its place
	}
	return errNeedsRoot
}

// unsubscribe removes the subscription of a token, if there is one.
func (s *tailSubscription) unsubscribe(ctx context.Context, token string) error {
	subscriber, err := s.as(token)
	if err != nil {
		return err
	}
	defer subscriber.CloseIdleConnections()
	if err = subscriber.UnsubscribeAll(ctx); hasStatus(err, http.StatusNotFound) {
		return nil
	}
	return err
}

// hasStatus reports whether an error is an answer of the bus with one of some statuses.
func hasStatus(err error, statuses ...int) bool {
	answer, ok := errors.AsType[*client.Error](err)
	return ok && slices.Contains(statuses, answer.Status)
}

// tellStrangers names the clients of tails of which this machine knows nothing. They may run on another one.
func (s *tailSubscription) tellStrangers(left []*tailNote) {
	var names []string
	for _, known := range s.known {
		ours := slices.ContainsFunc(left, func(note *tailNote) bool { return note.Token == known.Token })
		if strings.HasPrefix(known.Name, tailMark) && !ours && !s.note.notes.has(known.Token) {
			names = append(names, showable(known.Name))
		}
	}
	if len(names) > 0 {
		s.say("there are clients of tails that this machine does not know, running elsewhere or left there: %s", strings.Join(names, " "))
	}
}
