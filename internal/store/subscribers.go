package store

import (
	"context"
	"strconv"
	"time"

	"routemaster/internal/bus"
)

// Subscribe makes a client a subscriber of exactly the given topics, in one atomic step. Topics
// that do not exist are created, without a publisher. It fails with [bus.ErrTokenUnknown], a
// [bus.TopicLimitError] or [bus.ErrUnavailable].
func (s *Store) Subscribe(ctx context.Context, token bus.Token, sub bus.Subscription, now time.Time) error {
	var fields []any
	if sub.UUID != nil {
		fields = append(fields, "uuid", *sub.UUID)
	}
	if sub.Timeout != nil {
		fields = append(fields, "timeout", sub.Timeout.Milliseconds())
	}
	if sub.MaxEvents != nil {
		fields = append(fields, "max_events", *sub.MaxEvents)
	}
	args := []any{
		string(token), sub.Callback,
		bus.DefaultMaxEvents, bus.DefaultTimeout.Milliseconds(), now.UnixMilli(), s.maxClientTopics, s.maxTopics, len(fields) / 2,
	}
	args = append(args, fields...)
	for _, name := range sub.Topics {
		args = append(args, string(name))
	}
	return s.change(ctx, "subscribe", scriptSubscriberPut, args...)
}

// Unsubscribe ends one subscription. It fails with [bus.ErrTopicUnknown], [bus.ErrNotSubscribed]
// or [bus.ErrUnavailable].
func (s *Store) Unsubscribe(ctx context.Context, token bus.Token, name bus.TopicName) error {
	return s.change(ctx, "unsubscribe", scriptSubscriberUnsubscribe, string(token), string(name))
}

// DeleteSubscriber removes a subscriber and its subscriptions. Its batches are dropped as they
// come up. It fails with [bus.ErrNotSubscribed] or [bus.ErrUnavailable].
func (s *Store) DeleteSubscriber(ctx context.Context, token bus.Token) error {
	return s.change(ctx, "delete subscriber", scriptSubscriberDelete, string(token))
}

// integer reads a stored integer; one that is not there, or is none, is otherwise.
func integer(text string, otherwise int64) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return otherwise
	}
	return n
}
