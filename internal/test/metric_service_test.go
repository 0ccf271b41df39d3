package test

import (
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
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

// often makes a bus report to a metric service many times a second.
func often(service, agent string) func(*app.Config) {
	return func(c *app.Config) {
		c.MetricService, c.DatadogAgent, c.AppName, c.Env = service, agent, "mybus", "staging"
		c.CounterFlushInterval, c.MonitorInterval = 10*time.Millisecond, 20*time.Millisecond
	}
}

// deliverOne publishes an event and waits for it.
func deliverOne(t *testing.T, b *bustest.Bus) {
	t.Helper()
	publisher, shop := b.AddClient("publisher"), bustest.NewSubscriber(t, b.AddClient("shop"))
	shop.Subscribe(b, 0, 10, "widgets")
	b.Publish(publisher, "widgets", 1)
	shop.WaitFor(t, 1)
}

func TestTheMonitorPrints(t *testing.T) {
	b := bustest.Start(t, rdbtest.Real(t), often("print", ""))
	deliverOne(t, b)
	b.Call(bustest.RootKey, "POST", "/v1/jobs", `{"name":"ship","delivery_strategy":"at_least_once","attempts":3,"concurrency":5,"url":null}`, 201)
	lines := func() (lines []string) {
		for line := range strings.Lines(b.Logged.String()) {
			if strings.Contains(line, "msg=metrics") {
				lines = append(lines, line)
			}
		}
		return lines
	}
	for _, want := range []string{
		"app=mybus env=staging", "redis.bytes_used=", "redis.max_mem=100000000", "redis.low_mark=80000000", "redis.high_mark=90000000",
		"redis.used_cpu_", "process{status:start,type:web}=1", "process{status:start,type:worker}=1", "events.added{queue:shop}=1",
		"events.published{publisher:publisher,topic:widgets}=1", "delivery.batches{queue:shop,status:success}=1",
		"jobs.requests{request:create,result:created}=1", "rickover.server.type.create.success=1",
	} {
		require.Eventually(t, func() bool { return strings.Contains(strings.Join(lines(), ""), want) }, bustest.WaitTimeout, 10*time.Millisecond, want)
	}
	assert.NotContains(t, strings.Join(lines(), ""), "--1", "tokens are secret")
}

// TestADamagedSubscriberDoesNotHideOthers overwrites the key of one subscriber.
func TestADamagedSubscriberDoesNotHideOthers(t *testing.T) {
	b := bustest.Start(t, rdbtest.Real(t), often("print", ""))
	deliverOne(t, b)
	bustest.NewSubscriber(t, b.AddClient("mailer")).Subscribe(b, 0, 10, "widgets")
	require.NoError(t, b.Redis.Raw.Set(t.Context(), "subscriber:mailer--1", "x", 0).Err())

	const logged = `level=ERROR msg="subscriber data is damaged" keys=[subscriber:mailer]`
	require.Eventually(t, func() bool { return strings.Contains(b.Logged.String(), logged) }, bustest.WaitTimeout, time.Millisecond)
	_, later, _ := strings.Cut(b.Logged.String(), logged)
	runs := func(log string) int { return strings.Count(log, "msg=metrics") }
	require.Eventually(t, func() bool {
		_, now, _ := strings.Cut(b.Logged.String(), logged)
		return runs(now) > runs(later)+2
	}, bustest.WaitTimeout, time.Millisecond, "the monitor goes on")
	assert.Equal(t, 1, strings.Count(b.Logged.String(), logged), "it is logged once")

	require.Eventually(t, func() bool { // a scrape is a second old at most
		page := b.Call(bustest.RootKey, "GET", "/metrics", "", http.StatusOK)
		return strings.Contains(page, `routemaster_subscriber_queued_events{subscriber="mailer"} 0`) &&
			strings.Contains(page, `routemaster_subscriber_health_points{subscriber="shop"} 100`) &&
			!strings.Contains(page, `routemaster_subscriber_health_points{subscriber="mailer"}`)
	}, bustest.WaitTimeout, 10*time.Millisecond, "nobody knows its health")
	assert.Contains(t, b.Call(bustest.RootKey, "GET", "/subscriptions", "", http.StatusOK), "shop--1")
}

// agent is a Datadog agent that keeps the lines it receives.
type agent struct {
	mu    sync.Mutex
	lines []string
}

func startAgent(t *testing.T, network, address string) (*agent, string) {
	t.Helper()
	conn, err := net.ListenPacket(network, address)
	require.NoError(t, err)
	a := &agent{}
	var reading sync.WaitGroup
	reading.Go(func() {
		packet := make([]byte, 1<<16)
		for {
			n, _, err := conn.ReadFrom(packet)
			if err != nil {
				return
			}
			a.mu.Lock()
			a.lines = append(a.lines, strings.Split(strings.TrimSpace(string(packet[:n])), "\n")...)
			a.mu.Unlock()
		}
	})
	t.Cleanup(func() {
		_ = conn.Close()
		reading.Wait()
	})
	return a, conn.LocalAddr().String()
}

// find returns the lines that begin so, and have all of some tags.
func (a *agent) find(start string, tags ...string) (found []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, line := range a.lines {
		has := strings.HasPrefix(line, start)
		_, list, _ := strings.Cut(line, "|#")
		for _, tag := range append(tags, "app:mybus", "env:staging") {
			has = has && strings.Contains(","+list+",", ","+tag+",")
		}
		if has {
			found = append(found, line)
		}
	}
	return found
}

func TestTheMonitorSendsToDatadog(t *testing.T) {
	a, address := startAgent(t, "udp", "127.0.0.1:0")
	redis := rdbtest.Real(t)
	old := bus.NewCounter("events.published", bus.Tag{Name: "topic", Value: "old"})
	require.NoError(t, storetest.Open(t, redis).AddCounters(t.Context(), map[bus.Counter]int64{old: 1000}))
	b := bustest.Start(t, redis, often("datadog", address))
	require.Eventually(t, func() bool { return len(a.find("routemaster.jobs.count:")) > 4 }, bustest.WaitTimeout, 5*time.Millisecond)
	deliverOne(t, b)
	require.Eventually(t, func() bool {
		return len(a.find("routemaster.delivery.batches:1|c", "queue:shop", "status:success")) > 0
	}, bustest.WaitTimeout, 5*time.Millisecond)
	sent := len(a.find("routemaster.redis.bytes_used:"))
	require.Eventually(t, func() bool { return len(a.find("routemaster.redis.bytes_used:")) > sent+3 }, bustest.WaitTimeout, 5*time.Millisecond)
	// Counts made by now come with one of the next runs.
	comes := func(start string, tags ...string) {
		t.Helper()
		require.Eventually(t, func() bool { return len(a.find(start, tags...)) > 0 }, bustest.WaitTimeout, 5*time.Millisecond, "%s %v", start, tags)
	}
	comes("routemaster.events.published:")
	assert.Len(t, a.find("routemaster.events.published:"), 1, "an increment is sent once, and what was before the first run never")
	assert.Equal(t, a.find("routemaster.events.published:"), a.find("routemaster.events.published:1|c", "publisher:publisher", "topic:widgets"))
	for _, gauge := range []string{"redis.max_mem:100000000|g", "redis.low_mark:80000000|g", "redis.high_mark:90000000|g"} {
		comes("routemaster." + gauge)
	}
	for _, queue := range []string{"main", "aux"} {
		for _, status := range []string{"instant", "scheduled"} {
			comes("routemaster.jobs.count:", "queue:"+queue, "status:"+status)
		}
	}
	comes("routemaster.subscriber.queue.batches:0|g", "subscriber:shop")
	comes("routemaster.subscriber.queue.events:0|g", "subscriber:shop")
	comes("routemaster.redis.used_cpu_")
	for _, line := range a.find("routemaster.redis.used_cpu_") {
		assert.Contains(t, line, "|c")
	}
	assert.NotContains(t, strings.Join(a.find("routemaster."), " "), "--1", "tokens are secret")
}

// TestAMetricServiceThatIsGoneOrHangsChangesNothing delivers events meanwhile.
func TestAMetricServiceThatIsGoneOrHangsChangesNothing(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	hanging, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"}) // and never reads
	require.NoError(t, err)
	defer hanging.Close()
	for name, address := range map[string]string{
		"gone": rdbtest.FreeAddress(t), "not to be found": "agent.invalid:8125", "hangs": "unixgram://" + socket,
	} {
		t.Run(name, func(t *testing.T) {
			b := bustest.Start(t, rdbtest.Embedded(t), often("datadog", address))
			publisher, shop := b.AddClient("publisher"), bustest.NewSubscriber(t, b.AddClient("shop"))
			shop.Subscribe(b, 0, 1, "widgets")
			const events = 50
			published := 0
			rdbtest.Promptly(t, events*200*time.Millisecond, func() time.Duration {
				return rdbtest.Took(func() {
					for range events {
						b.Publish(publisher, "widgets", published)
						published++
					}
					shop.WaitFor(t, published)
				})
			})
			b.RequireNothingLeft()
		})
	}
}
