package store_test

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/layout"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store"
	"routemaster/internal/store/storetest"
)

// TestAPublishKnowsTheLanesOfTheMoment changes the lanes and publishes, each by either of two
// stores.
func TestAPublishKnowsTheLanesOfTheMoment(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		f.AddSubscriber(storetest.Alice, time.Hour, 100, "widgets")
		f.AddSubscriber(storetest.Bob, time.Hour, 100, "widgets")
		stores := []*store.Store{f.Store, storetest.Open(t, server)}
		for i := range 60 {
			lanes := i%3 + 1
			options := map[string]string{"lanes": fmt.Sprint(lanes), "order_key": `"/data/key"`}
			require.NoError(t, stores[i/2%2].PatchSubscriber(t.Context(), storetest.Alice, bus.Subscription{Options: options}, storetest.Start))
			p := store.Publication{Topic: "widgets", Publisher: storetest.Publisher, ReceivedAt: storetest.Start.UnixMilli()}
			for key := range 30 {
				p.Events = append(p.Events, keyedEvent(t, fmt.Sprint(key), i*100+key))
			}
			require.NoError(t, storetest.Publish(t.Context(), stores[i%2], p))
			used := 0
			for lane := range 4 {
				used += int(f.Redis.SCard(t.Context(), layout.Keys{}.CurrentOfLane(storetest.Alice, lane)).Val())
			}
			require.Equal(t, lanes, used, "as many lanes as there are at the moment")
			require.Equal(t, "30", f.Redis.HGet(t.Context(), "batches:gauges:event", "alice--1").Val(), "none twice, none missing")
			for tasks := f.takeAll(t, "w", 3_600_000); len(tasks) > 0; tasks = f.takeAll(t, "w", 3_600_000) {
				for _, task := range tasks {
					require.True(t, f.Complete(task, storetest.Done))
				}
			}
		}
	})
}

// TestPublishesWhileLanesChange changes the lanes of subscribers all the time, while two stores
// publish. A refused publish is repeated, so anything that it had stored would be there twice.
// After the last change of the lanes, the order holds.
func TestPublishesWhileLanesChange(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		const subscribers, publishes, events, keys = 4, 30, 5, 3
		f, ctx := newFixture(t, server), t.Context()
		token := func(i int) bus.Token { return bus.Token(fmt.Sprintf("s%d--1", i%subscribers)) }
		for i := range subscribers {
			require.NoError(t, f.PutToken(ctx, token(i), bus.ClientName(fmt.Sprint("s", i))))
			f.AddSubscriber(token(i), 0, 5, "widgets")
		}
		var published atomic.Bool
		var publishing, halfway, changing sync.WaitGroup
		halfway.Add(2)
		changed := make(chan struct{})
		for by, st := range []*store.Store{f.Store, storetest.Open(t, server)} {
			publishing.Go(func() {
				for i := range publishes {
					if i == publishes/2 {
						halfway.Done()
						<-changed
					}
					p := store.Publication{Topic: "widgets", Publisher: storetest.Publisher, ReceivedAt: storetest.Start.UnixMilli()}
					for n := range events {
						number := by*1000 + i*events + n
						p.Events = append(p.Events, keyedEvent(t, fmt.Sprint(number%keys), number))
					}
					err := storetest.Publish(ctx, st, p)
					for errors.Is(err, bus.ErrUnavailable) {
						err = storetest.Publish(ctx, st, p)
					}
					assert.NoError(t, err)
				}
			})
		}
		changes := 0
		var enough atomic.Bool
		changing.Go(func() {
			defer close(changed)
			for i := 0; !enough.Load(); i++ {
				options := map[string]string{"lanes": fmt.Sprint(1 + i%5), "order_key": `"/data/key"`}
				err := f.PatchSubscriber(ctx, token(i), bus.Subscription{Options: options}, storetest.Start)
				if assert.NoError(t, err) {
					changes++
				}
			}
		})
		go func() {
			halfway.Wait()
			enough.Store(true)
			publishing.Wait()
			published.Store(true)
		}()
		f.requireInOrder(t, &published, subscribers*2*publishes*events, keys, publishes/2*events)
		changing.Wait()
		t.Logf("%d changes", changes)
		f.RequireSound()
	})
}

// requireInOrder delivers until all is published and delivered, and requires the number of events
// and, from a number on, the order of the events of each key, subscriber and publisher.
func (f *fixture) requireInOrder(t *testing.T, published *atomic.Bool, events, keys, from int) {
	t.Helper()
	type sequence struct {
		subscriber     bus.Token
		publisher, key int
	}
	last, delivered := map[sequence]int{}, 0
	for !published.Load() || f.Redis.ZCard(t.Context(), "batches:index").Val() > 0 {
		task := f.Take("w1", 0)
		if task == nil {
			runtime.Gosched()
			continue
		}
		for _, n := range storetest.Numbers(t, task) {
			of := sequence{task.Delivery.Subscriber, n / 1000, n % 1000 % keys}
			before, known := last[of]
			delivered++
			if n%1000 < from {
				continue
			}
			require.True(t, !known || before < n, "event %d after %d", n, before)
			last[of] = n
		}
		require.True(t, f.Complete(task, storetest.Done))
	}
	assert.Equal(t, events, delivered)
}

// TestABatchOfAWebWithoutLanesIsDelivered publishes as a web of an earlier version, which does not
// know lanes and writes the founding layout.
func TestABatchOfAWebWithoutLanesIsDelivered(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f, ctx := newFixture(t, server), t.Context()
		f.AddSubscriber(storetest.Alice, time.Hour, 2, "widgets")
		f.setLanes(3)
		keys := f.keysInLanes(t, 3)
		f.publishKeyed(t, 1, keys[0], keys[1])
		const bid = "AAAABBBBCCCCDDDD-_-_"
		created := storetest.Start.UnixMilli()
		f.Redis.RPush(ctx, "batch:"+bid, "alice--1", created, "0", string(keyedEvent(t, keys[1], 7)))
		f.Redis.ZAdd(ctx, "batches:index", redis.Z{Score: float64(created), Member: bid})
		f.Redis.HIncrBy(ctx, "batches:gauges:event", "alice--1", 1)
		f.Redis.HIncrBy(ctx, "batches:gauges:bytes", "alice--1", int64(len(keyedEvent(t, keys[1], 7))))
		f.Redis.HIncrBy(ctx, "batches:gauges:batch", "alice--1", 1)
		f.Redis.SAdd(ctx, "jobs:index:main", storetest.Job(bid))
		f.Redis.ZAdd(ctx, "jobs:scheduled:main", redis.Z{Score: float64(created), Member: storetest.Job(bid)})
		f.RequireSound()
		f.publishKeyed(t, 3, keys[2])

		var got [][]int
		for tasks := f.takeAll(t, "w", 3_600_000); len(tasks) > 0; tasks = f.takeAll(t, "w", 3_600_000) {
			f.RequireSound()
			got = append(got, numbersOf(t, tasks)...)
			for _, task := range tasks {
				require.True(t, f.Complete(task, storetest.Done))
			}
		}
		require.ElementsMatch(t, [][]int{{1}, {2}, {3}, {7}}, got, "it is in the first lane")
		f.requireNothingQueued(t)
	})
}
