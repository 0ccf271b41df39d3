package bustest

import (
	"maps"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Traffic is a load of numbered events, each sent once.
type Traffic struct {
	load *Load

	mu           sync.Mutex
	next         int
	acknowledged []int
	statuses     map[int]int
}

// trafficPause is how long publishers pause between requests while a test waits for something else,
// which as many requests as they can send would only slow down.
const trafficPause = 2 * time.Millisecond

// StartTraffic has so many publishers publish one event after the other, until Stop.
func (b *Bus) StartTraffic(publishers int, token, topic string) *Traffic {
	traffic := &Traffic{load: NewLoad(b.t), statuses: map[int]int{}}
	for range publishers {
		traffic.load.Repeat(func() {
			traffic.publish(b, token, topic)
			time.Sleep(trafficPause)
		})
	}
	return traffic
}

func (tr *Traffic) publish(b *Bus, token, topic string) {
	tr.mu.Lock()
	tr.next++
	number := tr.next
	tr.mu.Unlock()
	status, _, err := Send(b.Client, b.API, token, "POST", "/topics/"+topic, EventBody(number))
	tr.mu.Lock()
	defer tr.mu.Unlock()
	if err != nil {
		status = 0
	}
	tr.statuses[status]++
	if status == http.StatusOK {
		tr.acknowledged = append(tr.acknowledged, number)
	}
}

// Stop waits for the requests under way, and sends no more.
func (tr *Traffic) Stop() { tr.load.End() }

// Count is how many events have been acknowledged.
func (tr *Traffic) Count() int {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	return len(tr.acknowledged)
}

// Acknowledged are the numbers of the events that have been acknowledged, in order.
func (tr *Traffic) Acknowledged() []int {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	return slices.Sorted(slices.Values(tr.acknowledged))
}

// Statuses is how often each status has been answered; 0 stands for no answer.
func (tr *Traffic) Statuses() map[int]int {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	return maps.Clone(tr.statuses)
}

// WaitForMore waits until so many more events have been acknowledged.
func (tr *Traffic) WaitForMore(t testing.TB, events int) {
	t.Helper()
	want := tr.Count() + events
	require.Eventually(t, func() bool { return tr.Count() >= want }, WaitTimeout, time.Millisecond,
		"no more events are acknowledged")
}

// Compare returns the acknowledged events that a subscriber did not get, and the events that it got
// more than once. The traffic must have stopped.
func (tr *Traffic) Compare(s *Subscriber) (lost, twice []int) {
	deliveries := map[int]int{}
	for _, number := range s.Numbers() {
		deliveries[number]++
		if deliveries[number] == 2 {
			twice = append(twice, number)
		}
	}
	for _, number := range tr.acknowledged {
		if deliveries[number] == 0 {
			lost = append(lost, number)
		}
	}
	return lost, twice
}
