// Package testevent queues an event that says nothing, so that a subscriber sees how it would get
// others.
package testevent

import (
	"context"
	"embed"
	"slices"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/rdb"
	"routemaster/internal/store"
	"routemaster/internal/wire"
)

//go:embed lua
var luaFiles embed.FS

// scriptTestEvent is described in its header.
var scriptTestEvent = rdb.NewScript(store.Library, rdb.ReadLua(luaFiles, "test_event"))

// text is what a test event says, as a publisher would send it.
const text = `{"type":"noop","url":"https://routemaster.invalid/test","data":{"test":true}}`

// refusals are the script's words for why it changed nothing.
var refusals = map[string]error{"not subscribed": bus.ErrNotSubscribed, "test waits": bus.ErrTestWaits}

// Queue queues a test event for a subscriber, of the first of its topics by name if it has any. It
// returns its batch, which is tried once, also while the subscriber is paused. It fails with
// [bus.ErrNotSubscribed], [bus.ErrTestWaits] or [bus.ErrUnavailable].
func Queue(ctx context.Context, st *store.Store, token bus.Token, now time.Time) (bus.BatchID, error) {
	holder, err := st.Holder(ctx, token)
	if err != nil {
		return "", err
	}
	keys := store.Keys{Namespace: st.Partition().Namespace()}
	topics, err := st.Partition().SMembers(ctx, keys.SubscriberTopics(holder)).Result()
	if err != nil {
		return "", rdb.Wrap("queue test event", err)
	}
	var topic bus.TopicName
	if len(topics) > 0 {
		topic = bus.TopicName(slices.Min(topics))
	}
	limits := wire.Limits{Events: 1, Data: len(text)}
	events, err := wire.ParseEvents([]byte(text), topic, now.UnixMilli(), limits)
	if err != nil {
		return "", err
	}
	batch := bus.NewBatchID()
	change := st.Partition().Change(ctx, scriptTestEvent,
		string(token), now.UnixMilli(), string(batch), bus.NewPlan(), string(events[0]))
	return batch, change.Refusal("queue test event", refusals)
}
