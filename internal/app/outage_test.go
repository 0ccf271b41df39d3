package app_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/store/storetest"
)

// TestASubscriberThatIsDownCostsLittleAndComesBackFast takes a subscriber with many waiting batches down for a while.
func TestASubscriberThatIsDownCostsLittleAndComesBackFast(t *testing.T) {
	const events, outage = 300, 1500 * time.Millisecond
	b := startBus(t, storetest.Real(t))
	publisher := b.addClient("publisher")
	healthy := newSubscriber(t, b.addClient("healthy"))
	healthy.subscribe(b, 0, 1, "widgets")
	sick := newSubscriber(t, b.addClient("sick"))
	var down atomic.Bool
	var attempts atomic.Int64
	sick.refuse = func(int) bool {
		attempts.Add(1)
		return down.Load()
	}
	sick.subscribe(b, 0, 1, "widgets")

	down.Store(true)
	began := time.Now()
	for number := range events {
		b.publish(publisher, "widgets", number)
	}
	healthy.waitFor(t, events)
	assert.Len(t, healthy.numbers(), events, "another subscriber is not affected")
	for time.Since(began) < outage {
		time.Sleep(time.Millisecond) // the outage
	}
	tried := attempts.Load()
	down.Store(false)
	back := time.Now()
	sick.waitFor(t, events)
	t.Logf("%d attempts in an outage of %v with %d batches waiting; all delivered %v after it", tried, outage, events, time.Since(back))
	assert.LessOrEqual(t, tried, int64(2+outage/(200*time.Millisecond)))
	require.Less(t, time.Since(back), 10*time.Second)
	b.requireNothingLeft()
}
