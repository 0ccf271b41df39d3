package contract

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/app"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/test/bustest"
)

// patient is a subscriber that hangs or fails on demand.
type patient struct {
	token         string
	sick          atomic.Bool
	asked, served atomic.Int64
}

func newPatient(t *testing.T, b *bustest.Bus, name string, symptom http.HandlerFunc) *patient {
	t.Helper()
	p := &patient{token: b.AddClient(name)}
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.asked.Add(1)
		_, _ = io.Copy(io.Discard, r.Body) // only then the server sees that a client is gone
		if p.sick.Load() {
			symptom(w, r)
			return
		}
		p.served.Add(1)
	}))
	t.Cleanup(server.Close)
	(&bustest.Subscriber{Token: p.token, URL: server.URL}).Subscribe(b, 0, 1, "ailments")
	return p
}

// latency is the median time from before a publish to the subscriber's handler, one event at a
// time.
func latency(t *testing.T, b *bustest.Bus, publisher string, sub *bustest.Subscriber, events int) time.Duration {
	t.Helper()
	var latencies []time.Duration
	for range events {
		number := len(sub.Acknowledged())
		published := time.Now()
		b.Publish(publisher, "widgets", number)
		latencies = append(latencies, sub.WaitFor(t, number+1)[number].ReceivedAt.Sub(published))
	}
	slices.Sort(latencies)
	return latencies[events/2]
}

// TestSickSubscribersDoNotSlowTheOthersDown compares the latency of a healthy subscriber beside two
// that are well with that beside the same two when one hangs and one fails, with many batches
// waiting for them.
func TestSickSubscribersDoNotSlowTheOthersDown(t *testing.T) {
	rdbtest.OneRedisOnly(t, "it compares latencies to a millisecond, and relays gather events for 20 ms")
	const events, waiting = 150, 300
	rounds := rdbtest.Fewer(6)
	b := bustest.Start(t, rdbtest.Real(t), func(c *app.Config) { c.Timeout, c.MaxBackoff = time.Second, 500*time.Millisecond })
	publisher := b.AddClient("publisher")
	healthy := bustest.NewSubscriber(t, b.AddClient("healthy"))
	healthy.Subscribe(b, 0, 1, "widgets")
	patients := []*patient{
		newPatient(t, b, "hanging", func(_ http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
			panic(http.ErrAbortHandler) // to return would answer 200, which may be read all the same
		}),
		newPatient(t, b, "failing", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }),
	}
	latency(t, b, publisher, healthy, events) // connections are made, scripts loaded

	// On a quiet host it is within 10 %; the limit is for a busy one.
	rdbtest.Promptly(t, time.Millisecond, func() (beyond time.Duration) {
		var calm, rough []time.Duration
		for range rounds {
			calm = append(calm, latency(t, b, publisher, healthy, events))
			var served, asked []int64
			for _, p := range patients {
				p.sick.Store(true)
				served, asked = append(served, p.served.Load()), append(asked, p.asked.Load())
			}
			for number := range waiting {
				b.Publish(publisher, "ailments", number)
			}
			for i, p := range patients {
				require.Eventually(t, func() bool { return p.asked.Load() > asked[i] }, bustest.WaitTimeout, time.Millisecond)
			}
			rough = append(rough, latency(t, b, publisher, healthy, events))
			for i, p := range patients {
				assert.Equal(t, served[i], p.served.Load(), "it was sick all the time")
				p.sick.Store(false)
			}
			b.Drain()
			for i, p := range patients { // more, if a delivery timed out that they had served
				assert.GreaterOrEqual(t, p.served.Load(), served[i]+waiting, "well again")
			}
		}
		slices.Sort(calm)
		slices.Sort(rough)
		before, during := calm[rounds/2], rough[rounds/2]
		t.Logf("median latency beside subscribers that are well %v, beside sick ones %v: %+.1f %%", before, during, 100*(float64(during)/float64(before)-1))
		return during - before*3/2
	})
	b.RequireNothingLeft()
}

// TestASubscriberThatIsDownCostsLittleAndComesBackFast takes a subscriber with many waiting batches
// down for a while.
func TestASubscriberThatIsDownCostsLittleAndComesBackFast(t *testing.T) {
	const events, outage = 300, 1500 * time.Millisecond
	b := bustest.Start(t, rdbtest.Real(t))
	publisher := b.AddClient("publisher")
	healthy := bustest.NewSubscriber(t, b.AddClient("healthy"))
	healthy.Subscribe(b, 0, 1, "widgets")
	sick := bustest.NewSubscriber(t, b.AddClient("sick"))
	var down atomic.Bool
	var attempts atomic.Int64
	sick.Refuse = func(int) bool {
		attempts.Add(1)
		return down.Load()
	}
	sick.Subscribe(b, 0, 1, "widgets")

	down.Store(true)
	began := time.Now()
	for number := range events {
		b.Publish(publisher, "widgets", number)
	}
	healthy.WaitFor(t, events)
	assert.Len(t, healthy.Numbers(), events, "another subscriber is not affected")
	for time.Since(began) < outage {
		time.Sleep(time.Millisecond) // the outage
	}
	tried, lasted := attempts.Load(), time.Since(began)
	down.Store(false)
	back := time.Now()
	sick.WaitFor(t, events)
	t.Logf("%d attempts in an outage of %v with %d batches waiting; all delivered %v after it", tried, lasted, events, time.Since(back))
	assert.LessOrEqual(t, tried, int64(2+lasted/(200*time.Millisecond)))
	require.Less(t, time.Since(back), rdbtest.Limit(time.Minute))
	b.RequireNothingLeft()
}

// TestHangingSubscribersLeaveThreadsToOthers measures a healthy subscriber beside 100 that never
// answer, with 32 threads.
func TestHangingSubscribersLeaveThreadsToOthers(t *testing.T) {
	rdbtest.OneRedisOnly(t, "it measures threads of a worker, which take as long wherever the bus is")
	const hanging, events = 100, 300
	b := bustest.Start(t, rdbtest.Real(t), func(c *app.Config) { c.WorkerThreads, c.Timeout = 32, 5*time.Second })
	publisher := b.AddClient("publisher")
	healthy := bustest.NewSubscriber(t, b.AddClient("healthy"))
	healthy.Subscribe(b, 0, 1, "widgets")
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
		(&bustest.Subscriber{Token: b.AddClient(fmt.Sprintf("hanging-%d", i)), URL: server.URL + "/"}).Subscribe(b, 0, 1, "ailments")
	}
	for i := range 2 {
		b.Publish(publisher, "ailments", i)
	}
	const free = 32 / 4
	require.Eventually(t, func() bool { return asked.Load() >= 32-free }, bustest.WaitTimeout, time.Millisecond)
	rdbtest.Promptly(t, 500*time.Millisecond, func() time.Duration {
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
	b.Drain()
	b.RequireNothingLeft()
}
