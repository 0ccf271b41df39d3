package doctor_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/doctor"
	"routemaster/internal/queue"
	"routemaster/internal/rdb"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store"
	"routemaster/internal/store/storetest"
	"routemaster/internal/wire"
)

// busyPartitions is a bus with partitions where everything goes on as fast as it can.
type busyPartitions struct {
	*storetest.Partitions
	backlog int64

	mutex     sync.Mutex
	published map[bus.TopicName]int
	delivered map[string]int // how often, by subscriber, topic and number
}

// publish publishes to a topic, one event at a time, until the context ends.
func (b *busyPartitions) publish(ctx context.Context, topic bus.TopicName) {
	home := b.Data[b.HomeOf(topic)]
	for n := 1; ctx.Err() == nil; {
		if b.waiting(ctx) > b.backlog {
			idle() // so that all that is published is delivered in the end
			continue
		}
		p := store.Publication{
			Topic: topic, Publisher: publisher, ReceivedAt: time.Now().UnixMilli(), Events: []wire.PackedEvent{packed(b.T, topic, n)},
		}
		assert.NoError(b.T, storetest.Publish(context.WithoutCancel(ctx), home, p))
		b.mutex.Lock()
		b.published[topic] = n
		b.mutex.Unlock()
		n++
	}
}

// waiting is how many batches there are, and events in outboxes.
func (b *busyPartitions) waiting(ctx context.Context) (sum int64) {
	for i, p := range b.All {
		sum += p.ZCard(ctx, p.Namespace()+"batches:index").Val()
		outboxes, err := b.Relays[i].Outboxes(ctx, len(b.All))
		if err != nil {
			return b.backlog + 1 // the test is over
		}
		for _, outbox := range outboxes {
			sum += outbox.Events
		}
	}
	return sum
}

// comeAndGo has a client of a partition come, subscribe to topics, and leave, until the context
// ends. Another topic, which has no other subscriber, goes with it.
func (b *busyPartitions) comeAndGo(ctx context.Context, token bus.Token, topics []bus.TopicName, own bus.TopicName) {
	for ctx.Err() == nil {
		assert.NoError(b.T, b.PutToken(context.WithoutCancel(ctx), token, "carol"))
		assert.NoError(b.T, b.Subscribe(context.WithoutCancel(ctx), token, bus.Subscription{
			Topics: append(topics, own), Callback: "https://c.example/",
		}, time.Now()))
		assert.NoError(b.T, b.Unsubscribe(context.WithoutCancel(ctx), token, topics[0]))
		_ = b.DeleteTopic(context.WithoutCancel(ctx), own, "")
		assert.NoError(b.T, b.DeleteToken(context.WithoutCancel(ctx), token))
	}
}

// rotate has a client come, change its token, and leave, until the context ends.
func (b *busyPartitions) rotate(ctx context.Context) {
	const old = bus.Token("dave--1")
	for ctx.Err() == nil {
		assert.NoError(b.T, b.AddToken(context.WithoutCancel(ctx), old, "dave"))
		fresh, _, err := b.RotateToken(context.WithoutCancel(ctx), old)
		assert.NoError(b.T, err)
		assert.NoError(b.T, b.FinishRotation(context.WithoutCancel(ctx), old))
		assert.NoError(b.T, b.DeleteToken(context.WithoutCancel(ctx), fresh))
	}
}

// relay relays the outboxes of a partition until the context ends.
func (b *busyPartitions) relay(ctx context.Context, number rdb.Number) {
	q, worker := b.Queues[number], bus.NewWorkerID()
	relayer := store.NewRelayer(b.Relays, slog.New(slog.DiscardHandler), time.Now)
	for ctx.Err() == nil {
		_, _ = q.Schedule(ctx, bus.QueueRelay, time.Now(), 100)
		taken, err := q.Acquire(context.WithoutCancel(ctx), bus.QueueRelay, worker, bus.Failing, time.Now())
		if err != nil || taken.Task == nil {
			idle()
			continue
		}
		result := relayer.Relay(context.WithoutCancel(ctx), taken.Task)
		_, err = q.Complete(context.WithoutCancel(ctx), taken.Task, result, time.Now())
		assert.NoError(b.T, err)
	}
}

