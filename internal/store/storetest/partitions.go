package storetest

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/queue"
	"routemaster/internal/rdb"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store"
)

// PartitionCount is how many partitions a [Partitions] has.
const PartitionCount = 3

// Partitions is a bus with partitions, whose clock is set by hand.
type Partitions struct {
	*store.Bus
	T   testing.TB
	All rdb.Partitions
	// The parts of each partition, by number.
	Data    []*store.Store
	Relays  []*store.Relays
	Queues  []*queue.Queue // of relays
	Batches []*queue.Queue
	Relayer *store.Relayer
	// MS is the time, since [Start].
	MS int
	// got are the numbers of the events that were delivered.
	got map[bus.Token]map[bus.TopicName][]int
}

// NewPartitions makes one with a publisher.
func NewPartitions(t testing.TB, client *rdb.Client, adjust ...func(*store.Options)) *Partitions {
	p := &Partitions{T: t, All: client.Partitions("", PartitionCount), got: map[bus.Token]map[bus.TopicName][]int{}}
	for _, partition := range p.All {
		require.NoError(t, partition.Release(t.Context()))
		st := OpenOn(partition, adjust...)
		p.Data = append(p.Data, st)
		p.Queues = append(p.Queues, queue.New(partition, store.RelayKind()))
		p.Batches = append(p.Batches, NewQueue(st, 1))
	}
	p.Bus = store.NewBus(p.Data...)
	p.Relays = p.Bus.Relays()
	p.Relayer = store.NewRelayer(p.Relays, slog.New(slog.DiscardHandler), p.Now)
	require.NoError(t, p.PutToken(t.Context(), Publisher, "publisher"))
	return p
}

// Apart returns the stores of count partitions, each on a Redis of its own.
func Apart(t testing.TB, count int, adjust ...func(*rdb.Options)) (all []*store.Store, servers []*rdbtest.Server) {
	t.Helper()
	for i := range count {
		server := rdbtest.Real(t)
		p := server.Open(t, adjust...).Partitions("", count)[i]
		require.NoError(t, p.Release(t.Context()))
		all, servers = append(all, OpenOn(p)), append(servers, server)
	}
	return all, servers
}

// Now is the time.
func (p *Partitions) Now() time.Time { return After(p.MS) }

// HomeOf is the partition of a topic.
func (p *Partitions) HomeOf(of bus.TopicName) rdb.Number { return p.All.Home(of).Number() }

// TokenIn is a token of a subscriber in a partition.
func (p *Partitions) TokenIn(number rdb.Number) bus.Token { return p.TokensIn(number, 0) }

// TokensIn returns the n-th token of a subscriber in a partition.
func (p *Partitions) TokensIn(number rdb.Number, n int) bus.Token {
	return bus.Token(p.nameIn(number, n, func(i int) string { return fmt.Sprintf("reader--%d", i) }))
}

// TopicIn returns the n-th topic whose home is a partition.
func (p *Partitions) TopicIn(number rdb.Number, n int) bus.TopicName {
	return bus.TopicName(p.nameIn(number, n, func(i int) string { return fmt.Sprintf("topic_%c", 'a'+i) }))
}

// TypeIn returns the n-th job type of a partition.
func (p *Partitions) TypeIn(number rdb.Number, n int) string {
	return p.nameIn(number, n, func(i int) string { return fmt.Sprintf("type-%d", i) })
}

// nameIn returns the n-th name that belongs to a partition.
func (p *Partitions) nameIn(number rdb.Number, n int, name func(i int) string) string {
	for i := 0; ; i++ {
		if !p.All[number].Owns(name(i)) {
			continue
		}
		if n--; n < 0 {
			return name(i)
		}
	}
}

// AddSubscriber subscribes a client of a partition to topics.
func (p *Partitions) AddSubscriber(number rdb.Number, maxEvents int, topics ...bus.TopicName) bus.Token {
	p.T.Helper()
	token, timeout := p.TokenIn(number), time.Hour
	require.NoError(p.T, p.PutToken(p.T.Context(), token, "reader"))
	require.NoError(p.T, p.Subscribe(p.T.Context(), token, bus.Subscription{
		Topics: topics, Callback: "https://reader.example/", Timeout: &timeout, MaxEvents: &maxEvents,
	}, p.Now()))
	return token
}

