package move_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/fence"
	"routemaster/internal/inspect"
	"routemaster/internal/move"
	"routemaster/internal/queue"
	"routemaster/internal/rdb"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store"
	"routemaster/internal/store/storetest"
)

func TestMain(m *testing.M) { rdbtest.Main(m) }

// layouts are those between which tests move a bus: the number of partitions, 0 for one Redis.
var layouts = []struct{ from, to int }{{0, 3}, {3, 0}, {3, 5}}

// eachLayout runs a test with an old and a new bus of each layout; on both engines if both have
// partitions, else on the embedded one.
func eachLayout(t *testing.T, test func(t *testing.T, from, to *side)) {
	for _, of := range layouts {
		t.Run(fmt.Sprintf("%d to %d", of.from, of.to), func(t *testing.T) {
			if of.from > 0 && of.to > 0 {
				eachOf(t, of.from, of.to, test)
			} else {
				test(t, embedded(t, of.from), embedded(t, of.to))
			}
		})
	}
}

func embedded(t *testing.T, partitions int) *side {
	t.Helper()
	return newSide(t, rdbtest.Embedded(t).Open(t), partitions)
}

// eachOf is [eachLayout] for one layout.
func eachOf(t *testing.T, from, to int, test func(t *testing.T, from, to *side)) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		another := rdbtest.Real
		if server.IsEmbedded() {
			another = func(t testing.TB, _ ...string) *rdbtest.Server { return rdbtest.Embedded(t) }
		}
		test(t, newSide(t, server.Open(t), from), newSide(t, another(t).Open(t), to))
	})
}

// side is a bus, with what clients and workers do there.
type side struct {
	*store.Bus
	worker     *storetest.Worker
	t          testing.TB
	partitions rdb.Partitions
	queues     []*queue.Queue
	now        time.Time
}

func newSide(t testing.TB, client *rdb.Client, count int) *side {
	partitions := rdb.Partitions{}
	if count == 0 {
		partitions = append(partitions, client.Partition(""))
	} else {
		require.NoError(t, store.CreateBus(t.Context(), client, "", count))
		partitions = client.Partitions("", count)
	}
	s := &side{t: t, partitions: partitions, now: storetest.Start}
	var all []*store.Store
	for _, p := range partitions {
		st := storetest.OpenOn(p)
		all = append(all, st)
		s.queues = append(s.queues, storetest.NewQueue(st, 1))
	}
	s.Bus = store.NewBus(all...)
	s.worker = storetest.NewWorker(s.Bus, s.clock)
	return s
}

func (s *side) clock() time.Time { return s.now }

// subscribe registers a client, and subscribes it.
func (s *side) subscribe(token bus.Token, topics ...bus.TopicName) {
	s.t.Helper()
	s.register(token)
	require.NoError(s.t, s.Subscribe(s.t.Context(), token, subscription(token, topics...), s.now))
}

func (s *side) register(token bus.Token) {
	s.t.Helper()
	name, _, _ := strings.Cut(string(token), "--")
	require.NoError(s.t, s.PutToken(s.t.Context(), token, bus.ClientName(name)))
}

func subscription(token bus.Token, topics ...bus.TopicName) bus.Subscription {
	uuid, timeout, maxEvents := "uuid-of-"+string(token), time.Duration(0), 2
	return bus.Subscription{
		Topics: topics, Callback: "https://" + string(token) + ".example/events", UUID: &uuid, Timeout: &timeout, MaxEvents: &maxEvents,
	}
}

// publish publishes the events first..last of a topic.
func (s *side) publish(topic bus.TopicName, first, last int) error {
	p := storetest.Publication(s.t, topic, first, last, 0)
	return s.Home(topic).PublishAll(s.t.Context(), p)[0].Err
}

// deliver has workers deliver all that is due, and returns the numbers of the events of a topic
// that a subscriber gets, in order.
func (s *side) deliver(token bus.Token, topic bus.TopicName) (numbers []int) {
	s.t.Helper()
	for _, got := range s.deliverAll(s.t.Context()) {
		if got.token == token && got.topic == topic {
			numbers = append(numbers, got.number)
		}
	}
	return numbers
}

