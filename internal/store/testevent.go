package store

import (
	"context"
	"slices"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/layout"
	"routemaster/internal/rdb"
	"routemaster/internal/wire"
)

// scriptTestEvent is described in its header.
var scriptTestEvent = newScript("test_event")

// testEvent is the content of a test event, as a publisher would send it.
const testEvent = `{"type":"noop","url":"https://routemaster.invalid/test","data":{"test":true}}`

// testEventRefusals are the script's words for why it changed nothing.
var testEventRefusals = map[string]error{"not subscribed": bus.ErrNotSubscribed, "test waits": bus.ErrTestWaits}

// QueueTestEvent queues a test event for a subscriber, of the first of its topics by name if it has
// any. It returns its batch, which is tried once, also while the subscriber is paused. It fails
// with [bus.ErrNotSubscribed], [bus.ErrTestWaits] or [bus.ErrUnavailable].
func QueueTestEvent(ctx context.Context, st *Store, token bus.Token, now time.Time) (bus.BatchID, error) {
	holder, err := st.Holder(ctx, token)
	if err != nil {
		return "", err
	}
	keys := layout.Keys{Namespace: st.Partition().Namespace()}
	topics, err := st.Partition().SMembers(ctx, keys.SubscriberTopics(holder)).Result()
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
	change := st.Partition().Change(ctx, scriptTestEvent,
		string(token), now.UnixMilli(), string(batch), bus.NewOptionsVersion(), string(events[0]))
	return batch, change.Refusal("queue test event", testEventRefusals)
}
