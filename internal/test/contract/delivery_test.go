package contract

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/test/bustest"
)

func TestEndToEnd(t *testing.T) {
	t.Parallel()
	rdbtest.Each(t, func(t *testing.T, redis *rdbtest.Server) {
		b := bustest.Start(t, redis)
		publisher := b.AddClient("publisher")
		quick := bustest.NewSubscriber(t, b.AddClient("quick"))
		both := bustest.NewSubscriber(t, b.AddClient("both"))
		flaky := bustest.NewSubscriber(t, b.AddClient("flaky"))
		flaky.Refuse = func(deliveries int) bool { return deliveries%3 != 0 }
		quick.Subscribe(b, 0, 10, "widgets")
		both.Subscribe(b, 50, 5, "widgets", "gadgets")
		flaky.Subscribe(b, 3_600_000, 20, "gadgets") // full ones, however slow the host: each costs it health

		// Even numbers are widgets, odd ones gadgets.
		var widgets, gadgets, all []int
		next := 0
		publish := func(events int) {
			for range events {
				if next%2 == 0 {
					b.Publish(publisher, "widgets", next)
					widgets = append(widgets, next)
				} else {
					b.Publish(publisher, "gadgets", next)
					gadgets = append(gadgets, next)
				}
				all = append(all, next)
				next++
			}
		}
		publish(60)
		b.StopWeb()
		b.StartWeb()
		publish(60)
		b.StopWorker()
		publish(60)
		b.StartWorker()
		publish(60)
		quick.WaitFor(t, len(widgets))
		both.WaitFor(t, len(all))
		flaky.WaitFor(t, len(gadgets))

		assert.Equal(t, widgets, quick.Numbers(), "each once, in order")
		if !redis.IsCluster() { // topics have homes there, and may overtake one another
			assert.Equal(t, all, both.Numbers(), "each once, in order, over both topics")
		}
		assert.Equal(t, widgets, both.NumbersOf("widgets"), "each once, in order")
		assert.Equal(t, gadgets, both.NumbersOf("gadgets"), "each once, in order")
		fromFlaky := flaky.Numbers()
		slices.Sort(fromFlaky)
		assert.Equal(t, gadgets, fromFlaky, "each once, although two of three deliveries failed")
		for _, batch := range both.Acknowledged() {
			assert.LessOrEqual(t, len(batch.Numbers), 5)
			for i, number := range batch.Numbers {
				assert.Equal(t, []string{"widgets", "gadgets"}[number%2], batch.Topics[i])
			}
		}

		// A client that unsubscribed gets no more; others are not affected.
		b.Call(both.Token, "DELETE", "/subscriber/topics/gadgets", "", 204)
		b.Call(flaky.Token, "DELETE", "/subscriber", "", 204)
		publish(10)
		quick.WaitFor(t, len(widgets))
		both.WaitFor(t, len(all)-10+5)
		assert.Equal(t, widgets, both.NumbersOf("widgets"))
		assert.Equal(t, gadgets[:len(gadgets)-5], both.NumbersOf("gadgets"))
		assert.Len(t, flaky.Numbers(), len(gadgets)-5)
		b.RequireNothingLeft()
	})
}

