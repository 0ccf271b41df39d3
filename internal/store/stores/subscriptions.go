package stores

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/errgroup"

	"routemaster/internal/bus"
	"routemaster/internal/rdb"
	"routemaster/internal/store"
)

// Subscribe makes a client a subscriber of exactly the given topics: see [store.Store.Subscribe].
// Once it has returned nil, all events that are published then are queued for it.
func (s *Stores) Subscribe(ctx context.Context, token bus.Token, sub bus.Subscription, now time.Time) error {
	if err := s.Of(token).Subscribe(ctx, token, sub, now); err != nil {
		return err
	}
	return s.Relay(ctx, token, sub.Topics)
}

// PatchSubscriber changes the subscription of a subscriber: see [store.Store.PatchSubscriber].
func (s *Stores) PatchSubscriber(ctx context.Context, token bus.Token, sub bus.Subscription, now time.Time) error {
	if err := s.Of(token).PatchSubscriber(ctx, token, sub, now); err != nil {
		return err
	}
	return s.Relay(ctx, token, sub.Topics)
}

// Relay has the events of topics be relayed to the partition of a subscriber, who is subscribed to
// them. That they are needed no more, the partition says when it gets some. It fails with
// [bus.ErrUnavailable], or [bus.ErrTokenUnknown] if the subscriber is gone.
func (s *Stores) Relay(ctx context.Context, token bus.Token, topics []bus.TopicName) error {
	to, elsewhere := s.Of(token), map[rdb.Number][]bus.TopicName{}
	for _, topic := range topics {
		if home := s.partitions.Home(topic); home != to.Partition() {
			elsewhere[home.Number()] = append(elsewhere[home.Number()], topic)
		}
	}
	if len(elsewhere) == 0 {
		return nil
	}
	name, err := to.ClientName(ctx, token)
	if err == nil && name == "" {
		err = bus.ErrTokenUnknown
	}
	if err != nil {
		return err
	}
	var group errgroup.Group
	for home, topics := range elsewhere {
		group.Go(func() error { return s.relays[home].Open(ctx, topics, to.Partition().Number(), name) })
	}
	return group.Wait()
}

// Unsubscribe ends one subscription. It fails with [bus.ErrTopicUnknown], [bus.ErrNotSubscribed] or
// [bus.ErrUnavailable].
func (s *Stores) Unsubscribe(ctx context.Context, token bus.Token, topic bus.TopicName) error {
	st, home := s.Of(token), s.partitions.Home(topic)
	err := st.Unsubscribe(ctx, token, topic)
	if !errors.Is(err, bus.ErrTopicUnknown) || home == st.Partition() {
		return err
	}
	// A partition knows the topics of its subscribers, and those of which it is the home.
	known, failure := home.SIsMember(ctx, store.Keys{Namespace: home.Namespace()}.Topics(), string(topic)).Result()
	if failure != nil {
		return rdb.Wrap("unsubscribe", failure)
	}
	if known {
		return bus.ErrNotSubscribed
	}
	return err
}
