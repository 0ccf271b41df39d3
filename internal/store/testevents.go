package store

import (
	"context"
	"slices"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/rdb"
	"routemaster/internal/wire"
)

// testEvent is what a test event says, as a publisher would send it.
const testEvent = `{"type":"noop","url":"https://routemaster.invalid/test","data":{"test":true}}`

// TestEvent queues a test event for a subscriber, of the first of its topics by name if it has any.
// It returns its batch, which is tried once, also while the subscriber is paused. It fails with
// [bus.ErrNotSubscribed], [bus.ErrTestWaits] or [bus.ErrUnavailable].
func (s *Store) TestEvent(ctx context.Context, token bus.Token, now time.Time) (bus.BatchID, error) {
	holder, err := s.Holder(ctx, token)
	if err != nil {
		return "", err
	}
	topics, err := s.redis.SMembers(ctx, s.keys.SubscriberTopics(holder)).Result()
	if err != nil {
		return "", rdb.Wrap("queue test event", err)
	}
	var topic bus.TopicName
	if len(topics) > 0 {
		topic = bus.TopicName(slices.Min(topics))
	}
	limits := wire.Limits{Events: 1, Data: len(testEvent)}
	events, err := wire.ParseEvents([]byte(testEvent), topic, now.UnixMilli(), limits)
	if err != nil {
		return "", err
	}
	batch := bus.NewBatchID()
	return batch, s.change(ctx, "queue test event", scriptTestEvent,
		string(token), now.UnixMilli(), string(batch), bus.NewPlan(), string(events[0]))
}