// PublishEvents publishes events first..last in the home of their topic.
func (p *Partitions) PublishEvents(name bus.TopicName, first, last int) {
	p.T.Helper()
	publication := Publication(p.T, name, first, last, p.MS)
	require.NoError(p.T, Publish(p.T.Context(), p.Data[p.HomeOf(name)], publication))
}

// TakeRelay takes a relay of a partition for a worker; nil if there is none.
func (p *Partitions) TakeRelay(number rdb.Number, worker bus.WorkerID) *queue.Task {
	p.T.Helper()
	_, err := p.Queues[number].Schedule(p.T.Context(), bus.QueueRelay, p.Now(), 100)
	require.NoError(p.T, err)
	taken, err := p.Queues[number].Acquire(p.T.Context(), bus.QueueRelay, worker, bus.Failing, p.Now())
	require.NoError(p.T, err)
	require.Empty(p.T, taken.Poisoned)
	return taken.Task
}

// Relay runs all relays of a partition that are due.
func (p *Partitions) Relay(number rdb.Number) (run int) {
	p.T.Helper()
	worker := bus.NewWorkerID()
	for task := p.TakeRelay(number, worker); task != nil; task = p.TakeRelay(number, worker) {
		owned, err := p.Queues[number].Complete(p.T.Context(), task, p.Relayer.Relay(p.T.Context(), task), p.Now())
		require.NoError(p.T, err)
		require.True(p.T, owned)
		run++
		require.Less(p.T, run, 1000, "relays without end")
	}
	return run
}

// Received are the numbers of all events of a topic that a subscriber has got, in order. All that
// is queued for the partition's subscribers is delivered nop.
func (p *Partitions) Received(number rdb.Number, token bus.Token, name bus.TopicName) []int {
	p.T.Helper()
	ctx, worker := p.T.Context(), bus.NewWorkerID()
	for {
		_, err := p.Batches[number].Schedule(ctx, bus.QueueMain, p.Now().Add(24*time.Hour), 1000)
		require.NoError(p.T, err)
		taken, err := p.Batches[number].Acquire(ctx, bus.QueueMain, worker, bus.Failing, p.Now())
		require.NoError(p.T, err)
		if taken.Task == nil {
			return p.got[token][name]
		}
		delivery := taken.Task.Payload.(*store.Delivery)
		for _, event := range delivery.Events {
			of := TopicOf(p.T, event)
			if p.got[delivery.Subscriber] == nil {
				p.got[delivery.Subscriber] = map[bus.TopicName][]int{}
			}
			p.got[delivery.Subscriber][of] = append(p.got[delivery.Subscriber][of], Number(p.T, event))
		}
		_, err = p.Batches[number].Complete(ctx, taken.Task, queue.Result{Detail: store.DeliveryResult{Delivered: len(delivery.Events)}}, p.Now())
		require.NoError(p.T, err)
	}
}

// RequireSound requires that the data layout's invariants hold in each partition, and between them.
func (p *Partitions) RequireSound() {
	p.T.Helper()
	RequireAllSound(p.T, p.Bus)
}

// RequireNothingLeft requires that no outbox, job or head is left anywhere, and the invariants.
func (p *Partitions) RequireNothingLeft() {
	p.T.Helper()
	p.RequireSound()
	for _, partition := range p.All {
		require.NoError(p.T, partition.EachKey(p.T.Context(), partition.Namespace()+"*", func(page []string) error {
			for _, key := range page {
				require.NotRegexp(p.T, `\}:(relay:(\d+|taken)|jobs:\w+:relay|)$`, key)
			}
			return nil
		}))
	}
}

// UpTo are numbers from first to last.
func UpTo(first, last int) (numbers []int) {
	for i := first; i <= last; i++ {
		numbers = append(numbers, i)
	}
	return numbers
}
