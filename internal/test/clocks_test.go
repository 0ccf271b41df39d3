package test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/app"
	"routemaster/internal/bus"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/test/bustest"
	"routemaster/internal/wire"
)

// TestAWorkerWhoseClockIsAnHourAhead runs beside a worker whose clock is right. That one does a job
// that may be tried only once, for longer than it takes until a silent worker is taken for dead.
func TestAWorkerWhoseClockIsAnHourAhead(t *testing.T) {
	t.Parallel()
	ctx, redis := t.Context(), rdbtest.Real(t)
	came, release := make(chan string, 10), make(chan struct{})
	service := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case came <- r.URL.Path:
		default: // only the first matter
		}
		<-release
	}))
	defer service.Close()
	releaseOnce := sync.OnceFunc(func() { close(release) })
	defer releaseOnce()
	b := bustest.Start(t, redis, func(c *app.Config) {
		c.DownstreamURL, c.DownstreamAuth, c.Timeout = service.URL, "s3cret", time.Hour
	})
	client := b.AddClient("billing")
	b.Call(client, "POST", "/v1/jobs", `{"name":"invoices","delivery_strategy":"at_most_once","attempts":1,"concurrency":5}`, 201)
	b.Call(client, "POST", "/v2/job-types", `{"name":"reports","delivery_strategy":"at_least_once","attempts":3,"concurrency":5,"schedule":"* * * * *"}`, 201)
	const path = "/v1/jobs/invoices/job_282227eb-3c76-4ef7-af7e-25dff933077f"
	b.Call(client, "PUT", path, `{"data":1}`, 202)
	for !strings.Contains(<-came, "invoices") {
	}

	ahead := bustest.StartProcess(t, "worker", "ROUTEMASTER_REDIS_URL="+redis.URL, "ROUTEMASTER_JOB_THREADS=2",
		"ROUTEMASTER_MACHINE_THREADS=2", "DOWNSTREAM_URL="+service.URL, "DOWNSTREAM_WORKER_AUTH=s3cret", bustest.AheadVariable+"=1h")
	require.Eventually(t, func() bool {
		return strings.Contains(ahead.LogText(), "the clock of this host is off from redis' clock")
	}, bustest.WaitTimeout, 10*time.Millisecond)
	require.Eventually(t, func() bool {
		return strings.Contains(b.Call(bustest.RootKey, "GET", "/overview", "", 200), "clocks-apart")
	}, bustest.WaitTimeout, 100*time.Millisecond)

	// A worker has died with a job, and its clock was wrong, too.
	job := string(wire.PackJob(bus.Job{Name: bus.JobBatch, Args: []string{"a-batch-that-is-gone"}}))
	died := time.Now().Add(time.Hour).UnixMilli()
	require.NoError(t, redis.Raw.HSet(ctx, "workers", "dead", died).Err())
	require.NoError(t, redis.Raw.SAdd(ctx, "jobs:index:main", job).Err())
	require.NoError(t, redis.Raw.RPush(ctx, "jobs:pending:main:dead", job).Err())
	require.NoError(t, redis.Raw.SAdd(ctx, "jobs:pending:index:main", "dead").Err())

	s := bustest.NewSubscriber(t, b.AddClient("shop"))
	s.Subscribe(b, 100, 10, "widgets")
	publisher := b.AddClient("publisher")
	b.Publish(publisher, "widgets", 1)
	s.WaitFor(t, 1)

	require.Eventually(t, func() bool {
		return redis.Raw.Exists(ctx, "jobs:pending:main:dead").Val() == 0
	}, bustest.WaitTimeout, 100*time.Millisecond, "dead workers are still scrubbed")
	now := time.Now()
	status := func() string {
		var job bustest.Job
		require.NoError(t, json.Unmarshal([]byte(b.Call(client, "GET", path, "", 200)), &job))
		return job.Status
	}
	assert.Equal(t, "in-progress", status(), "its worker lives")
	for worker, active := range redis.Raw.HGetAll(ctx, "workers").Val() {
		at, err := strconv.ParseInt(active, 10, 64)
		require.NoError(t, err)
		assert.Less(t, at, now.Add(time.Minute).UnixMilli(), worker)
	}
	since, err := redis.Raw.HGet(ctx, "work:schedules", "reports").Int64()
	require.NoError(t, err)
	assert.LessOrEqual(t, since, now.UnixMicro(), "the schedule goes on")

	releaseOnce()
	b.Call(client, "POST", path, `{"status":"succeeded","attempt":1}`, 200)
	assert.Equal(t, "succeeded", status())
	b.StopWorker() // the other does all alone
	b.Publish(publisher, "widgets", 2)
	s.WaitFor(t, 2)
	require.NoError(t, ahead.Stop())
	b.StartWorker()
}
