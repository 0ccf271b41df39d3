package test

import (
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/vmihailenco/msgpack/v5"

	"routemaster/internal/app"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/test/bustest"
)

// readCounters reads the counters as an operator would: name{tag:value,...}, ordered by tag.
func readCounters(t *testing.T, redis *rdbtest.Server) map[string]int64 {
	t.Helper()
	counters := map[string]int64{}
	for field, value := range redis.Raw.HGetAll(t.Context(), "counters").Val() {
		var parts []any
		require.NoError(t, msgpack.Unmarshal([]byte(field), &parts))
		var tags []string
		for _, tag := range parts[1].([]any) {
			pair := tag.([]any)
			tags = append(tags, pair[0].(string)+":"+pair[1].(string))
		}
		assert.True(t, slices.IsSorted(tags))
		n, err := strconv.ParseInt(value, 10, 64)
		require.NoError(t, err)
		counters[parts[0].(string)+"{"+strings.Join(tags, ",")+"}"] = n
	}
	return counters
}

// scrape reads a page of metrics as name{labels} and value, and holds it to Prometheus'
// conventions.
func scrape(t *testing.T, client *http.Client, url string) map[string]float64 {
	t.Helper()
	resp, err := client.Get(url)
	require.NoError(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, resp.StatusCode, string(body))
	problems, err := promlint.New(strings.NewReader(string(body))).Lint()
	require.NoError(t, err)
	assert.Empty(t, problems)
	values := map[string]float64{}
	for line := range strings.Lines(string(body)) {
		if series, value, ok := strings.Cut(strings.TrimSpace(line), " "); ok && series != "#" {
			if i := strings.LastIndex(line, "} "); i > 0 { // a label may have a space
				series, value = line[:i+1], strings.TrimSpace(line[i+2:])
			}
			values[series], err = strconv.ParseFloat(value, 64)
			require.NoError(t, err, line)
		}
	}
	return values
}

// scrapeAll is [scrape] of a page with all metrics. It tries again, because a scrape waits for
// Redis for half a second only.
func scrapeAll(t *testing.T, client *http.Client, url string) (values map[string]float64) {
	t.Helper()
	require.Eventually(t, func() bool {
		values = scrape(t, client, url)
		return values["routemaster_redis_up"] == 1
	}, bustest.WaitTimeout, 100*time.Millisecond, "there is nothing of Redis")
	return values
}

// metricsPages gives web and worker a metrics listener each, and returns their pages' addresses.
func metricsPages(t *testing.T, b *bustest.Bus) (web, worker string) {
	t.Helper()
	b.StopWeb()
	b.StopWorker()
	web, worker = rdbtest.FreeAddress(t), rdbtest.FreeAddress(t)
	b.Config.MetricsAddr = web
	b.StartWeb()
	b.Config.MetricsAddr = worker
	b.StartWorker()
	for _, address := range []string{web, worker} {
		require.Eventually(t, func() bool {
			conn, err := net.Dial("tcp", address)
			if err == nil {
				_ = conn.Close()
			}
			return err == nil
		}, bustest.WaitTimeout, time.Millisecond)
	}
	return "http://" + web + "/metrics", "http://" + worker + "/metrics"
}

