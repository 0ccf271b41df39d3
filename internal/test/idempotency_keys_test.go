package test

import (
	"crypto/rand"
	"flag"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/app"
	"routemaster/internal/bus"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store/storetest"
	"routemaster/internal/test/bustest"
)

var keysDuration = flag.Duration("keys.duration", 0, "how long TestNewKeysAtFullSpeedCostNoEvent publishes at least")

// TestNewKeysAtFullSpeedCostNoEvent has clients publish with a new idempotency key each time, as
// fast as they can, until Redis has reached its high mark twice, once with the race detector. It
// stays below its limit by dropping keys, and no subscriber loses an event: neither one whose queue
// waits, nor one that is served.
func TestNewKeysAtFullSpeedCostNoEvent(t *testing.T) {
	const waiting, mb = 100, 1_000_000
	b := bustest.Start(t, rdbtest.Real(t), func(c *app.Config) { c.MaxBackoff = time.Second }) // so that the sick one is tried soon
	publisher := b.AddClient("publisher")
	healthy, sick := bustest.NewSubscriber(t, b.AddClient("healthy")), bustest.NewSubscriber(t, b.AddClient("sick"))
	var down atomic.Bool
	down.Store(true)
	sick.Refuse = func(int) bool { return down.Load() }
	for _, s := range []*bustest.Subscriber{healthy, sick} {
		s.Subscribe(b, 0, 1, "widgets")
	}
	for number := range waiting {
		b.Publish(publisher, "widgets", number)
	}
	flood := bustest.NewLoad(t)
	var published, refused atomic.Int64
	flooding := time.Now()
	for _, name := range []string{"a", "b", "c", "d"} {
		token := b.AddClient("load-" + name)
		flood.Repeat(func() {
			if publishWithKey(b, token, "load_"+name) {
				published.Add(1)
			} else {
				refused.Add(1)
			}
		})
	}
	require.Eventually(t, func() bool { return published.Load() > 2000 }, bustest.WaitTimeout, time.Millisecond) // connections have their buffers
	warm, err := b.Stores.First().Partition().Memory(t.Context())
	require.NoError(t, err)
	b.StopWorker()
	b.Config.Memory = bus.MemoryLimits{Max: warm.Used + mb, MinFree: mb / 2}
	if *keysDuration > 0 { // autodrop comes by itself, every 10 s: until then there must be room for the keys of 15 s
		const bytesOfKey = 90
		room := int64(float64(published.Load()*bytesOfKey) * (15 * time.Second).Seconds() / time.Since(flooding).Seconds())
		b.Config.Memory = bus.MemoryLimits{Max: warm.Used + 5*room/2, MinFree: room}
	}
	b.StartWorker()

	begun, number, peak := time.Now(), waiting, int64(0)
	drops := func() int { return strings.Count(b.Logged.String(), "dropped idempotency keys") }
	enough := func() bool {
		if *keysDuration > 0 {
			return time.Since(begun) >= *keysDuration && drops() > 0
		}
		return drops() >= rdbtest.Fewer(2)
	}
	for !enough() {
		require.Less(t, time.Since(begun), *keysDuration+2*time.Minute, "keys do not fill redis")
		b.Publish(publisher, "widgets", number)
		number++
		memory, err := b.Stores.First().Partition().Memory(t.Context())
		require.NoError(t, err)
		peak = max(peak, memory.Used)
		if *keysDuration == 0 {
			_, err := storetest.NewQueue(b.Stores.First(), 1).Enqueue(t.Context(), bus.QueueAux, bus.Job{Name: bus.JobAutodrop})
			require.NoError(t, err)
		}
		time.Sleep(10 * time.Millisecond) // a steady trickle beside the flood
	}
	flood.End()
	assert.Positive(t, drops())
	assert.Zero(t, refused.Load())
	assert.LessOrEqual(t, peak, b.Config.Memory.Max)
	assert.NotContains(t, b.Logged.String(), "dropped the oldest batches")
	down.Store(false)
	healthy.WaitFor(t, number)
	sick.WaitFor(t, number)
	assert.Len(t, healthy.Numbers(), number)
	assert.Len(t, sick.Numbers(), number)
	t.Logf("%d publishes with new keys in %v; redis at its peak %d of %d bytes above; keys were dropped %d times",
		published.Load(), time.Since(begun).Round(time.Millisecond), peak-warm.Used, b.Config.Memory.Max-warm.Used, drops())
}

// publishWithKey publishes an event with a new idempotency key, and reports whether it was stored.
func publishWithKey(b *bustest.Bus, token, topic string) bool {
	req, err := http.NewRequest("POST", b.API+"/topics/"+topic, strings.NewReader(bustest.EventBody(1)))
	if err != nil {
		return false
	}
	req.SetBasicAuth(token, "")
	req.Header.Set("Idempotency-Key", rand.Text())
	resp, err := b.Client.Do(req)
	if err != nil {
		return false
	}
	_ = resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}
