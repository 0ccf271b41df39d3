package contract

import (
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/test/bustest"
)

// poisoned is from which number on events are refused.
const poisoned = 1_000_000

// TestPoisonedBatchesCostOnlyThemselves has a subscriber answer 500 to batches that were published
// first. One good event follows every 500 ms, and each must arrive within 3 s.
func TestPoisonedBatchesCostOnlyThemselves(t *testing.T) {
	t.Parallel()
	for _, batches := range []int{12, 50} {
		t.Run(fmt.Sprint(batches), func(t *testing.T) {
			t.Parallel()
			const good, every = 12, 500 * time.Millisecond
			b := bustest.Start(t, rdbtest.Real(t))
			publisher := b.AddClient("publisher")
			sub := bustest.NewSubscriber(t, b.AddClient("subscriber"))
			var cured atomic.Bool
			sub.Respond(func(numbers []int) int {
				if numbers[0] >= poisoned && !cured.Load() {
					return http.StatusInternalServerError
				}
				return http.StatusOK
			})
			sub.Subscribe(b, 0, 1, "widgets")
			published := make([]time.Time, good)
			rdbtest.Promptly(t, 3*time.Second, func() (slowest time.Duration) {
				before := len(sub.Numbers())
				for i := range batches {
					b.Publish(publisher, "widgets", poisoned+i)
				}
				ticker := time.NewTicker(every)
				defer ticker.Stop()
				for i := range good {
					published[i] = time.Now()
					b.Publish(publisher, "widgets", i)
					<-ticker.C
				}
				for i, got := range sub.WaitFor(t, before+good)[before:] {
					require.Equal(t, []int{i}, got.Numbers)
					slowest = max(slowest, got.ReceivedAt.Sub(published[i]))
				}
				t.Logf("slowest of %d good events beside %d poisoned batches: %v", good, batches, slowest)
				return slowest
			})
			cured.Store(true)
			b.Drain()
			b.RequireNothingLeft()
		})
	}
}

// TestAnEndpointThatRefusesEverythingIsTriedLessAndLess answers 500 to all of 40 batches.
func TestAnEndpointThatRefusesEverythingIsTriedLessAndLess(t *testing.T) {
	t.Parallel()
	const batches = 40
	b := bustest.Start(t, rdbtest.Real(t))
	publisher := b.AddClient("publisher")
	sub := bustest.NewSubscriber(t, b.AddClient("subscriber"))
	var well atomic.Bool
	var mu sync.Mutex
	tried := map[int]bool{}
	var attempts []time.Time // from when each had been tried
	sub.Respond(func(numbers []int) int {
		if well.Load() {
			return http.StatusOK
		}
		mu.Lock()
		defer mu.Unlock()
		if tried[numbers[0]] = true; len(tried) == batches {
			attempts = append(attempts, time.Now())
		}
		return http.StatusInternalServerError
	})
	sub.Subscribe(b, 0, 1, "widgets")
	for i := range batches {
		b.Publish(publisher, "widgets", i)
	}
	// between counts the attempts between two moments after the first of them.
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
	const from, to = 2 * time.Second, 4 * time.Second
	require.Eventually(t, func() bool { return between(to, time.Hour) > 0 }, bustest.WaitTimeout, time.Millisecond)
	late := between(from, to)
	t.Logf("attempts in the third and the fourth second after each was tried: %d", late)
	assert.Less(t, late, batches/4)
	well.Store(true)
	b.Drain()
	assert.Len(t, sub.Numbers(), batches)
	b.RequireNothingLeft()
}

// TestBatchesThatFailedInAnOutageFollowAtOnce answers 503 until 40 batches have failed. All of
// them, and the events that came meanwhile, must arrive within 3 s of the first success.
func TestBatchesThatFailedInAnOutageFollowAtOnce(t *testing.T) {
	t.Parallel()
	const batches = 40
	b := bustest.Start(t, rdbtest.Real(t))
	publisher := b.AddClient("publisher")
	sub := bustest.NewSubscriber(t, b.AddClient("subscriber"))
	sub.Subscribe(b, 0, 1, "widgets")
	rdbtest.Promptly(t, 3*time.Second, func() time.Duration {
		before := len(sub.Numbers())
		failed := map[int]bool{}
		sub.Respond(func(numbers []int) int {
			if failed[numbers[0]] = true; len(failed) <= batches {
				return http.StatusServiceUnavailable
			}
			return http.StatusOK
		})
		for i := range 2 * batches {
			b.Publish(publisher, "widgets", i)
		}
		got := sub.WaitFor(t, before+2*batches)[before:]
		took := got[len(got)-1].ReceivedAt.Sub(got[0].ReceivedAt)
		t.Logf("%d batches, %d of which had failed, within %v of the first success", len(got), batches, took)
		return took
	})
	b.RequireNothingLeft()
}
