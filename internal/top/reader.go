package top

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"routemaster/client"
	"routemaster/internal/bus"
)

// answersWithin bounds a snapshot: a bus that takes longer is told to be away.
const answersWithin = 5 * time.Second

// Reader takes snapshots of a bus. It is for one caller at a time.
type Reader struct {
	bus    *client.Client
	token  string
	within time.Duration

	// names are those of the clients by token, which only root is shown; nil for others.
	names map[string]string
	// asked is whether it is known if the token is root's.
	asked bool
}

// NewReader makes a reader of a bus. The client should not retry; the token is the one that it uses.
func NewReader(c *client.Client, token string) *Reader {
	return &Reader{bus: c, token: token, within: answersWithin}
}

// Close closes the connections.
func (r *Reader) Close() { r.bus.CloseIdleConnections() }

// Read takes a snapshot. It fails if the bus does not list its topics and subscribers; anything else that is missing is
// told in the snapshot.
func (r *Reader) Read(ctx context.Context) (Snapshot, error) {
	ctx, cancel := context.WithTimeout(ctx, r.within)
	defer cancel()
	snapshot, err := r.read(ctx)
	return snapshot, inWords(err, r.within)
}

// inWords says of an error that it took too long.
func inWords(err error, within time.Duration) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("no answer within %v", within)
	}
	return err
}

func (r *Reader) read(ctx context.Context) (Snapshot, error) {
	var s Snapshot
	if !r.asked {
		if err := r.readNames(ctx); err != nil {
			return s, err
		}
	}
	var topics []client.Topic
	var subscribers []client.SubscriptionStatus
	var web families
	var webErr error
	group, groupCtx := errgroup.WithContext(ctx)
	besides, cancel := context.WithTimeout(groupCtx, r.within/2) // what can be done without must not take all the time
	defer cancel()
	group.Go(func() (err error) { topics, err = r.bus.Topics(groupCtx); return err })
	group.Go(func() (err error) { subscribers, err = r.bus.Subscriptions(groupCtx); s.At = time.Now(); return err })
	group.Go(func() error { web, webErr = r.readWeb(besides); return nil })
	if err := group.Wait(); err != nil {
		return s, err
	}

	s.Bus = web.bus()
	switch {
	case webErr != nil:
		s.Troubles = append(s.Troubles, fmt.Sprintf("The bus's metrics are missing: %v.", inWords(webErr, r.within/2)))
	case web.redisIsAway():
		s.Troubles = append(s.Troubles, "The bus's metrics are missing: its Redis did not answer in time.")
	}
	name, err := r.naming(ctx, subscribers, web.healthy())
	if err != nil {
		return s, err
	}
	s.Topics, s.Subscribers = topicStates(topics, name), subscriberStates(subscribers, name)
	return s, nil
}

func (r *Reader) readWeb(ctx context.Context) (families, error) {
	page, err := r.bus.Metrics(ctx)
	if err != nil {
		return nil, err
	}
	defer page.Close()
	return parseMetrics(page)
}

// readNames reads the names of all clients, if the token is root's.
func (r *Reader) readNames(ctx context.Context) error {
	tokens, err := r.bus.Tokens(ctx)
	if answered, ok := errors.AsType[*client.Error](err); ok && answered.Status/100 == 4 {
		r.asked = true // not root; if the token is none at all, the next request tells
		return nil
	}
	if err != nil {
		return err
	}
	r.asked, r.names = true, make(map[string]string, len(tokens))
	for _, t := range tokens {
		r.names[t.Token] = t.Name
	}
	return nil
}

// naming returns what clients are called on the screen. The bus shows tokens to root, and every client its own: they
// are secrets, and its metrics know clients by name.
func (r *Reader) naming(ctx context.Context, subscribers []client.SubscriptionStatus, known []string) (func(identity string) string, error) {
	if r.names == nil {
		own := r.ownName(subscribers, known)
		return func(identity string) string {
			if identity == r.token {
				return own
			}
			return identity
		}, nil
	}
	unknown := func(sub client.SubscriptionStatus) bool { _, ok := r.names[sub.Subscriber]; return !ok }
	if slices.ContainsFunc(subscribers, unknown) { // a new client
		if err := r.readNames(ctx); err != nil {
			return nil, err
		}
		for _, sub := range subscribers {
			if unknown(sub) { // its token is gone
				r.names[sub.Subscriber] = ""
			}
		}
	}
	return func(identity string) string {
		if identity == "" {
			return ""
		}
		return string(bus.PublicName(bus.Token(identity), bus.ClientName(r.names[identity])))
	}, nil
}

// thisClient is what the client that the token is of is called where its name is not known.
const thisClient = "(this client)"

// ownName finds out the name of the client that the token is of: as the bus tells it with its subscription, else it is the one
// subscriber that the metrics know and nobody else is.
func (r *Reader) ownName(subscribers []client.SubscriptionStatus, known []string) string {
	subscribed := false
	for _, sub := range subscribers {
		if sub.Subscriber == r.token && sub.Name != "" {
			return sub.Name
		}
		known = slices.DeleteFunc(known, func(name string) bool { return name == sub.Subscriber })
		subscribed = subscribed || sub.Subscriber == r.token
	}
	if subscribed && len(known) == 1 {
		return known[0]
	}
	return thisClient
}

func topicStates(topics []client.Topic, name func(string) string) []TopicState {
	states := make([]TopicState, len(topics))
	for i, t := range topics {
		states[i] = TopicState{t.Name, name(t.Publisher), t.Events}
	}
	return states
}

// subscriberStates joins the subscribers of one name, as the bus's metrics do: the sum, the worst health, the oldest event.
func subscriberStates(subscribers []client.SubscriptionStatus, name func(string) string) []SubscriberState {
	var states []SubscriberState
	at := map[string]int{}
	for _, sub := range subscribers {
		now := SubscriberState{
			Name: name(sub.Subscriber), Topics: sub.Topics, Timeout: sub.Timeout, Sent: sub.Sent, Queued: sub.Queued,
			Health: sub.Health, OldestAt: sub.Oldest, AttemptedAt: sub.LastAttempted,
		}
		if i, ok := at[now.Name]; ok {
			states[i] = states[i].joined(now)
			continue
		}
		at[now.Name] = len(states)
		states = append(states, now)
	}
	return states
}

func (s SubscriberState) joined(other SubscriberState) SubscriberState {
	s.Topics = slices.Compact(slices.Sorted(slices.Values(slices.Concat(s.Topics, other.Topics))))
	s.Timeout = max(s.Timeout, other.Timeout)
	s.Sent += other.Sent
	s.Queued += other.Queued
	s.Health = min(s.Health, other.Health)
	if s.OldestAt.IsZero() || !other.OldestAt.IsZero() && other.OldestAt.Before(s.OldestAt) {
		s.OldestAt = other.OldestAt
	}
	if other.AttemptedAt.After(s.AttemptedAt) {
		s.AttemptedAt = other.AttemptedAt
	}
	return s
}