// deliver delivers the batches of a partition, until the context ends.
func (b *busyPartitions) deliver(ctx context.Context, number rdb.Number) {
	q, worker := b.Batches[number], bus.NewWorkerID()
	for ctx.Err() == nil {
		_, _ = q.Schedule(ctx, bus.QueueMain, time.Now().Add(24*time.Hour), 1000) // half-full batches too
		taken, err := q.Acquire(context.WithoutCancel(ctx), bus.QueueMain, worker, bus.Failing, time.Now())
		if err != nil || taken.Task == nil {
			idle()
			continue
		}
		delivery := taken.Task.Payload.(*store.Delivery)
		owned, err := q.Complete(context.WithoutCancel(ctx), taken.Task,
			queue.Result{Detail: store.DeliveryResult{Delivered: len(delivery.Events)}}, time.Now())
		assert.NoError(b.T, err)
		if !owned {
			continue
		}
		b.mutex.Lock()
		for _, event := range delivery.Events {
			b.delivered[received(delivery.Subscriber, storetest.TopicOf(b.T, event), storetest.Number(b.T, event))]++
		}
		b.mutex.Unlock()
	}
}

func received(token bus.Token, topic bus.TopicName, n int) string {
	return fmt.Sprintf("%s %s %d", token, topic, n)
}

// TestExaminationsDoNotDisturbBusyPartitions examines, without and with fixing, while everything
// else goes on.
func TestExaminationsDoNotDisturbBusyPartitions(t *testing.T) {
	t.Parallel()
	const pause = 500 * time.Millisecond
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		client := server.Open(t, func(o *rdb.Options) { o.Connections = 30 })
		b := &busyPartitions{
			Partitions: storetest.NewPartitions(t, client), backlog: 200,
			published: map[bus.TopicName]int{}, delivered: map[string]int{},
		}
		topics := []bus.TopicName{b.TopicIn(0, 0), b.TopicIn(1, 0)}
		var staying []bus.Token
		for i := range b.All[:2] { // the third has those that come and go alone
			staying = append(staying, b.AddSubscriber(rdb.Number(i), 10, topics...))
		}
		ctx, stop := context.WithCancel(t.Context())
		publishing, enough := context.WithCancel(ctx)
		coming, left := context.WithCancel(ctx)
		var publishers, others sync.WaitGroup
		for _, topic := range topics {
			publishers.Go(func() { b.publish(publishing, topic) })
		}
		publishers.Go(func() { b.comeAndGo(coming, b.TokenIn(2), topics, b.TopicIn(0, 1)) })
		publishers.Go(func() { b.rotate(coming) })
		for i := range b.All {
			others.Go(func() { b.relay(ctx, rdb.Number(i)) })
			others.Go(func() { b.deliver(ctx, rdb.Number(i)) })
		}
		for round := range 2 {
			_, err := doctor.Of(b.Bus, pause).Examine(ctx, round%2 == 1, func(f doctor.Finding) { t.Errorf("found %s", line(f)) })
			require.NoError(t, err)
		}
		left()
		enough()
		publishers.Wait()
		require.Eventually(t, func() bool { return b.waiting(ctx) == 0 }, time.Minute, 5*time.Millisecond)
		stop()
		others.Wait()
		for _, topic := range topics {
			require.Positive(t, b.published[topic])
			for _, token := range staying {
				for n := 1; n <= b.published[topic]; n++ {
					require.Equal(t, 1, b.delivered[received(token, topic, n)], "event %d of %s to %s", n, topic, token)
				}
			}
		}
		t.Logf("%v events", b.published)
		b.RequireSound()
	})
}
