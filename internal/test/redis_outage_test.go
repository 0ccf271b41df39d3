package test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/app"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/test/bustest"
)

// TestTheBusSurvivesOutagesOfRedis makes Redis unavailable in several ways, under load. The daemons
// must recover by themselves, within 2 s, and no event may be lost or delivered twice.
func TestTheBusSurvivesOutagesOfRedis(t *testing.T) {
	for _, outage := range []struct {
		name        string
		begin, lift func(*testing.T, *rdbtest.Server)
		lasts       time.Duration
	}{
		{"killed", func(t *testing.T, r *rdbtest.Server) { r.Kill(t) }, func(t *testing.T, r *rdbtest.Server) { r.Restart(t) }, time.Second},
		{"hanging", func(t *testing.T, r *rdbtest.Server) { r.Freeze(t) }, func(t *testing.T, r *rdbtest.Server) { r.Thaw(t) }, time.Second},
		// Longer than a call may take.
		{"hanging for long", func(t *testing.T, r *rdbtest.Server) { r.Freeze(t) }, func(t *testing.T, r *rdbtest.Server) { r.Thaw(t) }, 4 * time.Second},
		{"full", do("config", "set", "maxmemory", "1"), do("config", "set", "maxmemory", "0"), time.Second},
		// The replica of a master that is not there.
		{"read-only", do("replicaof", "127.0.0.1", "1"), do("replicaof", "no", "one"), time.Second},
		{"without its scripts", do("script", "flush"), do("script", "flush"), time.Second},
		{"cutting connections", do("client", "kill", "type", "normal"), do("client", "kill", "type", "normal"), time.Second},
	} {
		t.Run(outage.name, func(t *testing.T) {
			redis := rdbtest.Real(t, "--appendonly", "yes", "--appendfsync", "always")
			redis.URL = rdbtest.Hurried(redis.URL)
			b := bustest.Start(t, redis)
			publisher := b.AddClient("publisher")
			sub := bustest.NewSubscriber(t, b.AddClient("subscriber"))
			sub.Subscribe(b, 20, 10, "widgets")
			traffic := b.StartTraffic(4, publisher, "widgets")
			traffic.WaitForMore(t, 50)
			sub.WaitFor(t, 50)

			rdbtest.Promptly(t, 2*time.Second, func() time.Duration {
				outage.begin(t, redis)
				time.Sleep(outage.lasts)
				outage.lift(t, redis)
				lifted, delivered := time.Now(), len(sub.Numbers())
				traffic.WaitForMore(t, 1)
				published := time.Since(lifted)
				sub.WaitFor(t, delivered+1)
				back := time.Since(lifted)
				t.Logf("back after it: publishing %v, delivering %v", published, back)
				return back
			})

			traffic.Stop()
			b.Drain()
			lost, twice := traffic.Compare(sub)
			if !strings.Contains(b.Logged.String(), "dropped the oldest batches") { // as it should when Redis is full for long
				assert.Empty(t, lost, "lost")
			}
			assert.Empty(t, twice, "delivered twice")
			b.RequireNothingLeft()
		})
	}
}

// do returns a step that sends Redis a command.
func do(command ...any) func(*testing.T, *rdbtest.Server) {
	return func(t *testing.T, redis *rdbtest.Server) {
		t.Helper()
		require.NoError(t, redis.Raw.Do(t.Context(), command...).Err())
	}
}

// failoverTimeout bounds a failover. It takes a second or two, but a sentinel that finds that it
// was stalled for 2 s does nothing for 30 s.
const failoverTimeout = 2 * time.Minute

// TestAFailoverLosesNothing kills the master under traffic. Acknowledged events, which the replica
// has confirmed, must be delivered, though the bus goes on with the replica.
func TestAFailoverLosesNothing(t *testing.T) {
	t.Parallel()
	redis := rdbtest.WithSentinels(t)
	b := bustest.Start(t, redis, func(c *app.Config) { c.MinReplicas = 1 })
	publisher := b.AddClient("publisher")
	sub := bustest.NewSubscriber(t, b.AddClient("subscriber"))
	sub.Subscribe(b, 20, 10, "widgets")
	traffic := b.StartTraffic(4, publisher, "widgets")
	traffic.WaitForMore(t, 300)

	redis.Kill(t)
	killed := time.Now()
	require.Eventually(t, func() bool { return b.Stores.First().Partition().Client().Ping(t.Context()) == nil }, failoverTimeout, 10*time.Millisecond)
	t.Logf("a new master after %v", time.Since(killed))
	delivered := len(sub.Numbers())
	before := traffic.Count()
	assert.Equal(t, http.StatusServiceUnavailable, publishStatus(t, b, publisher), "the new master has no replica to confirm anything")
	require.Eventually(t, func() bool { return len(sub.Numbers()) > delivered }, bustest.WaitTimeout, time.Millisecond, "deliveries go on")

	redis.Restart(t) // as the new master's replica
	want := traffic.Count() + 300
	require.Eventually(t, func() bool { return traffic.Count() >= want }, failoverTimeout, time.Millisecond, "the replica confirms nothing")
	traffic.Stop()
	t.Logf("acknowledged %d before the failover, %d after it", before, traffic.Count()-before)
	b.Drain()
	lost, _ := traffic.Compare(sub)
	assert.Empty(t, lost)
	b.RequireNothingLeft()
	assert.NotContains(t, b.Logged.String(), "redis refused a call", "which the page calls a mistake in the bus")
}

// publishStatus publishes event 0 and returns the status.
func publishStatus(t *testing.T, b *bustest.Bus, token string) int {
	t.Helper()
	status, _, err := bustest.Send(b.Client, b.API, token, "POST", "/topics/widgets", bustest.EventBody(0))
	require.NoError(t, err)
	return status
}
