package store

import (
	"cmp"
	"context"
	"errors"
	"time"

	"routemaster/internal/bus"
)

const (
	// relayTimeout is how long events in outboxes may delay the deletion of their topic; failed relays
	// are retried within a second.
	relayTimeout  = 2 * time.Second
	relayInterval = 10 * time.Millisecond
	// maxDeletions is how often a deletion is tried if others subscribe to the topic meanwhile.
	maxDeletions = 6
)

// DeleteTopic deletes a topic and the subscriptions to it; queued events stay: see
// [Store.DeleteTopic]. It fails with [bus.ErrTopicRelayed] when its events are not carried to
// their partitions in time, because no worker runs or these are away, and with [bus.ErrTopicBusy].
// Then the topic is there, perhaps without some of its subscriptions, and the call can be repeated.
func (s *Bus) DeleteTopic(ctx context.Context, topic bus.TopicName, by bus.Token) error {
	home := s.Home(topic)
	if !home.Partition().IsOneOfSeveral() {
		return home.DeleteTopic(ctx, topic, by)
	}
	ctx, cancel := context.WithTimeout(ctx, DeletionTime)
	defer cancel()
	from := s.relays[home.Partition().Number()]
	for range maxDeletions {
		d, err := from.BeginDeletion(ctx, topic, by)
		if err != nil {
			return err
		}
		failure := s.deleteElsewhere(ctx, from, d)
		// The caller may be gone, and other deletions would have to wait.
		removed, err := from.EndDeletion(context.WithoutCancel(ctx), d, failure == nil)
		if err = cmp.Or(failure, err); err != nil || removed {
			return err
		}
	}
	return bus.ErrTopicBusy
}

// deleteElsewhere deletes the subscriptions to a topic in the partitions to which it is relayed,
// once these have got its events. If one of them is away, it does so in none.
func (s *Bus) deleteElsewhere(ctx context.Context, from *Relays, d *Deletion) error {
	if err := waitForRelays(ctx, from, d); err != nil {
		return err
	}
	var there []*Store
	for number := range d.To {
		if int(number) < len(s.all) {
			there = append(there, s.all[number])
		}
	}
	if err := eachStore(there, func(st *Store) error { return st.Partition().RequireOpen(ctx) }); err != nil {
		return err
	}
	return eachStore(there, func(st *Store) error {
		if err := st.DeleteTopic(ctx, d.Topic, ""); !errors.Is(err, bus.ErrTopicUnknown) {
			return err
		}
		return nil
	})
}

// EndUnwantedRelays stops relaying events of topics, whose home is the given partition, to
// partitions without a subscriber of them. A relay does that too, but only when it carries events.
// It fails with [bus.ErrUnavailable].
func (s *Bus) EndUnwantedRelays(ctx context.Context, home *Store, topics []bus.TopicName) error {
	from := s.relays[home.Partition().Number()]
	open, err := from.Opened(ctx, topics)
	if err != nil {
		return err
	}
	for to, topics := range open {
		if int(to) >= len(s.relays) {
			continue // something else has written it
		}
		if err := from.CloseUnwanted(ctx, s.relays[to], topics); err != nil {
			return err
		}
	}
	return nil
}

// waitForRelays waits until all has been carried that was on its way when a deletion was begun. It
// fails with [bus.ErrUnavailable], and with [bus.ErrTopicRelayed] if that takes too long.
func waitForRelays(ctx context.Context, from *Relays, d *Deletion) error {
	over := time.After(relayTimeout)
	for {
		if carried, err := from.HasCarried(ctx, d); err != nil || carried {
			return err
		}
		select {
		case <-time.After(relayInterval):
		case <-over:
			return bus.ErrTopicRelayed
		}
	}
}
