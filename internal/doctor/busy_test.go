package doctor_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/doctor"
	"routemaster/internal/rdb"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store/storetest"
)

// busyBus is a bus where everything goes on as fast as it can.
type busyBus struct {
	*fixture
	backlog int64 // batches, beyond which nothing is published

	mutex     sync.Mutex
	published int
	delivered map[string]int // how often, by subscriber and number
}

// idle lets others run in place of a loop that has nothing to do.
func idle() { time.Sleep(time.Millisecond) }

// publish publishes events until the context ends.
func (b *busyBus) publish(ctx context.Context) {
	const each = 10
	for ctx.Err() == nil {
		if b.Redis.ZCard(ctx, "batches:index").Val() > b.backlog {
			idle() // so that all that is published is delivered in the end
			continue
		}
		b.mutex.Lock()
		first := b.published + 1
		b.published += each
		b.mutex.Unlock()
		b.publishNow("widgets", first, first+each-1)
	}
}

// comeAndGo has a client subscribe and leave, until the context ends.
func (b *busyBus) comeAndGo(ctx context.Context) {
	const carol = bus.Token("carol--3")
	_ = b.PutToken(ctx, carol, "carol")
	for ctx.Err() == nil {
		_ = b.Subscribe(ctx, carol, bus.Subscription{
			Topics: []bus.TopicName{"widgets", "gadgets"}, Callback: "https://c.example/",
		}, time.Now())
		_ = b.Unsubscribe(ctx, carol, "widgets")
		_ = b.DeleteTopic(ctx, "gadgets", "")
		_ = b.DeleteSubscriber(ctx, carol)
	}
}

// keepHouse makes jobs instant, and runs jobs that are no batch's, until the context ends.
func (b *busyBus) keepHouse(ctx context.Context) {
	for ctx.Err() == nil {
		_, _ = b.Schedule(ctx, bus.QueueMain, time.Now(), 1000)
		_, _ = b.Enqueue(ctx, bus.QueueAux, bus.Job{Name: bus.JobScrubQueues})
		if task, _ := b.Acquire(ctx, bus.QueueAux, "aux", bus.Failing, time.Now()); task != nil {
			_, _ = b.CompleteAt(context.WithoutCancel(ctx), task, storetest.Done, time.Now())
		}
	}
}

// deliver takes batches, some of which fail, until the context ends.
func (b *busyBus) deliver(ctx context.Context, worker bus.WorkerID) {
	for n := 1; ctx.Err() == nil; n++ {
		task, _ := b.Acquire(context.WithoutCancel(ctx), bus.QueueMain, worker, bus.Failing, time.Now())
		if task == nil {
			idle()
			continue
		}
		result := storetest.Result{Health: 1, Delivered: len(task.Delivery.Events)}
		if n%7 == 0 { // it fails
			result = storetest.Result{Health: -2, RetryAt: time.Now().Add(time.Millisecond)}
		}
		if n%11 == 0 {
			result.ThrottledUntil = time.Now().Add(time.Millisecond)
		}
		events := numbers(b.T, task)
		owned, _ := b.CompleteAt(context.WithoutCancel(ctx), task, result, time.Now())
		if !owned || !result.RetryAt.IsZero() {
			continue
		}
		b.mutex.Lock()
		for _, event := range events {
			b.delivered[fmt.Sprintf("%s %d", task.Delivery.Subscriber, event)]++
		}
		b.mutex.Unlock()
	}
}

// TestExaminationsDoNotDisturbABusyBus examines, with and without fixing, again and again, while
// everything else goes on.
func TestExaminationsDoNotDisturbABusyBus(t *testing.T) {
	t.Parallel()
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		rounds, backlog, maxEvents := 8, int64(2000), 1 // each kind of round twice
		if server.IsEmbedded() {
			rounds, backlog, maxEvents = 4, 200, 3
		}
		client := server.Open(t, func(o *rdb.Options) { o.Connections = 20 })
		f := newFixtureOn(t, server, client.Partition(""))
		b := &busyBus{fixture: f, backlog: backlog, delivered: map[string]int{}}
		b.AddSubscriber(alice, 0, maxEvents, "widgets")
		b.AddSubscriber(bob, 2*time.Millisecond, 50, "widgets")
		ctx, stop := context.WithCancel(t.Context())
		publishing, enough := context.WithCancel(ctx)
		var publishers, others sync.WaitGroup
		for range 2 {
			publishers.Go(func() { b.publish(publishing) })
		}
		others.Go(func() { b.comeAndGo(ctx) })
		others.Go(func() { b.keepHouse(ctx) })
		for i := range 4 {
			others.Go(func() { b.deliver(ctx, bus.WorkerID(fmt.Sprintf("w%d", i))) })
		}
		for round := range rounds {
			_, err := f.doctor().Examine(ctx, round%2 == 1, func(v doctor.Finding) {
				t.Errorf("found %s: %s [%s]", v.Key, v.Problem, v.Remedy)
			})
			require.NoError(t, err)
		}
		enough()
		publishers.Wait()
		require.Eventually(t, func() bool {
			return f.Redis.ZCard(ctx, "batches:index").Val() == 0
		}, 3*time.Minute, 5*time.Millisecond)
		stop()
		others.Wait()
		for _, token := range []bus.Token{alice, bob} {
			for n := 1; n <= b.published; n++ {
				require.Equal(t, 1, b.delivered[fmt.Sprintf("%s %d", token, n)], "event %d to %s", n, token)
			}
		}
		t.Logf("%d events", b.published)
		assert.Empty(t, f.examine(false))
	})
}
