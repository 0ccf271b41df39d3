package stores

import (
	"context"
	"errors"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/store"
	"routemaster/internal/store/relays"
)

const (
	// relayTimeout is how long a topic is kept from being deleted because its events are on their way
	// to other partitions; relays that have failed are tried again within a second.
	relayTimeout  = 2 * time.Second
	relayInterval = 10 * time.Millisecond
	// maxDeletions is how often a topic is deleted to which others subscribe meanwhile.
	maxDeletions = 6
)

// DeleteTopic deletes a topic and the subscriptions to it; queued events stay: see
// [store.Store.DeleteTopic]. It fails with [bus.ErrUnavailable] also when events of the topic
// cannot be relayed to their partitions, which is done before. Then the topic is still there,
// perhaps without some of its subscriptions, and the call can be repeated.
func (s *Stores) DeleteTopic(ctx context.Context, topic bus.TopicName, by bus.Token) error {
	home := s.Home(topic)
	if !home.Partition().IsOneOfSeveral() {
		return home.DeleteTopic(ctx, topic, by)
	}
	for range maxDeletions {
		err := s.deleteElsewhere(ctx, topic, by)
		if err == nil {
			err = home.DeleteTopic(ctx, topic, by)
		}
		if !errors.Is(err, store.ErrRelayed) {
			return err
		}
	}
	return bus.ErrUnavailable
}

// deleteElsewhere deletes the subscriptions to a topic in all partitions but its home, once these
// have got its events.
func (s *Stores) deleteElsewhere(ctx context.Context, topic bus.TopicName, by bus.Token) error {
	home := s.Home(topic)
	from := s.relays[home.Partition().Number()]
	far, err := from.End(ctx, topic, by)
	if err == nil {
		err = waitForRelays(ctx, from, far)
	}
	if err != nil {
		return err
	}
	return each(s.others(home), func(st *store.Store) error {
		if err := st.DeleteTopic(ctx, topic, ""); !errors.Is(err, bus.ErrTopicUnknown) {
			return err
		}
		return nil
	})
}

// EndUnwantedRelays ends that events of topics, of which a partition is the home, are relayed to
// partitions that have no subscriber of them: a relay does that too, but only as it brings some. It
// fails with [bus.ErrUnavailable].
func (s *Stores) EndUnwantedRelays(ctx context.Context, home *store.Store, topics []string) error {
	from := s.relays[home.Partition().Number()]
	open, err := from.Opened(ctx, topics)
	if err != nil {
		return err
	}
	for to, topics := range open {
		if err := from.CloseUnwanted(ctx, s.relays[to], topics); err != nil {
			return err
		}
	}
	return nil
}

// waitForRelays waits until so many events have been carried. It fails with [bus.ErrUnavailable].
func waitForRelays(ctx context.Context, from *relays.Relays, far relays.Carried) error {
	ctx, cancel := context.WithTimeout(ctx, relayTimeout)
	defer cancel()
	for {
		carried, err := from.HasCarried(ctx, far)
		if err != nil || carried {
			return err
		}
		select {
		case <-time.After(relayInterval):
		case <-ctx.Done():
			return bus.ErrUnavailable
		}
	}
}