func TestFullBatchesGoAtOnceAndStaleOnesOnTime(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, redis *rdbtest.Server) {
		const timeout = 150 * time.Millisecond
		b := bustest.Start(t, redis)
		publisher := b.AddClient("publisher")
		patient := bustest.NewSubscriber(t, b.AddClient("patient"))
		patient.Subscribe(b, 3_600_000, 3, "widgets")
		stale := bustest.NewSubscriber(t, b.AddClient("stale"))
		stale.Subscribe(b, int(timeout.Milliseconds()), 100, "widgets")

		began := time.Now()
		for number := range 7 {
			b.Publish(publisher, "widgets", number)
		}
		published := time.Now()
		batches := patient.WaitFor(t, 6)
		require.Len(t, batches, 2, "full batches only")
		assert.Equal(t, []int{0, 1, 2}, batches[0].Numbers)
		assert.Equal(t, []int{3, 4, 5}, batches[1].Numbers)

		late := stale.WaitFor(t, 7)
		assert.Equal(t, []int{0, 1, 2, 3, 4, 5, 6}, stale.Numbers())
		assert.LessOrEqual(t, len(late), 1+int(published.Sub(began)/(timeout-time.Millisecond)), "one, if publishing took less than the timeout")
		next := 7
		rdbtest.Promptly(t, timeout+time.Second, func() time.Duration {
			number, before := next, len(stale.Acknowledged())
			next++
			began := time.Now()
			b.Publish(publisher, "widgets", number)
			batch := stale.WaitFor(t, next)[before]
			assert.Equal(t, []int{number}, batch.Numbers)
			took := batch.ReceivedAt.Sub(began)
			assert.GreaterOrEqual(t, took, timeout-time.Millisecond, "on whole ms")
			return took
		})
		rdbtest.Promptly(t, time.Second, func() time.Duration {
			for full := false; !full; full = next%3 == 0 {
				b.Publish(publisher, "widgets", next)
				next++
			}
			published := time.Now()
			batches := patient.WaitFor(t, next)
			return batches[len(batches)-1].ReceivedAt.Sub(published)
		})
	})
}

// TestAnEventWithoutTimeoutArrivesAtOnce allows 10 ms, plus the time that a slow host takes for
// some publishes: a worker that waits for its next look at the queue takes longer.
func TestAnEventWithoutTimeoutArrivesAtOnce(t *testing.T) {
	rdbtest.OneRedisOnly(t, "events for another partition gather for 20 ms")
	b := bustest.Start(t, rdbtest.Real(t))
	publisher := b.AddClient("publisher")
	sub := bustest.NewSubscriber(t, b.AddClient("subscriber"))
	sub.Subscribe(b, 0, 100, "widgets")
	number := 0
	rdbtest.Promptly(t, 10*time.Millisecond, func() (beyond time.Duration) {
		var publishes, latencies []time.Duration
		for range 41 {
			sent := time.Now()
			b.Publish(publisher, "widgets", number)
			publishes = append(publishes, time.Since(sent))
			number++
			batches := sub.WaitFor(t, number)
			latencies = append(latencies, batches[len(batches)-1].ReceivedAt.Sub(sent))
		}
		slices.Sort(publishes)
		slices.Sort(latencies)
		publish, latency := publishes[len(publishes)/2], latencies[len(latencies)/2]
		t.Logf("a publish: median %v; from before it to the subscriber: median %v, most %v", publish, latency, latencies[len(latencies)-1])
		return latency - 4*publish
	})
	b.RequireNothingLeft()
}

func TestDeniedCallbacksAreNotConnectedTo(t *testing.T) {
	redis := rdbtest.Embedded(t)
	b := bustest.Start(t, redis)
	publisher := b.AddClient("publisher")
	sub := bustest.NewSubscriber(t, b.AddClient("subscriber"))
	sub.Subscribe(b, 0, 10, "widgets") // before it was denied, or by a name that was harmless then
	b.StopWorker()
	deny, err := bus.ParseDenyList("loopback")
	require.NoError(t, err)
	b.Config.CallbackDeny = deny
	b.StartWorker()
	b.Publish(publisher, "widgets", 1)
	require.Eventually(t, func() bool {
		return strings.Contains(b.Logged.String(), "denied by ROUTEMASTER_CALLBACK_DENY")
	}, bustest.WaitTimeout, time.Millisecond)
	assert.Zero(t, sub.Deliveries())
	b.StopWeb()
	b.StartWeb()
	b.Call(sub.Token, "POST", "/subscription", `{"topics":["widgets"],"callback":"https://127.0.0.1/"}`, 400)
}
