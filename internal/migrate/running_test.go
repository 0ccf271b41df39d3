package migrate_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/migrate"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store"
	"routemaster/internal/store/storetest"
	"routemaster/internal/wire"
)

// TestMigrateWhileEverythingRuns runs the original's web, our worker, and migrations one after the
// other; and either our web or a worker of the original. Every acknowledged event must be
// delivered.
func TestMigrateWhileEverythingRuns(t *testing.T) {
	for _, also := range []string{"our web", "their worker"} {
		t.Run(also, func(t *testing.T) {
			rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) { migrateWhile(t, server, also == "our web") })
		})
	}
}

func migrateWhile(t *testing.T, server *rdbtest.Server, ourWeb bool) {
	const each = 300
	l := newLeft(t, server)
	require.Len(t, l.drain(), 2)
	l.AddSubscriber(storetest.Alice, 5*time.Millisecond, 3, "widgets")
	l.AddSubscriber(storetest.Bob, 20*time.Millisecond, 7, "widgets")
	now := func() int64 { return time.Now().UnixMilli() }

	var mu sync.Mutex
	acknowledged, delivered := map[string]bool{}, map[string]int{}
	acknowledge := func(token bus.Token, n int) {
		mu.Lock()
		defer mu.Unlock()
		acknowledged[fmt.Sprintf("%s %d", token, n)] = true
	}
	receive := func(token bus.Token, event wire.PackedEvent) {
		mu.Lock()
		defer mu.Unlock()
		delivered[fmt.Sprintf("%s %d", token, storetest.Number(t, event))]++
	}

	var writers, others sync.WaitGroup
	for web := range 2 { // of the original
		writers.Go(func() {
			for i := range each {
				n := 10_000*(web+1) + i
				for token, most := range map[bus.Token]int{storetest.Alice: 3, storetest.Bob: 7} {
					if l.ingest(token, storetest.Packed(t, "widgets", n), most, now(), now()+5) == nil {
						acknowledge(token, n)
					}
				}
			}
		})
	}
	if ourWeb {
		writers.Go(func() {
			for i := range each {
				n := 50_000 + i
				p := store.Publication{Topic: "widgets", Publisher: storetest.Publisher, Events: []wire.PackedEvent{storetest.Packed(t, "widgets", n)}, ReceivedAt: now()}
				if assert.NoError(t, l.Publish(l.ctx, p)) {
					acknowledge(storetest.Alice, n)
					acknowledge(storetest.Bob, n)
				}
			}
		})
	}
	deliver := func() {
		_, err := l.Schedule(l.ctx, bus.QueueMain, time.Now(), 1000)
		assert.NoError(t, err)
		task, err := l.Acquire(l.ctx, bus.QueueMain, "w1", bus.Failing, time.Now())
		if !assert.NoError(t, err) || task == nil {
			return
		}
		for _, event := range task.Delivery.Events {
			receive(task.Delivery.Subscriber, event)
		}
		_, err = l.CompleteAt(l.ctx, task, storetest.Done, time.Now())
		assert.NoError(t, err)
	}
	loops := []func(){deliver, func() {
		_, err := migrate.Run(l.ctx, l.Partition, migrate.Options{Apply: true, Report: func(u migrate.Unmoved) { assert.True(t, u.Later, u) }})
		assert.NoError(t, err)
	}}
	if !ourWeb {
		loops = append(loops, func() { // their worker, which takes away the job of a batch that it does not find
			bid := l.take("ruby", time.Now())
			if bid == "" {
				return
			}
			batch := l.Redis.LRange(l.ctx, "batches:"+bid, 0, -1).Val()
			for i := 3; i < len(batch); i++ {
				receive(bus.Token(batch[0]), wire.PackedEvent(batch[i]))
			}
			l.finish("ruby", bid)
		})
	}
	stop := make(chan struct{})
	for _, loop := range loops {
		others.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					loop()
				}
			}
		})
	}
	writers.Wait()
	close(stop)
	others.Wait()

	_, reports := l.apply()
	assert.Empty(t, reports)
	findings, err := storetest.Check(l.ctx, l.Store)
	require.NoError(t, err)
	for _, v := range findings {
		// The original gives a batch its job in a step of its own. Until then the batch may have
		// been moved, given one here, delivered and removed. A worker discards the late job.
		assert.Equal(t, "is for a batch that is not there", v.Problem, v)
	}
	for l.Redis.SCard(l.ctx, "jobs:index:main").Val() > 0 {
		deliver()
	}
	for event := range acknowledged {
		assert.NotZero(t, delivered[event], event)
	}
	for event, n := range delivered {
		assert.Equal(t, 1, n, event)
	}
	l.RequireSound()
	assert.Empty(t, l.Redis.Keys(l.ctx, "batch*:????????????????????").Val())
}
