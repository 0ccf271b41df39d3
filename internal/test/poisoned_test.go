package test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/app"
	"routemaster/internal/store/storetest"
)

// poisoned is from which number on events are refused.
const poisoned = 1_000_000

// TestPoisonedBatchesCostOnlyThemselves has a subscriber answer 500 to batches that were published first, and wants each good
// event, of which one comes every 500 ms, within 3 s.
func TestPoisonedBatchesCostOnlyThemselves(t *testing.T) {
	t.Parallel()
	for _, batches := range []int{12, 50} {
		t.Run(fmt.Sprint(batches), func(t *testing.T) {
			t.Parallel()
			const good, every = 12, 500 * time.Millisecond
			b := startBus(t, storetest.Real(t))
			publisher := b.addClient("publisher")
			sub := newSubscriber(t, b.addClient("subscriber"))
			var cured atomic.Bool
			sub.status = func(numbers []int) int {
				if numbers[0] >= poisoned && !cured.Load() {
					return http.StatusInternalServerError
				}
				return http.StatusOK
			}
			sub.subscribe(b, 0, 1, "widgets")
			published := make([]time.Time, good)
			storetest.Promptly(t, 3*time.Second, func() (slowest time.Duration) {
				before := len(sub.numbers())
				for i := range batches {
					b.publish(publisher, "widgets", poisoned+i)
				}
				ticker := time.NewTicker(every)
				defer ticker.Stop()
				for i := range good {
					published[i] = time.Now()
					b.publish(publisher, "widgets", i)
					<-ticker.C
				}
				for i, got := range sub.waitFor(t, before+good)[before:] {
					require.Equal(t, []int{i}, got.numbers)
					slowest = max(slowest, got.at.Sub(published[i]))
				}
				t.Logf("slowest of %d good events beside %d poisoned batches: %v", good, batches, slowest)
				return slowest
			})
			cured.Store(true)
			b.drain()
			b.requireNothingLeft()
		})
	}
}

// TestAnEndpointThatRefusesEverythingIsTriedLessAndLess answers 500 to all of 40 batches.
func TestAnEndpointThatRefusesEverythingIsTriedLessAndLess(t *testing.T) {
	t.Parallel()
	const batches = 40
	b := startBus(t, storetest.Real(t))
	publisher := b.addClient("publisher")
	sub := newSubscriber(t, b.addClient("subscriber"))
	var well atomic.Bool
	var mu sync.Mutex
	var attempts []time.Time
	sub.status = func([]int) int {
		if well.Load() {
			return http.StatusOK
		}
		mu.Lock()
		defer mu.Unlock()
		attempts = append(attempts, time.Now())
		return http.StatusInternalServerError
	}
	sub.subscribe(b, 0, 1, "widgets")
	for i := range batches {
		b.publish(publisher, "widgets", i)
	}
	// between counts the attempts between two moments after the first.
	between := func(from, to time.Duration) (n int) {
		mu.Lock()
		defer mu.Unlock()
		for _, at := range attempts {
			if after := at.Sub(attempts[0]); after >= from && after < to {
				n++
			}
		}
		return n
	}
	const first, second, third = 2 * time.Second, 4 * time.Second, 6 * time.Second
	require.Eventually(t, func() bool { return between(third, time.Hour) > 0 }, soon, time.Millisecond)
	early, late := between(0, first), between(second, third)
	t.Logf("attempts in the first 2 s: %d, in the third 2 s: %d", early, late)
	assert.GreaterOrEqual(t, early, batches, "each is tried")
	assert.Less(t, late, early/4)
	well.Store(true)
	b.drain()
	assert.Len(t, sub.numbers(), batches)
	b.requireNothingLeft()
}

// TestBatchesThatFailedInAnOutageFollowAtOnce answers 503 until 40 batches have failed, and then wants all of them, and what came
// meanwhile, within 3 s of the first success.
func TestBatchesThatFailedInAnOutageFollowAtOnce(t *testing.T) {
	t.Parallel()
	const batches = 40
	b := startBus(t, storetest.Real(t))
	publisher := b.addClient("publisher")
	sub := newSubscriber(t, b.addClient("subscriber"))
	sub.subscribe(b, 0, 1, "widgets")
	storetest.Promptly(t, 3*time.Second, func() time.Duration {
		before := len(sub.numbers())
		failed := map[int]bool{}
		sub.mu.Lock()
		sub.status = func(numbers []int) int {
			if failed[numbers[0]] = true; len(failed) <= batches {
				return http.StatusServiceUnavailable
			}
			return http.StatusOK
		}
		sub.mu.Unlock()
		for i := range 2 * batches {
			b.publish(publisher, "widgets", i)
		}
		got := sub.waitFor(t, before+2*batches)[before:]
		took := got[len(got)-1].at.Sub(got[0].at)
		t.Logf("%d batches, %d of which had failed, within %v of the first success", len(got), batches, took)
		return took
	})
	b.requireNothingLeft()
}

// TestHangingSubscribersLeaveThreadsToOthers measures a healthy subscriber beside 100 that never answer, with 32 threads.
func TestHangingSubscribersLeaveThreadsToOthers(t *testing.T) {
	const hanging, events = 100, 300
	b := startBus(t, storetest.Real(t), func(c *app.Config) { c.WorkerThreads, c.Timeout = 32, 5*time.Second })
	publisher := b.addClient("publisher")
	healthy := newSubscriber(t, b.addClient("healthy"))
	healthy.subscribe(b, 0, 1, "widgets")
	latency(t, b, publisher, healthy, 1)

	var asked atomic.Int64
	var well atomic.Bool
	server := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		for ended := r.Context().Done(); !well.Load(); {
			select {
			case <-ended:
				return
			case <-time.After(10 * time.Millisecond): // to see whether it is well
			}
		}
	}))
	t.Cleanup(server.Close)
	for i := range hanging {
		(&subscriber{token: b.addClient(fmt.Sprintf("hanging-%d", i)), url: server.URL + "/"}).subscribe(b, 0, 1, "ailments")
	}
	for i := range 2 {
		b.publish(publisher, "ailments", i)
	}
	const free = 32 / 4
	require.Eventually(t, func() bool { return asked.Load() >= 32-free }, soon, time.Millisecond)
	storetest.Promptly(t, 500*time.Millisecond, func() time.Duration {
		var latencies []time.Duration
		for range events {
			latencies = append(latencies, latency(t, b, publisher, healthy, 1))
		}
		slices.Sort(latencies)
		t.Logf("beside %d hanging subscribers: median %v, p99 %v", hanging, latencies[events/2], latencies[events*99/100])
		return latencies[events*99/100]
	})
	well.Store(true)
	server.CloseClientConnections()
	b.drain()
	b.requireNothingLeft()
}