// got is an event that was delivered.
type got struct {
	token  bus.Token
	topic  bus.TopicName
	number int
}

// deliverAll is [side.deliver] for all subscribers.
func (s *side) deliverAll(ctx context.Context) (all []got) {
	s.t.Helper()
	s.deliverTo(ctx, func(some []got) { all = append(all, some...) })
	return all
}

// deliverTo has workers deliver all that is due to a function, as to an endpoint: that it has
// returned is noted after that.
func (s *side) deliverTo(ctx context.Context, receive func([]got)) {
	s.t.Helper()
	require.NoError(s.t, s.worker.Relay(ctx, s.now))
	worker := bus.NewWorkerID()
	for _, q := range s.queues {
		for {
			_, err := q.Schedule(ctx, bus.QueueMain, s.now.Add(time.Minute), 1000)
			require.NoError(s.t, err)
			taken, err := q.Acquire(ctx, bus.QueueMain, worker, bus.Failing, s.now)
			require.NoError(s.t, err)
			if taken.Task == nil {
				break
			}
			delivery, events := taken.Task.Payload.(*store.Delivery), []got{}
			for _, event := range delivery.Events {
				events = append(events, got{delivery.Subscriber, storetest.TopicOf(s.t, event), storetest.Number(s.t, event)})
			}
			receive(events)
			_, err = q.Complete(ctx, taken.Task, queue.Result{Detail: store.DeliveryResult{Delivered: len(delivery.Events), Health: 1}}, s.now)
			require.NoError(s.t, err)
		}
	}
}

// run runs rtm move, whose options a test may adjust.
func run(from, to *side, adjust ...func(*move.Options)) (move.Report, error) {
	o := move.Options{From: from.partitions, To: to.partitions, Now: from.clock}
	for _, f := range adjust {
		f(&o)
	}
	report, err := move.Run(from.t.Context(), o)
	if err == nil {
		require.NoError(from.t, move.Look(from.t.Context(), o, &report))
	}
	return report, err
}

func doSwitch(o *move.Options) { o.Switch = true }
func doCancel(o *move.Options) { o.Cancel = true }

// requireRun is [run], which must succeed and end in a phase.
func requireRun(from, to *side, phase move.Phase, adjust ...func(*move.Options)) move.Report {
	from.t.Helper()
	report, err := run(from, to, adjust...)
	require.NoError(from.t, err)
	require.Equal(from.t, phase, report.Phase)
	return report
}

// moveOf is the UID of the move that a bus is of, as its first partition says; empty if of none.
func moveOf(s *side) string {
	first := s.partitions[0]
	parts := strings.Split(first.HGet(s.t.Context(), first.Namespace()+"plans", fence.Field).Val()+"///", "/")
	return parts[2]
}

// requireSound requires the invariants of both.
func requireSound(sides ...*side) {
	for _, s := range sides {
		s.t.Helper()
		storetest.RequireAllSound(s.t, s.Bus)
	}
}

// shown is what lists show of a bus, but for when a delivery was last tried.
func (s *side) shown() (tokens map[bus.Token]bus.ClientName, topics []bus.Topic, subscribers []bus.Subscriber) {
	s.t.Helper()
	tokens, err := s.Tokens(s.t.Context())
	require.NoError(s.t, err)
	topics, damaged, err := storetest.Topics(s.t.Context(), inspect.OfBus(s.Bus))
	require.NoError(s.t, err)
	require.Empty(s.t, damaged)
	subscribers, damaged, err = storetest.Subscribers(s.t.Context(), inspect.OfBus(s.Bus))
	require.NoError(s.t, err)
	require.Empty(s.t, damaged)
	for i := range subscribers {
		slices.Sort(subscribers[i].Topics)
	}
	return tokens, topics, subscribers
}
