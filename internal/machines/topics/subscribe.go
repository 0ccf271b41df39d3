package topics

import (
	"context"
	"errors"
	"slices"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/machines"
	"routemaster/internal/rdb"
)

// TidyInterval is how often [Client.Tidy] is to be called.
const TidyInterval = time.Minute

// Apply replaces the definitions, as [labelstore.Store.Apply] does. When it has, each event that is
// published is heard. It fails as that does, and with a [bus.Invalid] for moves that cannot be
// published, or if the client of the machines' name is somebody else.
func (c *Client) Apply(ctx context.Context, next *machines.Definitions, moves []machines.StateMove) (version int64, err error) {
	if err := c.prepare(ctx, next); err != nil {
		return 0, err
	}
	version, err = c.Labels.Apply(ctx, next, moves, c.Now())
	if err != nil {
		return 0, err
	}
	// What tidies by the definitions of before may have come between.
	return version, c.prepare(ctx, next)
}

// prepare has the bus ready for definitions: the clients that publish are there and may, and the
// machines' own is subscribed to all topics of which machines hear, besides those of before.
func (c *Client) prepare(ctx context.Context, next *machines.Definitions) error {
	topics := next.Topics()
	publishes := slices.ContainsFunc(next.Machines, func(m *machines.Machine) bool { return m.Publish != nil })
	if len(topics) == 0 && !publishes {
		return nil
	}
	all, err := c.Store.Tokens(ctx)
	if err != nil {
		return err
	}
	for _, m := range next.Machines {
		if m.Publish != nil {
			if err := c.mayPublish(ctx, all, m); err != nil {
				return err
			}
		}
	}
	if len(topics) == 0 {
		return nil
	}
	token, err := c.own(ctx, all)
	if err != nil {
		return err
	}
	return c.subscribe(ctx, token, topics)
}

// mayPublish refuses moves that would not be published.
func (c *Client) mayPublish(ctx context.Context, all clients, m *machines.Machine) error {
	p := m.Publish
	if p.Publisher != machines.DefaultPublisher && all.token(p.Publisher) == "" {
		return bus.Invalidf("", "state_machines.%s.publish: there is no client %s; add it, or leave publisher out", m.Name, p.Publisher)
	}
	redis := c.Store.Partition()
	publisher, err := redis.HGet(ctx, c.keys.Topic(p.Topic), "publisher").Result()
	if errors.Is(err, rdb.Nil) || publisher == "" && err == nil {
		return nil
	}
	if err != nil {
		return wrap(err)
	}
	owner, known := all[bus.Token(publisher)]
	if !known {
		name, err := redis.HGet(ctx, c.keys.Owners(), string(p.Topic)).Result()
		if err != nil && !errors.Is(err, rdb.Nil) {
			return wrap(err)
		}
		owner = bus.ClientName(name)
	}
	if owner != p.Publisher {
		return bus.Invalidf("", "state_machines.%s.publish: the topic %s belongs to the client %s, not to %s", m.Name, p.Topic, owner, p.Publisher)
	}
	return nil
}

// subscribe adds topics to those that the machines' own client is subscribed to.
func (c *Client) subscribe(ctx context.Context, token bus.Token, topics []bus.TopicName) error {
	s, err := c.subscription(ctx, token)
	if err != nil {
		return err
	}
	if s.callback != "" && s.callback != Callback {
		return bus.Invalidf("", "the client %s has a subscription of its own, with the callback %s; machines that hear topics need that client to themselves",
			machines.DefaultPublisher, s.callback)
	}
	if s.callback != "" && !s.lacks(topics) {
		return nil
	}
	for _, topic := range s.topics {
		if !slices.Contains(topics, topic) {
			topics = append(topics, topic)
		}
	}
	atOnce := time.Duration(0)
	return c.Store.Subscribe(ctx, token, bus.Subscription{Topics: topics, Callback: Callback, Timeout: &atOnce}, c.Now())
}

// Tidy ends subscriptions to topics of which no machine hears any more, and makes good for those
// that are missing. Every worker calls it. A topic must be without need in two calls in a row, so
// that one whose definitions are just being applied stays. It fails with [bus.ErrUnavailable].
func (c *Client) Tidy(ctx context.Context) error {
	definitions, err := c.Labels.Definitions(ctx)
	if err != nil {
		return err
	}
	topics := definitions.Topics()
	if len(topics) == 0 && definitions.Version == c.settled {
		return nil
	}
	all, err := c.Store.Tokens(ctx)
	if err != nil {
		return err
	}
	token := clients(all).token(machines.DefaultPublisher)
	if len(topics) > 0 {
		if token, err = c.own(ctx, all); err != nil {
			return err
		}
		if err := c.subscribe(ctx, token, topics); err != nil {
			return err
		}
	}
	return c.unsubscribe(ctx, token, definitions, topics)
}

// unsubscribe ends the subscriptions that were not needed in the last call either.
func (c *Client) unsubscribe(ctx context.Context, token bus.Token, d *machines.Definitions, topics []bus.TopicName) error {
	s, err := c.subscription(ctx, token)
	if err != nil {
		return err
	}
	var unwanted []bus.TopicName
	for _, topic := range s.topics {
		switch {
		case s.callback != Callback || slices.Contains(topics, topic):
		case slices.Contains(c.unwanted, topic):
			if err := c.Store.Unsubscribe(ctx, token, topic); err != nil && !errors.Is(err, bus.ErrTopicUnknown) && !errors.Is(err, bus.ErrNotSubscribed) {
				return err
			}
		default:
			unwanted = append(unwanted, topic)
		}
	}
	c.unwanted = unwanted
	if len(topics) == 0 && len(unwanted) == 0 {
		c.settled = d.Version
		if s.callback == Callback {
			if err := c.Store.DeleteSubscriber(ctx, token); err != nil && !errors.Is(err, bus.ErrNotSubscribed) {
				return err
			}
		}
	}
	return nil
}

func wrap(err error) error { return rdb.Wrap("read the machines' subscription", err) }
