package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"routemaster/client"
	"routemaster/internal/bus"
)

// tailMark begins the names of the clients that tails make, and the uuids of the subscriptions.
const tailMark = "rtm-tail-"

// Bounds of what must not be cut off half-way by Ctrl-C.
const (
	subscribeTimeout   = 10 * time.Second
	unsubscribeTimeout = 10 * time.Second
)

// tailSubscription is a tail's subscription on the bus, and the note of it.
type tailSubscription struct {
	*tail
	// name is the bus's, as notes have it.
	name string
	// token is what the user has given, bus its client.
	token string
	bus   *client.Client
	// asRoot says that it is the root key.
	asRoot bool
	// known are the bus's clients, for root.
	known []client.Token
	// subscriber is the client that subscribes: bus, or one that the tail makes.
	subscriber *client.Client
	note       *tailNote
}

// newSubscription finds out as whom the tail talks to the bus.
func (t *tail) newSubscription(ctx context.Context) (*tailSubscription, error) {
	url, token, err := t.bus.resolve()
	if err != nil {
		return nil, usageError{err}
	}
	s := &tailSubscription{tail: t, name: busName(url), token: token}
	if s.bus, err = t.bus.client(); err != nil {
		return nil, err
	}
	s.subscriber = s.bus
	s.known, err = s.bus.Tokens(ctx)
	s.asRoot = err == nil
	if err != nil && !hasStatus(err, http.StatusForbidden, http.StatusUnauthorized) {
		s.close()
		return nil, err
	}
	return s, nil // not root: a client, unless the next call says that there is none with that token
}

func (s *tailSubscription) close() {
	s.bus.CloseIdleConnections()
	s.subscriber.CloseIdleConnections()
}

// as is a client with another token.
func (s *tailSubscription) as(token string) (*client.Client, error) {
	flags := s.tail.bus
	flags.bus, flags.token = s.name, token
	return flags.client()
}

// begin subscribes. Whatever it makes is noted before, and removed if it fails.
func (s *tailSubscription) begin(ctx context.Context) error {
	notes, err := openTailNotes()
	if err != nil {
		return err
	}
	if err := s.takeNote(ctx, notes); err != nil {
		return err
	}
	if !s.asRoot {
		if err := s.checkFree(ctx); err != nil {
			return errors.Join(err, s.note.remove())
		}
	}
	if err := s.make(ctx); err != nil {
		return errors.Join(s.explain(err), s.end(context.WithoutCancel(ctx)))
	}
	return nil
}

// checkFree refuses to replace a subscription.
func (s *tailSubscription) checkFree(ctx context.Context) error {
	subscriptions, err := s.bus.Subscriptions(ctx)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(subscriptions, func(sub client.SubscriptionStatus) bool { return sub.Subscriber == s.token })
	switch {
	case i < 0:
		return nil
	case strings.HasPrefix(subscriptions[i].UUID, tailMark):
		return errors.New("another rtm tail has subscribed with this token on another machine, or was killed there: end it, or " +
			"unsubscribe with `rtm sub del`; with the root key each tail has a client of its own")
	}
	return fmt.Errorf("this client has a subscription already, to %s, which tail would replace: use the root key, or the token "+
		"of a client that has none", showable(cmp.Or(strings.Join(subscriptions[i].Topics, " "), "no topic")))
}

// make makes the client, for root, and the subscription, once they are noted.
func (s *tailSubscription) make(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), subscribeTimeout)
	defer cancel()
	record := tailRecord{Bus: s.name, UUID: s.receiver.uuid}
	name := tailMark + strings.ToLower(rand.Text()[:10])
	if s.asRoot {
		token, err := bus.NewToken(bus.ClientName(name))
		if err != nil {
			return err
		}
		record.Token = string(token)
	}
	if err := s.note.write(record); err != nil {
		return err
	}
	if s.asRoot {
		if _, err := s.bus.AddToken(ctx, name, record.Token); err != nil {
			return err
		}
		subscriber, err := s.as(record.Token)
		if err != nil {
			return err
		}
		s.subscriber = subscriber
	}
	timeout := time.Duration(s.latency) * time.Millisecond
	return s.subscriber.Subscribe(ctx, client.Subscription{
		Topics: s.topics, Callback: s.callback(), UUID: s.receiver.uuid, Timeout: &timeout, Max: s.batchSize,
	})
}

// callback is where the bus reaches the receiver.
func (t *tail) callback() string { return cmp.Or(t.publicURL, t.receiver.url()) }

// explain says what to do about a callback that the bus refuses.
func (s *tailSubscription) explain(err error) error {
	if answer, ok := errors.AsType[*client.Error](err); ok && answer.Pointer == "/callback" {
		return fmt.Errorf("%w; it was %s: say with --public-url how the bus reaches this machine", err, s.callback())
	}
	return err
}

// end removes what begin has made, unless somebody else's subscription is in its place, and then the note.
func (s *tailSubscription) end(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, unsubscribeTimeout)
	defer cancel()
	if err := s.cleanUp(ctx, s.note); err != nil {
		_ = s.note.keep()
		return fmt.Errorf("could not unsubscribe: %w; the next rtm tail for this bus will", err)
	}
	return s.note.remove()
}
