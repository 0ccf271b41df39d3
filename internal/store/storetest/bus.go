package storetest

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/inspect"
	"routemaster/internal/queue"
	"routemaster/internal/rdb"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store"
	"routemaster/internal/wire"
	"routemaster/internal/wire/wiretest"
)

// The clients of a [Bus].
const (
	Publisher = bus.Token("publisher--1")
	Alice     = bus.Token("alice--1")
	Bob       = bus.Token("bob--2")
)

// Start is when the clock of a [Bus] starts.
var Start = time.UnixMilli(1_700_000_000_000)

// After is a time in ms after [Start].
func After(ms int) time.Time { return Start.Add(time.Duration(ms) * time.Millisecond) }

// Bus is a store with three clients and its queue, and test helpers, which fail the test on any
// error.
type Bus struct {
	*store.Store
	*queue.Queue
	*inspect.Inspector
	Partition *rdb.Partition
	T         testing.TB
	// Redis reads and writes by hand.
	Redis rdb.Commands
}

// NewBus makes a bus on a server.
func NewBus(t testing.TB, server *rdbtest.Server, adjust ...func(*store.Options)) *Bus {
	return NewBusOn(t, server, server.Open(t).Partition(""), adjust...)
}

// NewBusOn is [NewBus] on a partition of the server that the test has opened by itself.
func NewBusOn(
	t testing.TB, server *rdbtest.Server, partition *rdb.Partition, adjust ...func(*store.Options),
) *Bus {
	st := OpenOn(partition, adjust...)
	b := &Bus{st, NewQueue(st, 1), inspect.Of(st), partition, t, server.Raw}
	b.Register()
	return b
}

// NewBusInFlight is [NewBus] for a number of batches of one subscriber that may be in flight.
func NewBusInFlight(t testing.TB, server *rdbtest.Server, atMost int) *Bus {
	b := NewBus(t, server)
	b.Queue = NewQueue(b.Store, atMost)
	require.NoError(t, b.Heartbeat(t.Context(), Start)) // which notes the number
	return b
}

// Register adds the tokens of the clients. A client's name is the part of its token before "--".
func (b *Bus) Register() {
	b.T.Helper()
	for _, token := range []bus.Token{Publisher, Alice, Bob} {
		name, _, _ := strings.Cut(string(token), "--")
		require.NoError(b.T, b.PutToken(b.T.Context(), token, bus.ClientName(name)))
	}
}

// AddSubscriber subscribes a client to exactly these topics, at [Start].
func (b *Bus) AddSubscriber(token bus.Token, timeout time.Duration, maxEvents int, topics ...bus.TopicName) {
	b.T.Helper()
	uuid := "uuid-of-" + string(token)
	require.NoError(b.T, b.Subscribe(b.T.Context(), token, bus.Subscription{
		Topics: topics, Callback: "https://" + string(token) + ".example/events", UUID: &uuid,
		Timeout: &timeout, MaxEvents: &maxEvents,
	}, Start))
}

// SetOption sets an option of a subscriber, at [Start]: its value is JSON.
func (b *Bus) SetOption(token bus.Token, name, text string) {
	b.T.Helper()
	canonical, err := bus.ParseOption(name, text)
	require.NoError(b.T, err)
	options := map[string]string{name: canonical}
	require.NoError(b.T, b.PatchSubscriber(b.T.Context(), token, bus.Subscription{Options: options}, Start))
}

// Publish stores one publication.
func (b *Bus) Publish(ctx context.Context, p store.Publication) error {
	return Publish(ctx, b.Store, p)
}

// Publish stores one publication.
func Publish(ctx context.Context, st *store.Store, p store.Publication) error {
	return st.PublishAll(ctx, p)[0].Err
}

// PublishEvents publishes events first..last, see [Packed], at a time in ms after [Start].
func (b *Bus) PublishEvents(topic bus.TopicName, first, last, ms int) {
	b.T.Helper()
	require.NoError(b.T, b.Publish(b.T.Context(), Publication(b.T, topic, first, last, ms)))
}

// PublishAs publishes event 1 as a client, at [Start].
func (b *Bus) PublishAs(token bus.Token, topic bus.TopicName) {
	b.T.Helper()
	p := Publication(b.T, topic, 1, 1, 0)
	p.Publisher = token
	require.NoError(b.T, b.Publish(b.T.Context(), p))
}

// Publication returns a publication of events first..last, see [Packed], by the [Publisher], at a
// time in ms after [Start].
func Publication(t testing.TB, topic bus.TopicName, first, last, ms int) store.Publication {
	t.Helper()
	p := store.Publication{Topic: topic, Publisher: Publisher, ReceivedAt: After(ms).UnixMilli()}
	for i := first; i <= last; i++ {
		p.Events = append(p.Events, Packed(t, topic, i))
	}
	return p
}

// TestEvent queues a test event: see [store.QueueTestEvent].
func (b *Bus) TestEvent(ctx context.Context, token bus.Token, now time.Time) (bus.BatchID, error) {
	return store.QueueTestEvent(ctx, b.Store, token, now)
}

// Packed is the event of a number, with which its URL ends.
func Packed(t testing.TB, topic bus.TopicName, i int) wire.PackedEvent {
	t.Helper()
	return wiretest.Pack(t, topic, fmt.Sprintf(`{"type":"update","url":"https://x.example/%d","timestamp":1}`, i))
}

// RequireSound requires that the data layout's invariants hold.
func (b *Bus) RequireSound() {
	b.T.Helper()
	RequireSound(b.T, b.Store)
}

// Numbers are the numbers of a delivery's events.
func Numbers(t testing.TB, task *Task) (found []int) {
	t.Helper()
	require.NotNil(t, task)
	require.NotNil(t, task.Delivery)
	for _, event := range task.Delivery.Events {
		found = append(found, Number(t, event))
	}
	return found
}

// Number is the number of an event, see [Packed].
func Number(t testing.TB, event wire.PackedEvent) int {
	t.Helper()
	json, err := wire.AppendEventJSON(nil, event)
	require.NoError(t, err)
	_, rest, _ := strings.Cut(string(json), "x.example/")
	digits, _, _ := strings.Cut(rest, `"`)
	n, err := strconv.Atoi(digits)
	require.NoError(t, err)
	return n
}

// TopicOf is the topic of an event.
func TopicOf(t testing.TB, event wire.PackedEvent) bus.TopicName {
	t.Helper()
	value, err := wire.ValueAt(event, "/topic")
	require.NoError(t, err)
	return bus.TopicName(strings.Trim(string(value), `"`))
}

// jobHead is the beginning of every batch's job.
const jobHead = "\x92\xa5batch\x91\xb4"

// Job is the packed job that delivers a batch.
func Job(bid string) string { return jobHead + bid }
