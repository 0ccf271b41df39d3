package engine

import (
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/layout"
	"routemaster/internal/machines"
	"routemaster/internal/rdb"
	"routemaster/internal/store"
)

// TidyInterval is how often [Client.Tidy] is to be called.
const TidyInterval = time.Minute

// Apply replaces the definitions, as [Bus.Apply] does. When it has, each event that
// is published is heard. It fails as that does, and with a [bus.Invalid] for moves that cannot be
// published.
func (c *Client) Apply(ctx context.Context, next *machines.Definitions, moves []machines.StateMove) (version int64, err error) {
	if err := c.prepare(ctx, next); err != nil {
		return 0, err
	}
	version, err = c.Labels.Apply(ctx, next, moves, c.Now())
	if err != nil {
		return 0, err
	}
	// A Tidy by the earlier definitions may have come between. From now on none does.
	return version, c.subscribe(ctx, next.Topics())
}

// prepare readies the bus for definitions: it lets the publishing clients publish, and subscribes
// the machines' own client to all topics that machines consume, in addition to the earlier ones.
func (c *Client) prepare(ctx context.Context, next *machines.Definitions) error {
	if slices.ContainsFunc(next.Machines, func(m *machines.Machine) bool { return m.Publish != nil }) {
		all, err := c.Stores.Tokens(ctx)
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
	}
	return c.subscribe(ctx, next.Topics())
}

// mayPublish refuses moves that would not be published.
func (c *Client) mayPublish(ctx context.Context, all clients, m *machines.Machine) error {
	p := m.Publish
	if p.Publisher != machines.DefaultPublisher && all.token(p.Publisher) == "" {
		return bus.Invalidf("", "state_machines.%s.publish: there is no client %s; add it, or leave publisher out", m.Name, p.Publisher)
	}
	owner, err := c.owner(ctx, all, p.Topic)
	if err == nil && owner != "" && owner != p.Publisher {
		return bus.Invalidf("", "state_machines.%s.publish: the topic %s belongs to the client %s, not to %s", m.Name, p.Topic, owner, p.Publisher)
	}
	return err
}

// owner returns the client that publishes to a topic; empty if none does.
func (c *Client) owner(ctx context.Context, all clients, topic bus.TopicName) (bus.ClientName, error) {
	home := c.Stores.Home(topic).Partition()
	keys := layout.Keys{Namespace: home.Namespace()}
	publisher, err := home.HGet(ctx, keys.Topic(topic), "publisher").Result()
	if errors.Is(err, rdb.Nil) || err == nil && publisher == "" {
		return "", nil
	}
	if owner := all[bus.Token(publisher)]; owner != "" || err != nil {
		return owner, rdb.Wrap("read topic", err)
	}
	owner, err := home.HGet(ctx, keys.Owners(), string(topic)).Result() // its token was deleted
	if errors.Is(err, rdb.Nil) {
		err = nil
	}
	return bus.ClientName(owner), rdb.Wrap("read owner of topic", err)
}

// subscribe adds topics to the subscription of the machines' own client.
func (c *Client) subscribe(ctx context.Context, topics []bus.TopicName) error {
	if len(topics) == 0 {
		return nil
	}
	at, err := c.home(ctx)
	if err != nil {
		return err
	}
	fresh, err := c.newToken(at)
	if err != nil {
		return err
	}
	// A label wants the events that came before its machine's subscription was made good for, too.
	args := append(
		store.SubscriberArgs{
			Token: string(fresh), Now: c.Now().UnixMilli(), MaxEvents: bus.DefaultMaxEvents, MaxClientTopics: math.MaxInt32,
			MaxTopics: math.MaxInt32, Callback: Callback, OptionsVersion: bus.NewOptionsVersion(),
			Fields: 1, Options: 1, WithTopics: true, Anyway: true,
		}.List(),
		"timeout", 0,
		"strict_order", "true", // else older events of a label may come after later ones
	)
	for _, topic := range topics {
		args = append(args, string(topic))
	}
	change := at.Partition().Change(ctx, scriptOwnSubscribe, append(args, string(machines.DefaultPublisher), at.elsewhere)...)
	err = change.Refusal("subscribe the machines", nil)
	if err != nil || !at.Partition().IsOneOfSeveral() {
		return err
	}
	token, err := c.ownAt(ctx, at)
	if err != nil {
		return err
	}
	return c.Stores.Relay(ctx, token, topics)
}

// Tidy ends subscriptions to topics that no machine consumes any more, and restores missing ones.
// Every worker calls it. A topic must be unused in two calls in a row, as definitions that need it
// may just be on their way. It fails with [bus.ErrUnavailable].
func (c *Client) Tidy(ctx context.Context) error {
	definitions, err := c.Labels.Definitions(ctx)
	if err != nil || definitions.Version == 0 {
		return err
	}
	at, err := c.home(ctx)
	if err != nil {
		return err
	}
	subscribed, err := at.Partition().Run(ctx, scriptOwnShow, string(machines.DefaultPublisher), Callback, at.elsewhere).List()
	if err != nil {
		return rdb.Wrap("read the machines' subscription", err)
	}
	var unwanted, ending []bus.TopicName
	missing := definitions.Topics()
	for _, value := range subscribed {
		topic := bus.TopicName(rdb.Text(value))
		needed := slices.Contains(missing, topic)
		missing = slices.DeleteFunc(missing, func(t bus.TopicName) bool { return t == topic })
		switch {
		case needed:
		case slices.Contains(c.unwanted, topic):
			ending = append(ending, topic)
		default:
			unwanted = append(unwanted, topic)
		}
	}
	c.unwanted = unwanted
	if err := c.subscribe(ctx, missing); err != nil || len(ending) == 0 {
		return err
	}
	return c.unsubscribe(ctx, at, definitions.Version, ending)
}

// unsubscribe ends subscriptions that are not needed by definitions of a version, unless there are
// others now.
func (c *Client) unsubscribe(ctx context.Context, at home, version int64, topics []bus.TopicName) error {
	definitions := layout.Keys{Namespace: at.Partition().Namespace()}.Definitions()
	args := []any{string(machines.DefaultPublisher), Callback, at.elsewhere, definitions, version}
	for _, topic := range topics {
		args = append(args, string(topic))
	}
	change := at.Partition().Change(ctx, scriptOwnUnsubscribe, args...)
	err := change.Refusal("unsubscribe the machines", map[string]error{"changed": machines.ErrChanged})
	if errors.Is(err, machines.ErrChanged) {
		return nil
	}
	return err
}