// TestMetricsAndCountersOfDeliveries publishes events, has a subscriber refuse a batch once, and
// reads an operator's sources: the counters in Redis, and the metrics pages.
func TestMetricsAndCountersOfDeliveries(t *testing.T) {
	redis := rdbtest.Real(t)
	b := bustest.Start(t, redis, func(c *app.Config) { c.MetricService = "none" })
	webPage, workerPage := metricsPages(t, b)
	before := readCounters(t, redis)
	publisher, shop := b.AddClient("publisher"), bustest.NewSubscriber(t, b.AddClient("shop"))
	idle := bustest.NewSubscriber(t, b.AddClient("idle"))
	shop.Refuse = func(deliveries int) bool { return deliveries == 1 }
	shop.Subscribe(b, 50, 10, "widgets")
	idle.Subscribe(b, 0, 10, "gadgets")
	b.Call(publisher, "POST", "/topics/widgets", "["+bustest.EventBody(1)+","+bustest.EventBody(2)+","+bustest.EventBody(3)+"]", 200)
	shop.WaitFor(t, 3)
	b.Publish(publisher, "widgets", 4)
	shop.WaitFor(t, 4)
	gone := bustest.NewSubscriber(t, b.AddClient("gone"))
	gone.Subscribe(b, 3_600_000, 10, "parcels")
	b.Publish(publisher, "parcels", 5)
	b.Publish(publisher, "parcels", 6)
	b.Call(gone.Token, "DELETE", "/subscriber", "", 204)
	b.Call(bustest.RootKey, "DELETE", "/api_tokens/"+gone.Token, "", 204)
	var worker map[string]float64
	require.Eventually(t, func() bool { // the page is a second old at most
		worker = scrapeAll(t, b.Client, workerPage)
		return worker[`routemaster_jobs{queue="main",status="instant"}`] == 0 && worker[`routemaster_jobs{queue="main",status="scheduled"}`] == 0 &&
			worker[`routemaster_subscriber_queued_batches{subscriber="shop"}`] == 0 && worker[`routemaster_worker_threads_busy{queue="main"}`] == 0 &&
			len(redis.Raw.Keys(t.Context(), "batch:*").Val()) == 0
	}, bustest.WaitTimeout, 100*time.Millisecond)
	web := scrapeAll(t, b.Client, webPage)
	b.StopWeb()
	b.StopWorker()

	after := readCounters(t, redis)
	for name, n := range before {
		after[name] -= n
	}
	size := after["events.bytes{publisher:publisher,topic:widgets}"]
	assert.Greater(t, size, int64(4*30))
	for name, want := range map[string]int64{
		"events.published{publisher:publisher,topic:widgets}": 4,
		"events.added{queue:shop}":                            4,
		"events.removed{queue:shop}":                          4,
		"delivery.events{queue:shop,status:failure}":          3,
		"delivery.events{queue:shop,status:success}":          4,
		"delivery.batches{queue:shop,status:failure}":         1,
		"delivery.batches{queue:shop,status:success}":         2,
		"bus.published{}":                                     6,
		"bus.delivered{status:failure}":                       3,
		"bus.delivered{status:success}":                       4,
		"bus.deliveries{status:failure}":                      1,
		"bus.deliveries{status:success}":                      2,
		"latency.batches.count{queue:shop}":                   2,
		"process{status:start,type:web}":                      1,
		"process{status:stop,type:web}":                       1,
		"process{status:stop,type:worker}":                    1,
	} {
		assert.Equal(t, want, after[name], name)
	}
	first, last := after["latency.batches.first_attempt{queue:shop}"], after["latency.batches.last_attempt{queue:shop}"]
	assert.GreaterOrEqual(t, first, int64(2*50), "both waited for more events")
	assert.GreaterOrEqual(t, last, first+100, "the first was tried again after 100 ms at least")
	time1, time2 := after["delivery.time{queue:shop,status:success}"], after["delivery.time2{queue:shop,status:success}"]
	assert.LessOrEqual(t, time1*time1, 2*time2, "the square of the sum of two is at most twice the sum of the squares")
	assert.LessOrEqual(t, time2, time1*time1)
	assert.NotContains(t, strings.Join(redis.Raw.HKeys(t.Context(), "counters").Val(), " "), "--1", "tokens are secret")

	for name, want := range map[string]float64{
		`routemaster_published_events_total{topic="widgets"}`: 4, `routemaster_published_bytes_total`: float64(size + after["events.bytes{publisher:publisher,topic:parcels}"]),
		`routemaster_enqueued_events_total`: 6, `routemaster_publish_duration_seconds_count`: 4,
		`routemaster_commit_events_count`: 4, `routemaster_commit_events_sum`: 6, `routemaster_redis_up`: 1,
		`routemaster_worker_threads{queue="main"}`: 0,
	} {
		assert.Equal(t, want, web[name], name)
	}
	for name, want := range map[string]float64{
		`routemaster_deliveries_total{subscriber="shop",status="failure"}`:       1,
		`routemaster_deliveries_total{subscriber="shop",status="success"}`:       2,
		`routemaster_delivered_events_total{subscriber="shop",status="success"}`: 4,
		`routemaster_delivery_duration_seconds_count{status="failure"}`:          1,
		`routemaster_end_to_end_latency_seconds_count`:                           2,
		`routemaster_delivery_start_latency_seconds_count`:                       2,
		`routemaster_delivery_connections_total{reused="false"}`:                 2, // one is closed after a failure
		`routemaster_delivery_connections_total{reused="true"}`:                  1,
		`routemaster_worker_threads{queue="main"}`:                               8,
		`routemaster_worker_threads_busy{queue="main"}`:                          0,
		`routemaster_subscriber_queued_batches{subscriber="shop"}`:               0,
		`routemaster_subscriber_health_points{subscriber="shop"}`:                100,
		`routemaster_subscriber_oldest_event_age_seconds{subscriber="idle"}`:     0,
		`routemaster_jobs{queue="main",status="scheduled"}`:                      0,
		`routemaster_jobs_due`:                     0,
		`routemaster_autodropped_batches_total`:    0,
		`routemaster_redis_memory_max_bytes`:       100_000_000,
		`routemaster_redis_memory_high_mark_bytes`: 90_000_000,
		`routemaster_redis_memory_low_mark_bytes`:  80_000_000,
	} {
		value, there := metric(worker, name)
		assert.True(t, there, name)
		assert.InDelta(t, want, value, 2*boolean(strings.Contains(name, "health")), name)
	}
	assert.Positive(t, worker["routemaster_redis_memory_used_bytes"])
	assert.Positive(t, worker["go_goroutines"])
}

