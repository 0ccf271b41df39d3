package test

import (
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// traffic publishes numbered events, each once, until it is stopped.
type traffic struct {
	stop func()

	mu           sync.Mutex
	next         int
	acknowledged []int
}

func (b *testBus) startTraffic(publishers int, token, topic string) *traffic {
	tr := &traffic{}
	var running sync.WaitGroup
	ended := make(chan struct{})
	for range publishers {
		running.Go(func() {
			for {
				select {
				case <-ended:
					return
				default:
				}
				tr.mu.Lock()
				tr.next++
				number := tr.next
				tr.mu.Unlock()
				status, _, err := send(b.client, b.api, token, "POST", "/topics/"+topic, eventBody(number))
				if err == nil && status == http.StatusOK {
					tr.mu.Lock()
					tr.acknowledged = append(tr.acknowledged, number)
					tr.mu.Unlock()
				}
			}
		})
	}
	tr.stop = sync.OnceFunc(func() {
		close(ended)
		running.Wait()
	})
	b.t.Cleanup(tr.stop)
	return tr
}

func (tr *traffic) count() int {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	return len(tr.acknowledged)
}

// compare returns the events that were acknowledged but not delivered, and those that were delivered more than once.
func (tr *traffic) compare(sub *subscriber) (lost, twice []int) {
	times := map[int]int{}
	for _, number := range sub.numbers() {
		times[number]++
		if times[number] == 2 {
			twice = append(twice, number)
		}
	}
	for _, number := range tr.acknowledged {
		if times[number] == 0 {
			lost = append(lost, number)
		}
	}
	return lost, twice
}

// waitForMore waits until so many more events have been acknowledged.
func (tr *traffic) waitForMore(t *testing.T, events int) {
	t.Helper()
	want := tr.count() + events
	require.Eventually(t, func() bool { return tr.count() >= want }, soon, time.Millisecond, "nothing is acknowledged any more")
}

// drain waits until all that was queued has been delivered.
func (b *testBus) drain() {
	b.t.Helper()
	require.Eventually(b.t, func() bool {
		return b.redis.Raw.Exists(b.t.Context(), "jobs:index:main").Val() == 0
	}, soon, 10*time.Millisecond, "something is left in the queue")
}
