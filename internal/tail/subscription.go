package tail

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
	"routemaster/internal/terminal"
)

// mark begins the names of the clients that tails create, and the UUIDs of subscriptions.
const mark = "rtm-tail-"

// How long steps may take that Ctrl-C does not interrupt.
const (
	subscribeTimeout   = 10 * time.Second
	unsubscribeTimeout = 10 * time.Second
)

// subscription is a tail's subscription on the bus, and the note of it.
type subscription struct {
	*tail
	// name is the URL of the bus, as notes have it.
	name string
	// bus is a client with the token that the user has given.
	bus *client.Client
	// asRoot says that it is the root key. Then known are the clients of the bus.
	asRoot bool
	known  []client.Token
	// subscriber is the client that subscribes: bus, or one that the tail creates.
	subscriber *client.Client
	note       *note
}

// newSubscription connects to the bus, and finds out whether the token is the root key.
func (t *tail) newSubscription(ctx context.Context) (*subscription, error) {
	connected, err := t.Connect(t.Token)
	if err != nil {
		return nil, err
	}
	s := &subscription{tail: t, name: busName(t.BusURL), bus: connected, subscriber: connected}
	s.known, err = s.bus.Tokens(ctx)
	s.asRoot = err == nil
	if err != nil && !hasStatus(err, http.StatusForbidden, http.StatusUnauthorized) {
		s.close()
		return nil, err
	}
	return s, nil // if no client has the token, the next call fails
}

func (s *subscription) close() {
	s.bus.CloseIdleConnections()
	s.subscriber.CloseIdleConnections()
}

// begin subscribes. What it creates is noted before, and removed if it fails.
func (s *subscription) begin(ctx context.Context) error {
	notes, err := openNotes()
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
	if err := s.create(ctx); err != nil {
		return errors.Join(s.explain(err), s.end(context.WithoutCancel(ctx)))
	}
	return nil
}

// checkFree refuses to replace a subscription.
func (s *subscription) checkFree(ctx context.Context) error {
	subscriptions, err := s.bus.Subscriptions(ctx)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(subscriptions, func(sub client.SubscriptionStatus) bool { return sub.Subscriber == s.Token })
	switch {
	case i < 0:
		return nil
	case strings.HasPrefix(subscriptions[i].UUID, mark):
		return errors.New("another tail has subscribed with this token on another host, or was killed there: end it, or " +
			"unsubscribe with `rtm sub del`; with the root key each tail has a client of its own")
	}
	return fmt.Errorf("this client has a subscription already, to %s, which tail would replace: use the root key, or the token "+
		"of a client without one", terminal.Escape(cmp.Or(strings.Join(subscriptions[i].Topics, " "), "no topic")))
}

// create creates the client, as root, and the subscription, once they are noted.
func (s *subscription) create(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), subscribeTimeout)
	defer cancel()
	content := record{Bus: s.name, UUID: s.receiver.UUID()}
	name := mark + strings.ToLower(rand.Text()[:10])
	if s.asRoot {
		token, err := bus.NewToken(bus.ClientName(name))
		if err != nil {
			return err
		}
		content.Token = string(token)
	}
	if err := s.note.write(content); err != nil {
		return err
	}
	if s.asRoot {
		if _, err := s.bus.AddToken(ctx, name, content.Token); err != nil {
			return err
		}
		subscriber, err := s.Connect(content.Token)
		if err != nil {
			return err
		}
		s.subscriber = subscriber
	}
	timeout := time.Duration(s.Latency) * time.Millisecond
	subscription := client.Subscription{
		Topics: s.Topics, Callback: s.callback(), UUID: s.receiver.UUID(), Timeout: &timeout, Max: s.BatchSize,
	}
	if s.Exec.Retry {
		subscription.Options = map[string]any{"partial": true} // before the first delivery: execute answers with receipts
	}
	return s.subscriber.Subscribe(ctx, subscription)
}

// callback is the URL at which the bus reaches the receiver.
func (t *tail) callback() string { return cmp.Or(t.PublicURL, t.receiver.URL()) }

// explain adds what to do about what the bus refuses of a subscription.
func (s *subscription) explain(err error) error {
	answer, ok := errors.AsType[*client.Error](err)
	switch {
	case ok && answer.Pointer == "/callback":
		return fmt.Errorf("%w; it was %s: --public-url says how the bus reaches this host", err, s.callback())
	case ok && answer.Pointer == "/partial":
		return fmt.Errorf("%w: this bus is too old for --exec-retry", err)
	}
	return err
}

// end removes what begin has created, unless another subscription has replaced it, and the note.
func (s *subscription) end(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, unsubscribeTimeout)
	defer cancel()
	if err := s.cleanUp(ctx, s.note); err != nil {
		_ = s.note.keep()
		return fmt.Errorf("could not unsubscribe: %w; the next tail for this bus does it", err)
	}
	return s.note.remove()
}
