package relays_test

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/queue"
	"routemaster/internal/rdb"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store"
	"routemaster/internal/store/relays"
	"routemaster/internal/store/storetest"
	"routemaster/internal/wire"
)

func TestMain(m *testing.M) { rdbtest.Main(m) }

const (
	partitions = 3
	topic      = bus.TopicName("widgets")
	client     = bus.ClientName("reader")
)

// world is a bus with partitions, on one Redis unless said otherwise, whose clock is set by hand.
type world struct {
	t        *testing.T
	all      rdb.Partitions
	stores   []*store.Store
	relays   []*relays.Relays
	queues   []*queue.Queue // of relays
	batches  []*queue.Queue
	relayers []*relays.Relayer
	ms       int
	// got are the numbers of the events that were delivered.
	got map[bus.Token]map[bus.TopicName][]int
}

func newWorld(t *testing.T, server *rdbtest.Server) *world { return newWorldOn(t, server.Open(t)) }

func newWorldOn(t *testing.T, client *rdb.Client) *world {
	w := &world{t: t, all: client.Partitions("", partitions), got: map[bus.Token]map[bus.TopicName][]int{}}
	for _, p := range w.all {
		require.NoError(t, p.Release(t.Context()))
		st := store.New(p, store.Options{})
		w.stores = append(w.stores, st)
		w.relays = append(w.relays, relays.New(st))
		w.queues = append(w.queues, queue.New(p, relays.Kind()))
		w.batches = append(w.batches, storetest.NewQueue(st, 1))
		require.NoError(t, st.PutToken(t.Context(), storetest.Publisher, "publisher"))
	}
	for i := range w.all {
		log := slog.New(slog.DiscardHandler)
		w.relayers = append(w.relayers, relays.NewRelayer(relays.Number(i), w.relays, log, w.now))
	}
	return w
}

func (w *world) now() time.Time { return storetest.After(w.ms) }

// home is the partition of a topic.
func (w *world) home(of bus.TopicName) relays.Number { return w.numberOf(w.all.Home(of)) }

func (w *world) numberOf(p *rdb.Partition) relays.Number {
	for i := range w.all {
		if w.all[i] == p {
			return relays.Number(i)
		}
	}
	w.t.Fatal("no such partition")
	return 0
}

// tokenIn is a token of a subscriber in a partition.
func (w *world) tokenIn(number relays.Number) bus.Token {
	for i := 0; ; i++ {
		token := bus.Token(fmt.Sprintf("reader--%d", i))
		if w.numberOf(w.all.Of(token)) == number {
			return token
		}
	}
}

// topicIn is a topic whose home is a partition, other than those before.
func (w *world) topicIn(number relays.Number, n int) bus.TopicName {
	for i := 0; ; i++ {
		name := bus.TopicName(fmt.Sprintf("topic_%c", 'a'+i))
		if w.home(name) != number {
			continue
		}
		if n--; n < 0 {
			return name
		}
	}
}

// subscribe subscribes a client to topics, and has these be relayed.
func (w *world) subscribe(number relays.Number, maxEvents int, topics ...bus.TopicName) bus.Token {
	w.t.Helper()
	token, timeout := w.tokenIn(number), time.Hour
	require.NoError(w.t, w.stores[number].PutToken(w.t.Context(), token, client))
	require.NoError(w.t, w.stores[number].Subscribe(w.t.Context(), token, bus.Subscription{
		Topics: topics, Callback: "https://reader.example/", Timeout: &timeout, MaxEvents: &maxEvents,
	}, w.now()))
	for _, name := range topics {
		if home := w.home(name); home != number {
			require.NoError(w.t, w.relays[home].Open(w.t.Context(), name, number, client))
		}
	}
	return token
}

// publish publishes events first..last in the home of their topic.
func (w *world) publish(name bus.TopicName, first, last int) {
	w.t.Helper()
	p := storetest.Publication(w.t, name, first, last, w.ms)
	require.NoError(w.t, storetest.Publish(w.t.Context(), w.stores[w.home(name)], p))
}

// take takes a relay of a partition for a worker; nil if there is none.
func (w *world) take(number relays.Number, worker bus.WorkerID) *queue.Task {
	w.t.Helper()
	_, err := w.queues[number].Schedule(w.t.Context(), bus.QueueRelay, w.now(), 100)
	require.NoError(w.t, err)
	taken, err := w.queues[number].Acquire(w.t.Context(), bus.QueueRelay, worker, bus.Failing, w.now())
	require.NoError(w.t, err)
	require.Empty(w.t, taken.Poisoned)
	return taken.Task
}

// relay runs all relays of a partition that are due.
func (w *world) relay(number relays.Number) (run int) {
	w.t.Helper()
	worker := bus.NewWorkerID()
	for task := w.take(number, worker); task != nil; task = w.take(number, worker) {
		owned, err := w.queues[number].Complete(w.t.Context(), task, w.relayers[number].Relay(w.t.Context(), task), w.now())
		require.NoError(w.t, err)
		require.True(w.t, owned)
		run++
		require.Less(w.t, run, 1000, "relays without end")
	}
	return run
}

// received are the numbers of all events of a topic that a subscriber has got, in order. All that
// is queued for the partition's subscribers is delivered now.
func (w *world) received(number relays.Number, token bus.Token, name bus.TopicName) []int {
	w.t.Helper()
	ctx, worker := w.t.Context(), bus.NewWorkerID()
	for {
		_, err := w.batches[number].Schedule(ctx, bus.QueueMain, w.now().Add(24*time.Hour), 1000)
		require.NoError(w.t, err)
		taken, err := w.batches[number].Acquire(ctx, bus.QueueMain, worker, bus.Failing, w.now())
		require.NoError(w.t, err)
		if taken.Task == nil {
			return w.got[token][name]
		}
		delivery := taken.Task.Payload.(*store.Delivery)
		for _, event := range delivery.Events {
			value, err := wire.ValueAt(event, "/topic")
			require.NoError(w.t, err)
			of := bus.TopicName(strings.Trim(string(value), `"`))
			if w.got[delivery.Subscriber] == nil {
				w.got[delivery.Subscriber] = map[bus.TopicName][]int{}
			}
			w.got[delivery.Subscriber][of] = append(w.got[delivery.Subscriber][of], storetest.Number(w.t, event))
		}
		_, err = w.batches[number].Complete(ctx, taken.Task, queue.Result{Detail: store.DeliveryResult{Delivered: len(delivery.Events)}}, w.now())
		require.NoError(w.t, err)
	}
}

// requireNothingLeft requires that no outbox, job or head is left anywhere, and the invariants.
func (w *world) requireNothingLeft() {
	w.t.Helper()
	for i, p := range w.all {
		storetest.RequireSound(w.t, w.stores[i])
		require.NoError(w.t, p.EachKey(w.t.Context(), p.Namespace()+"*", func(page []string) error {
			for _, key := range page {
				require.NotRegexp(w.t, `\}:(relay:.*|jobs:\w+:relay|)$`, key)
			}
			return nil
		}))
	}
}

func upTo(first, last int) (numbers []int) {
	for i := first; i <= last; i++ {
		numbers = append(numbers, i)
	}
	return numbers
}