// TestMetricsOfTheWholeBus reads from web how many events a worker has delivered, and failed to.
func TestMetricsOfTheWholeBus(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, redis *rdbtest.Server) {
		b := bustest.Start(t, redis, func(c *app.Config) { c.MetricService, c.CounterFlushInterval = "none", 10*time.Millisecond })
		page, _ := metricsPages(t, b)
		publisher, shop := b.AddClient("publisher"), bustest.NewSubscriber(t, b.AddClient("shop"))
		shop.Refuse = func(deliveries int) bool { return deliveries == 1 }
		shop.Subscribe(b, 0, 10, "widgets")
		names := []string{
			`routemaster_bus_deliveries_total{status="failure",subscriber="shop"}`,
			`routemaster_bus_deliveries_total{status="success",subscriber="shop"}`,
			`routemaster_bus_delivered_events_total{status="failure",subscriber="shop"}`,
			`routemaster_bus_delivered_events_total{status="success",subscriber="shop"}`,
			`routemaster_bus_autodropped_events_total{subscriber="shop"}`,
		}
		show := func(want ...float64) {
			t.Helper()
			require.Eventually(t, func() bool { // the page is a second old at most
				values := scrape(t, b.Client, page)
				for i, name := range names {
					if n, ok := values[name]; !ok || n != want[i] {
						return false
					}
				}
				return true
			}, bustest.WaitTimeout, 10*time.Millisecond)
		}
		show(0, 0, 0, 0, 0)
		b.Call(publisher, "POST", "/topics/widgets", "["+bustest.EventBody(1)+","+bustest.EventBody(2)+","+bustest.EventBody(3)+"]", 200)
		shop.WaitFor(t, 3)
		show(1, 1, 3, 3, 0)
		var text string
		require.Eventually(t, func() bool {
			text = b.Call(publisher, "GET", "/metrics", "", 200)
			return strings.Contains(text, "\nroutemaster_redis_up 1\n")
		}, bustest.WaitTimeout, 100*time.Millisecond)
		for _, name := range names {
			assert.Contains(t, text, name)
		}
		assert.NotContains(t, text, "--1", "tokens are secret")
	})
}

