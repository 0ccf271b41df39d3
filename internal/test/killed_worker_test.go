package test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store"
	"routemaster/internal/store/storetest"
	"routemaster/internal/test/bustest"
	"routemaster/internal/wire"
	"routemaster/internal/wire/wiretest"
)

// hundred is an endpoint for many subscribers, whose first delivery hangs.
type hundred struct {
	mu       sync.Mutex
	hanging  map[string]bool
	accepted map[string]time.Time
}

func (h *hundred) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	first := !h.hanging[r.URL.Path]
	h.hanging[r.URL.Path] = true
	if !first {
		h.accepted[r.URL.Path] = time.Now()
	}
	h.mu.Unlock()
	if first {
		<-r.Context().Done() // until the worker is gone
		panic(http.ErrAbortHandler)
	}
}

func (h *hundred) count() (hanging, accepted int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.hanging), len(h.accepted)
}

// TestTheJobsOfAKilledWorkerAreSoonDeliveredAgain kills a worker with 100 deliveries in flight, in
// real time.
func TestTheJobsOfAKilledWorkerAreSoonDeliveredAgain(t *testing.T) {
	t.Parallel()
	// A quarter of the threads is for subscribers that have acknowledged something, which these
	// have not.
	const deliveries, threads, within = 100, 134, 35 * time.Second
	redis := rdbtest.Real(t)
	st := storetest.Open(t, redis)
	ctx := t.Context()
	endpoint := &hundred{hanging: map[string]bool{}, accepted: map[string]time.Time{}}
	server := httptest.NewUnstartedServer(endpoint)
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	require.NoError(t, st.PutToken(ctx, "publisher--1", "publisher"))
	for i := range deliveries {
		token := bus.Token(fmt.Sprintf("s--%d", i))
		require.NoError(t, st.PutToken(ctx, token, "s"))
		timeout, uuid := time.Duration(0), ""
		require.NoError(t, st.Subscribe(ctx, token, bus.Subscription{
			Topics: []bus.TopicName{"widgets"}, Callback: fmt.Sprintf("%s/%d", server.URL, i), Timeout: &timeout, UUID: &uuid,
		}, time.Now()))
	}
	event := wiretest.Pack(t, "widgets", `{"type":"update","url":"https://x.example/1"}`)
	require.NoError(t, storetest.Publish(ctx, st, store.Publication{
		Topic: "widgets", Publisher: "publisher--1", Events: []wire.PackedEvent{event}, ReceivedAt: time.Now().UnixMilli(),
	}))

	variables := []string{"ROUTEMASTER_REDIS_URL=" + redis.URL, fmt.Sprintf("ROUTEMASTER_WORKER_THREADS=%d", threads), "ROUTEMASTER_TIMEOUT=60"}
	first := bustest.StartProcess(t, "worker", variables...)
	require.Eventually(t, func() bool {
		hanging, _ := endpoint.count()
		return hanging == deliveries
	}, bustest.WaitTimeout, time.Millisecond)
	first.Kill()
	killed := time.Now()
	second := bustest.StartProcess(t, "worker", variables...)
	require.Eventually(t, func() bool {
		_, accepted := endpoint.count()
		return accepted == deliveries
	}, within+bustest.WaitTimeout, 10*time.Millisecond)
	var last time.Time
	for _, at := range endpoint.accepted {
		if at.After(last) {
			last = at
		}
	}
	t.Logf("the last of %d deliveries came %v after the kill", deliveries, last.Sub(killed))
	assert.Less(t, last.Sub(killed), rdbtest.Limit(within))
	require.NoError(t, second.Stop())
	storetest.RequireSound(t, st)
}
