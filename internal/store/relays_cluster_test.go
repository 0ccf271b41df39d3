package store_test

import (
	"context"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/rdb"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store"
	"routemaster/internal/store/storetest"
)

// TestEachMasterIsKilledInTurn publishes to a topic on a cluster, while one master after the other
// is killed and comes back, the topic's home last. Replicas confirm publishes and both sides of
// relays, and a publish without an answer is sent again under its idempotency key: so each
// subscriber gets every event, once and in order.
func TestEachMasterIsKilledInTurn(t *testing.T) {
	t.Parallel()
	c := rdbtest.NewCluster(t, storetest.PartitionCount, time.Second)
	w := storetest.NewPartitions(t, c.Open(t, func(o *rdb.Options) { o.MinReplicas = 1 }))
	w.MS = int(time.Since(storetest.Start).Milliseconds()) // as the relays' clock
	home := w.HomeOf(topic)
	var tokens []bus.Token
	for i := range rdb.Number(storetest.PartitionCount) {
		tokens = append(tokens, w.AddSubscriber(i, 50, topic))
	}
	load := &load{world: w, home: home}
	killed := func(number rdb.Number) {
		stop := load.start()
		defer stop()
		victim := w.All[number]
		node := c.MasterOf(t, victim)
		require.NotNil(t, node)
		load.publish(func() bool { return true })
		node.Kill(t)
		if number == home { // no publish is confirmed
			c.RequireMaster(t, victim, c.ReplicaOf(node))
		} else {
			load.publish(func() bool { return c.MasterOf(t, victim) == c.ReplicaOf(node) })
		}
		node.Restart(t) // or nothing would be confirmed there
		load.publish(func() bool { return true })
		load.requireRelayed()
	}
	for i := range rdb.Number(storetest.PartitionCount) {
		if i != home {
			killed(i)
		}
	}
	killed(home)
	for i, token := range tokens {
		assert.Equal(t, storetest.UpTo(1, load.published), w.Received(rdb.Number(i), token, topic), "in partition %d", i)
	}
}

// load publishes to a topic, and runs the relays of its home.
type load struct {
	*world
	home      rdb.Number
	published int
}

// start starts two workers, until they are stopped.
func (l *load) start() (stop func()) {
	ctx, cancel := context.WithCancel(l.T.Context())
	var running sync.WaitGroup
	for range 2 {
		running.Go(func() { l.work(ctx) })
	}
	return func() {
		cancel()
		running.Wait()
	}
}

// publish publishes 200 events, one by one, and more until something holds.
func (l *load) publish(until func() bool) {
	for n := 0; n < 200 || !until(); n++ {
		p := storetest.Publication(l.T, topic, l.published+1, l.published+1, 0)
		p.IdempotencyKey = &bus.IdempotencyKey{Key: strconv.Itoa(l.published)}
		require.Eventually(l.T, func() bool {
			err := storetest.Publish(l.T.Context(), l.Data[l.home], p)
			if err != nil {
				require.ErrorIs(l.T, err, bus.ErrUnavailable)
			}
			return err == nil
		}, time.Minute, time.Millisecond)
		l.published++
	}
}

// requireRelayed waits until all outboxes are empty.
func (l *load) requireRelayed() {
	require.Eventually(l.T, func() bool {
		outboxes, err := l.Relays[l.home].Outboxes(l.T.Context(), storetest.PartitionCount)
		return err == nil && !slices.ContainsFunc(outboxes, func(o store.Outbox) bool { return o.Events > 0 })
	}, time.Minute, 10*time.Millisecond)
}

// work is a worker that runs relays, on time.
func (l *load) work(ctx context.Context) {
	q, worker := l.Queues[l.home], bus.NewWorkerID()
	relayer := store.NewRelayer(l.Relays, slog.New(slog.DiscardHandler), time.Now)
	for ctx.Err() == nil {
		_, _ = q.Schedule(ctx, bus.QueueRelay, time.Now(), 100)
		taken, err := q.Acquire(ctx, bus.QueueRelay, worker, bus.Failing, time.Now())
		if err != nil || taken.Task == nil {
			time.Sleep(time.Millisecond) // as one that waits for a job
			continue
		}
		result := relayer.Relay(ctx, taken.Task)
		for {
			if _, err := q.Complete(l.T.Context(), taken.Task, result, time.Now()); err == nil {
				break
			}
			time.Sleep(time.Millisecond)
		}
	}
}
