package test

import (
	"strings"
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
	tried, lasted := attempts.Load(), time.Since(began)
	down.Store(false)
	back := time.Now()
	sick.waitFor(t, events)
	t.Logf("%d attempts in an outage of %v with %d batches waiting; all delivered %v after it", tried, lasted, events, time.Since(back))
	assert.LessOrEqual(t, tried, int64(2+lasted/(200*time.Millisecond)))
	require.Less(t, time.Since(back), 10*time.Second)
	b.requireNothingLeft()
}

// TestTheBusOutlivesRedisTroubles takes Redis away in several ways, under load. The daemons must go on by themselves, within
// 2 s, without an event lost or delivered twice.
func TestTheBusOutlivesRedisTroubles(t *testing.T) {
	for _, trouble := range []struct {
		name        string
		begin, lift func(*testing.T, *storetest.Server)
		lasts       time.Duration
	}{
		{"killed", func(t *testing.T, r *storetest.Server) { r.Kill(t) }, func(t *testing.T, r *storetest.Server) { r.Restart(t) }, time.Second},
		{"hanging", func(t *testing.T, r *storetest.Server) { r.Freeze(t) }, func(t *testing.T, r *storetest.Server) { r.Thaw(t) }, time.Second},
		// Longer than a call may take.
		{"hanging for long", func(t *testing.T, r *storetest.Server) { r.Freeze(t) }, func(t *testing.T, r *storetest.Server) { r.Thaw(t) }, 4 * time.Second},
		{"full", do("config", "set", "maxmemory", "1"), do("config", "set", "maxmemory", "0"), time.Second},
		// The replica of a master that is not there.
		{"read-only", do("replicaof", "127.0.0.1", "1"), do("replicaof", "no", "one"), time.Second},
		{"without its scripts", do("script", "flush"), do("script", "flush"), time.Second},
		{"cutting connections", do("client", "kill", "type", "normal"), do("client", "kill", "type", "normal"), time.Second},
	} {
		t.Run(trouble.name, func(t *testing.T) {
			redis := storetest.Real(t, "--appendonly", "yes", "--appendfsync", "always")
			b := startBus(t, redis)
			publisher := b.addClient("publisher")
			sub := newSubscriber(t, b.addClient("subscriber"))
			sub.subscribe(b, 20, 10, "widgets")
			traffic := b.startTraffic(4, publisher, "widgets")
			traffic.waitForMore(t, 50)
			sub.waitFor(t, 50)

			storetest.Promptly(t, 2*time.Second, func() time.Duration {
				trouble.begin(t, redis)
				time.Sleep(trouble.lasts)
				trouble.lift(t, redis)
				lifted, delivered := time.Now(), len(sub.numbers())
				traffic.waitForMore(t, 1)
				published := time.Since(lifted)
				sub.waitFor(t, delivered+1)
				back := time.Since(lifted)
				t.Logf("back after it: publishing %v, delivering %v", published, back)
				return back
			})

			traffic.stop()
			b.drain()
			lost, twice := traffic.compare(sub)
			if !strings.Contains(b.logged.String(), "dropped the oldest batches") { // as it should when Redis is full for long
				assert.Empty(t, lost, "lost")
			}
			assert.Empty(t, twice, "delivered twice")
			b.requireNothingLeft()
		})
	}
}

// do returns a step that sends Redis a command.
func do(command ...any) func(*testing.T, *storetest.Server) {
	return func(t *testing.T, redis *storetest.Server) {
		t.Helper()
		require.NoError(t, redis.Raw.Do(t.Context(), command...).Err())
	}
}
