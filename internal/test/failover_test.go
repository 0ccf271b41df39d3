package test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/app"
	"routemaster/internal/store/storetest"
)

// failoverWithin bounds a failover. It takes a second or two, but a sentinel that finds that it was stalled for 2 s does nothing
// for 30 s.
const failoverWithin = 2 * time.Minute

// TestAFailoverLosesNothing kills the master under traffic. What was acknowledged, and so confirmed by the replica, must be
// delivered, though the bus goes on with the replica.
func TestAFailoverLosesNothing(t *testing.T) {
	t.Parallel()
	redis := storetest.WithSentinels(t)
	b := startBus(t, redis, func(c *app.Config) { c.MinReplicas = 1 })
	publisher := b.addClient("publisher")
	sub := newSubscriber(t, b.addClient("subscriber"))
	sub.subscribe(b, 20, 10, "widgets")
	traffic := b.startTraffic(4, publisher, "widgets")
	traffic.waitForMore(t, 300)

	redis.Kill(t)
	killed := time.Now()
	require.Eventually(t, func() bool { return b.store.Ping(t.Context()) == nil }, failoverWithin, 10*time.Millisecond)
	t.Logf("a new master after %v", time.Since(killed))
	delivered := len(sub.numbers())
	before := traffic.count()
	assert.Equal(t, http.StatusServiceUnavailable, b.publishStatus(publisher), "the new master has no replica to confirm anything")
	require.Eventually(t, func() bool { return len(sub.numbers()) > delivered }, soon, time.Millisecond, "deliveries go on")

	redis.Restart(t) // as the new master's replica
	want := traffic.count() + 300
	require.Eventually(t, func() bool { return traffic.count() >= want }, failoverWithin, time.Millisecond, "the replica confirms nothing")
	traffic.stop()
	t.Logf("acknowledged %d before the failover, %d after it", before, traffic.count()-before)
	b.drain()
	lost, _ := traffic.compare(sub)
	assert.Empty(t, lost)
	b.requireNothingLeft()
}

// publishStatus publishes event 0 and returns the status.
func (b *testBus) publishStatus(token string) int {
	b.t.Helper()
	status, _, err := send(b.client, b.api, token, "POST", "/topics/widgets", eventBody(0))
	require.NoError(b.t, err)
	return status
}
