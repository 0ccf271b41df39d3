package contract

import (
	"encoding/json"
	"io"
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

// requireIdle waits until no thread of a worker has a job: a service may have reported on it before
// the worker has read the answer.
func requireIdle(t *testing.T, metrics string) {
	t.Helper()
	require.Eventually(t, func() bool {
		resp, err := http.Get("http://" + metrics + "/metrics")
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		page, err := io.ReadAll(resp.Body)
		return err == nil && strings.Contains(string(page), "\nroutemaster_worker_threads_busy{queue=\"jobs\"} 0\n")
	}, bustest.WaitTimeout, 10*time.Millisecond, "a thread has a job")
}

// TestAJobFromItsTypeToTheArchive has a client enqueue a job, and its service report on it twice:
// that it failed, and that it succeeded.
func TestAJobFromItsTypeToTheArchive(t *testing.T) {
	t.Parallel()
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		url, asked := bustest.NewJobService(t)
		b := bustest.Start(t, server, func(c *app.Config) { c.DownstreamURL, c.DownstreamAuth = url, "s3cret" })
		b.StopWorker()
		b.Config.MetricsAddr = rdbtest.FreeAddress(t)
		b.StartWorker()
		shop := b.AddClient("shop")
		job := func(text string) (v bustest.Job) {
			t.Helper()
			require.NoError(t, json.Unmarshal([]byte(text), &v), text)
			return v
		}
		next := func() (v [2]string) {
			t.Helper()
			select {
			case v = <-asked:
			case <-time.After(bustest.WaitTimeout):
				t.Fatal("the service gets no job")
			}
			return v
		}
		b.Call(shop, "POST", "/v1/jobs", `{"name":"invoice-shipments","delivery_strategy":"at_least_once","attempts":3,"concurrency":5}`, 201)
		const path = "/v1/jobs/invoice-shipments/job_282227eb-3c76-4ef7-af7e-25dff933077f"
		queued := job(b.Call(shop, "PUT", path, `{"data":{"shipmentId":"shp_123"}}`, 202))
		assert.Equal(t, "job_282227eb-3c76-4ef7-af7e-25dff933077f", queued.ID)

		body := `{"data":{"shipmentId":"shp_123"},"attempts":3,"id":"` + queued.ID + `","attempt":3}`
		assert.Equal(t, [2]string{path, body}, next())
		b.Call(shop, "POST", path, `{"status":"failed","attempt":3}`, 200)
		assert.Equal(t, 2, job(b.Call(shop, "GET", path, "", 200)).Attempts)
		assert.Contains(t, next()[1], `"attempt":2}`, "about 2 s later")
		b.Call(shop, "POST", path, `{"status":"succeeded","attempt":2}`, 200)
		archived := job(b.Call(shop, "GET", path, "", 200))
		assert.Equal(t, []any{"succeeded", 2, `{"shipmentId":"shp_123"}`}, []any{archived.Status, archived.Attempts, string(archived.Data)})

		again := job(b.Call(shop, "POST", path+"/replay", "", 201))
		assert.NotEqual(t, queued.ID, again.ID)
		assert.Equal(t, "/v1/jobs/invoice-shipments/"+again.ID, next()[0])
		b.Call(shop, "POST", "/v1/jobs/invoice-shipments/"+again.ID, `{"status":"succeeded","attempt":3}`, 200)
		var archive []bustest.Job
		require.NoError(t, json.Unmarshal([]byte(b.Call(shop, "GET", "/v1/archived-jobs", "", 200)), &archive))
		require.Len(t, archive, 2)
		assert.Equal(t, again.ID, archive[0].ID, "newest first")
		requireIdle(t, b.Config.MetricsAddr)
		before := b.Logged.String()
		b.StopWorker()
		assert.Contains(t, strings.TrimPrefix(b.Logged.String(), before),
			`msg="worker stopping, waiting for deliveries in flight" deliveries=0 jobs=0`)
	})
}
