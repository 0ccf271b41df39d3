package stats

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

// readTimeout bounds a snapshot. A bus that takes longer counts as unavailable.
const readTimeout = 5 * time.Second

// Reader takes snapshots of a bus. It must not be used concurrently.
type Reader struct {
	bus     *client.Client
	token   string
	timeout time.Duration

	// names has the clients' names by token. Only root may read them: it is nil for others.
	names map[string]string
	// namesRead is whether names is final for a token that is not root's.
	namesRead bool
}

// NewReader makes a reader of a bus. Token is the one that the client uses. The client should not
// retry, because the next snapshot does.
func NewReader(c *client.Client, token string) *Reader {
	return &Reader{bus: c, token: token, timeout: readTimeout}
}

// Close closes the connections of the client.
func (r *Reader) Close() { r.bus.CloseIdleConnections() }

// Read takes a snapshot, within 5 s. It fails if the bus does not list its topics and
// subscribers. What else is missing is named by the snapshot's warnings.
func (r *Reader) Read(ctx context.Context) (Snapshot, error) {
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	snapshot, err := r.read(ctx)
	return snapshot, explain(err, r.timeout)
}

// explain describes an error that is a timeout.
func explain(err error, timeout time.Duration) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("no answer within %v", timeout)
	}
	return err
}

func (r *Reader) read(ctx context.Context) (Snapshot, error) {
	var s Snapshot
	if !r.namesRead {
		if err := r.readNames(ctx); err != nil {
			return s, err
		}
	}
	var topics []client.Topic
	var subscribers []client.SubscriptionStatus
	var web families
	var webErr error
	group, groupCtx := errgroup.WithContext(ctx)
	optional, cancel := context.WithTimeout(groupCtx, r.timeout/2) // a snapshot without metrics must be in time
	defer cancel()
	group.Go(func() (err error) { topics, err = r.bus.Topics(groupCtx); return err })
	group.Go(func() (err error) { subscribers, err = r.bus.Subscriptions(groupCtx); s.At = time.Now(); return err })
	group.Go(func() error { web, webErr = r.readWeb(optional); return nil })
	if err := group.Wait(); err != nil {
		return s, err
	}

	s.Bus = web.bus()
	switch {
	case webErr != nil:
		s.Warnings = append(s.Warnings, fmt.Sprintf("The bus's metrics are missing: %v.", explain(webErr, r.timeout/2)))
	case web.redisUnavailable():
		s.Warnings = append(s.Warnings, "The bus's metrics are missing: its Redis did not answer in time.")
	}
	name, err := r.naming(ctx, subscribers, web.subscribed())
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
		r.namesRead = true // not root; a token that is not valid makes the next request fail
		return nil
	}
	if err != nil {
		return err
	}
	r.namesRead, r.names = true, make(map[string]string, len(tokens))
	for _, t := range tokens {
		r.names[t.Token] = t.Name
	}
	return nil
}

// naming returns a function from what the bus calls a client to the client's name. The bus shows
// all tokens to root, and to every client its own. Tokens are secrets, and the metrics have
// names.
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
	if slices.ContainsFunc(subscribers, unknown) { // clients are new
		if err := r.readNames(ctx); err != nil {
			return nil, err
		}
		for _, sub := range subscribers {
			if unknown(sub) { // the token was deleted
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

// thisClient names the client that the token belongs to, if its name is not known.
const thisClient = "(this client)"

// ownName returns the name of the client that the token belongs to. The bus shows it with the
// client's subscription; older ones do not. Then it is the only name in the metrics that no other
// subscriber has.
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

// subscriberStates joins subscribers that share a name, as the bus's metrics do: the sum of what
// waits, the worst health and the oldest event.
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