func boolean(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// metric finds a series whatever the order of its labels.
func metric(page map[string]float64, series string) (float64, bool) {
	name, labels, _ := strings.Cut(strings.TrimSuffix(series, "}"), "{")
	want := strings.Split(labels, ",")
	slices.Sort(want)
	for candidate, value := range page {
		n, l, _ := strings.Cut(strings.TrimSuffix(candidate, "}"), "{")
		have := strings.Split(l, ",")
		slices.Sort(have)
		if n == name && slices.Equal(have, want) {
			return value, true
		}
	}
	return 0, false
}

// TestBacklogsAreMeasured looks at a subscriber that is down, and at a busy thread.
func TestBacklogsAreMeasured(t *testing.T) {
	redis := rdbtest.Real(t)
	b := bustest.Start(t, redis, func(c *app.Config) { c.MetricService = "none" })
	_, page := metricsPages(t, b)
	publisher, shop := b.AddClient("publisher"), bustest.NewSubscriber(t, b.AddClient("shop"))
	release, hanging := make(chan struct{}), make(chan struct{}, 100)
	shop.Refuse = func(int) bool {
		hanging <- struct{}{}
		<-release
		return false
	}
	t.Cleanup(func() { close(release) })
	shop.Subscribe(b, 0, 1, "widgets")
	for i := range 3 {
		b.Publish(publisher, "widgets", i)
	}
	<-hanging
	require.Eventually(t, func() bool {
		values := scrape(t, b.Client, page)
		return values[`routemaster_worker_threads_busy{queue="main"}`] == 1 &&
			values[`routemaster_subscriber_queued_events{subscriber="shop"}`] == 3 &&
			values[`routemaster_subscriber_queued_batches{subscriber="shop"}`] == 3 &&
			values[`routemaster_jobs{queue="main",status="scheduled"}`] == 2 &&
			values[`routemaster_subscriber_oldest_event_age_seconds{subscriber="shop"}`] > 0
	}, bustest.WaitTimeout, 100*time.Millisecond)
}

// TestAScrapeWorksWithoutRedis freezes Redis.
func TestAScrapeWorksWithoutRedis(t *testing.T) {
	redis := rdbtest.Real(t)
	redis.URL = rdbtest.Hurried(redis.URL)
	b := bustest.Start(t, redis, func(c *app.Config) { c.MetricService = "none" })
	webPage, workerPage := metricsPages(t, b)
	redis.Freeze(t)
	defer redis.Thaw(t)
	for _, page := range []string{webPage, workerPage} {
		var values map[string]float64
		rdbtest.Promptly(t, 2*time.Second, func() time.Duration {
			return rdbtest.Took(func() { values = scrape(t, b.Client, page) })
		})
		assert.Zero(t, values["routemaster_redis_up"])
		assert.Contains(t, values, "routemaster_redis_up")
		assert.NotContains(t, values, "routemaster_jobs_due")
		assert.Positive(t, values["go_goroutines"])
	}
}

// TestTheMetricsListenerHasProfilesOnAPrivateAddress also requires that the API has none, and asks
// for a login for its metrics.
func TestTheMetricsListenerHasProfilesOnAPrivateAddress(t *testing.T) {
	b := bustest.Start(t, rdbtest.Embedded(t), func(c *app.Config) { c.MetricService, c.Profiles = "none", true })
	_, page := metricsPages(t, b)
	for path, want := range map[string]int{"/metrics": 200, "/debug/pprof/": 200, "/debug/pprof/goroutine": 200, "/": 404} {
		resp, err := b.Client.Get(strings.TrimSuffix(page, "/metrics") + path)
		require.NoError(t, err)
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		assert.Equal(t, want, resp.StatusCode, path)
	}
	b.Call(bustest.RootKey, "GET", "/debug/pprof/", "", 404)
	b.Call("", "GET", "/metrics", "", 401)
}
