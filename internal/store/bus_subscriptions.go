package store

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/errgroup"

	"routemaster/internal/bus"
	"routemaster/internal/layout"
	"routemaster/internal/rdb"
)

// Subscribe makes a client a subscriber of exactly the given topics: see [Store.Subscribe].
// Once it has returned nil, all events that are published then are queued for it.
func (s *Bus) Subscribe(ctx context.Context, token bus.Token, sub bus.Subscription, now time.Time) error {
	return s.subscribe(ctx, token, sub.Topics, func(st *Store) error { return st.Subscribe(ctx, token, sub, now) })
}

// PatchSubscriber changes the subscription of a subscriber: see [Store.PatchSubscriber].
func (s *Bus) PatchSubscriber(ctx context.Context, token bus.Token, sub bus.Subscription, now time.Time) error {
	return s.subscribe(ctx, token, sub.Topics, func(st *Store) error { return st.PatchSubscriber(ctx, token, sub, now) })
}

// subscribe stores a subscription in its token's partition, and opens relays of its topics to
// there.
func (s *Bus) subscribe(ctx context.Context, token bus.Token, topics []bus.TopicName, put func(*Store) error) error {
	st := s.Of(token)
	if !st.Partition().IsOneOfSeveral() || len(topics) == 0 {
		return put(st)
	}
	name, err := st.ClientName(ctx, token)
	if err != nil {
		return err
	}
	homes := s.byHome(topics)
	if err := s.mayName(ctx, name, homes); err != nil {
		return err
	}
	if err := s.noteStarts(ctx, st, token, homes); err != nil {
		return err
	}
	if err := put(st); err != nil {
		return err
	}
	return s.open(ctx, st, name, homes)
}

// noteStarts notes where subscriptions start that a client is about to have, with topics by their
// homes: events that are on their way from there were published before.
func (s *Bus) noteStarts(ctx context.Context, st *Store, token bus.Token, homes map[rdb.Number][]bus.TopicName) error {
	var group errgroup.Group
	to := s.relays[st.Partition().Number()]
	for home, topics := range homes {
		group.Go(func() error { return to.NoteStarts(ctx, s.relays[home], token, topics) })
	}
	return group.Wait()
}

// byHome are topics by the number of their home.
func (s *Bus) byHome(topics []bus.TopicName) map[rdb.Number][]bus.TopicName {
	found := map[rdb.Number][]bus.TopicName{}
	for _, topic := range topics {
		number := s.partitions.Home(topic).Number()
		found[number] = append(found[number], topic)
	}
	return found
}

// mayName returns a [bus.TopicLimitError] if the topics that a client names and the bus does not
// know yet would exceed a limit. Two such clients at once may exceed it slightly.
func (s *Bus) mayName(ctx context.Context, client bus.ClientName, topics map[rdb.Number][]bus.TopicName) error {
	ofClient, ofBus := s.First().TopicLimits()
	if ofClient == 0 && ofBus == 0 {
		return nil
	}
	fresh := 0
	for number, some := range topics {
		home := s.partitions[number]
		known, key := make([]rdb.Reply[bool], len(some)), layout.Keys{Namespace: home.Namespace()}.Owners()
		err := home.Pipelined(ctx, "look for topics", func(pipe rdb.Commands) {
			for i, topic := range some {
				known[i] = pipe.HExists(ctx, key, string(topic))
			}
		})
		if err != nil {
			return err
		}
		for _, is := range known {
			if !is.Val() {
				fresh++
			}
		}
	}
	if fresh == 0 {
		return nil
	}
	owned, all := int64(0), int64(0)
	for _, p := range s.partitions {
		keys := layout.Keys{Namespace: p.Namespace()}
		var own rdb.Reply[string]
		var there rdb.Reply[int64]
		err := p.Pipelined(ctx, "count topics", func(pipe rdb.Commands) {
			own, there = pipe.HGet(ctx, keys.Owned(), string(client)), pipe.HLen(ctx, keys.Owners())
		})
		if err != nil {
			return err
		}
		owned, all = owned+rdb.Integer(own.Val(), 0), all+there.Val()
	}
	switch {
	case ofClient > 0 && owned+int64(fresh) > int64(ofClient):
		return &bus.TopicLimitError{Limit: ofClient}
	case ofBus > 0 && all+int64(fresh) > int64(ofBus):
		return &bus.TopicLimitError{Limit: ofBus, OfBus: true}
	}
	return nil
}

// Relay starts relaying events of topics to the partition of a subscriber that is subscribed to
// them. The partition ends a relay it no longer needs when events arrive. Relay fails with
// [bus.ErrUnavailable], or with [bus.ErrTokenUnknown] if the subscriber is gone.
func (s *Bus) Relay(ctx context.Context, token bus.Token, topics []bus.TopicName) error {
	to := s.Of(token)
	name, err := to.ClientName(ctx, token)
	if err == nil && name == "" {
		err = bus.ErrTokenUnknown
	}
	if err != nil {
		return err
	}
	return s.open(ctx, to, name, s.byHome(topics))
}

// open opens the outboxes of topics, given by their homes, to the partition of a client of a name.
func (s *Bus) open(ctx context.Context, to *Store, client bus.ClientName, topics map[rdb.Number][]bus.TopicName) error {
	var group errgroup.Group
	for home, topics := range topics {
		group.Go(func() error { return s.relays[home].Open(ctx, topics, to.Partition().Number(), client) })
	}
	return group.Wait()
}

// Unsubscribe ends one subscription. It fails with [bus.ErrTopicUnknown], [bus.ErrNotSubscribed] or
// [bus.ErrUnavailable].
func (s *Bus) Unsubscribe(ctx context.Context, token bus.Token, topic bus.TopicName) error {
	st, home := s.Of(token), s.partitions.Home(topic)
	err := st.Unsubscribe(ctx, token, topic)
	if !errors.Is(err, bus.ErrTopicUnknown) || home == st.Partition() {
		return err
	}
	// A partition knows the topics of its subscribers and the topics whose home it is.
	known, failure := home.SIsMember(ctx, layout.Keys{Namespace: home.Namespace()}.Topics(), string(topic)).Result()
	if failure != nil {
		return rdb.Wrap("unsubscribe", failure)
	}
	if known {
		return bus.ErrNotSubscribed
	}
	return err
}
