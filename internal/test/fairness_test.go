package test

import (
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
	"routemaster/internal/store/storetest"
)

// patient is a subscriber that can be told to hang, or to fail.
type patient struct {
	token         string
	sick          atomic.Bool
	asked, served atomic.Int64
}

func newPatient(t *testing.T, b *testBus, name string, symptom http.HandlerFunc) *patient {
	t.Helper()
	p := &patient{token: b.addClient(name)}
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
	(&subscriber{token: p.token, url: server.URL}).subscribe(b, 0, 1, "ailments")
	return p
}

// latency is the median time from before a publish to the subscriber's handler, one event at a time.
func latency(t *testing.T, b *testBus, publisher string, sub *subscriber, events int) time.Duration {
	t.Helper()
	var latencies []time.Duration
	for range events {
		number := len(sub.acknowledged())
		published := time.Now()
		b.publish(publisher, "widgets", number)
		latencies = append(latencies, sub.waitFor(t, number+1)[number].at.Sub(published))
	}
	slices.Sort(latencies)
	return latencies[events/2]
}

// TestSickSubscribersDoNotSlowTheOthersDown compares the latency of a healthy subscriber beside two that are well with that
// beside the same two when one hangs and one fails, with many batches waiting for them.
func TestSickSubscribersDoNotSlowTheOthersDown(t *testing.T) {
	const rounds, events, waiting = 6, 150, 300
	b := startBus(t, storetest.Real(t), func(c *app.Config) { c.Timeout, c.MaxBackoff = time.Second, 500*time.Millisecond })
	publisher := b.addClient("publisher")
	healthy := newSubscriber(t, b.addClient("healthy"))
	healthy.subscribe(b, 0, 1, "widgets")
	patients := []*patient{
		newPatient(t, b, "hanging", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }),
		newPatient(t, b, "failing", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }),
	}
	latency(t, b, publisher, healthy, events) // connections are made, scripts loaded

	// On a quiet machine it is within 10 %; the room is for a busy one.
	storetest.Promptly(t, time.Millisecond, func() (beyond time.Duration) {
		var calm, rough []time.Duration
		for range rounds {
			calm = append(calm, latency(t, b, publisher, healthy, events))
			var served, asked []int64
			for _, p := range patients {
				p.sick.Store(true)
				served, asked = append(served, p.served.Load()), append(asked, p.asked.Load())
			}
			for number := range waiting {
				b.publish(publisher, "ailments", number)
			}
			for i, p := range patients {
				require.Eventually(t, func() bool { return p.asked.Load() > asked[i] }, soon, time.Millisecond)
			}
			rough = append(rough, latency(t, b, publisher, healthy, events))
			for i, p := range patients {
				assert.Equal(t, served[i], p.served.Load(), "it was sick all the time")
				p.sick.Store(false)
			}
			b.drain()
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
	b.requireNothingLeft()
}
