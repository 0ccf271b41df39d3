package web_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/jobs"
	"routemaster/internal/queue"
	"routemaster/internal/rdb/rdbtest"
)

// TestNoClientReadsTheStatusOfAPrivateAddress has a worker store it, of a job that is tried again
// and of one that is archived, and asks in every way.
func TestNoClientReadsTheStatusOfAPrivateAddress(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, redis *rdbtest.Server) {
		a := newJobs(t, redis)
		posted := func(t *jobs.Type) { t.Pull, t.URL = false, "https://10.0.0.1/" }
		a.add("ship", posted)
		a.add("pay", posted, atMostOnce)
		queued, ended := a.put("ship", 1), a.put("pay", 2)
		for range 2 {
			q, task := a.acquire("worker", start)
			require.NotNil(t, task)
			retryAt := start.Add(time.Second)
			if task.Payload.(*jobs.Run).Type == "pay" {
				retryAt = time.Time{}
			}
			_, err := q.Complete(t.Context(), task, queue.Result{RetryAt: retryAt, Detail: jobs.Outcome{
				Result: jobs.RunFailed, Standing: bus.Proven, Reason: bus.HidingReason("the service did not take the job", "the service answered 418 I'm a teapot"),
			}}, start)
			require.NoError(t, err)
		}
		assert.Equal(t, "the service did not take the job", a.show(queued).Reason)
		assert.Equal(t, "the service did not take the job", a.show(ended).Reason)
		for _, c := range [][3]string{
			{"GET", queued, ""}, {"GET", ended, ""}, {"GET", "/v1/jobs/" + jobID(1), ""}, {"GET", "/v1/jobs", ""},
			{"GET", "/v1/archived-jobs", ""}, {"PUT", queued, `{"data":null}`}, {"POST", "/v1/jobs/ship", `[{"id":"` + jobID(1) + `","data":null}]`},
		} {
			got := a.Do(alice, c[0], c[1], c[2]).Body
			assert.NotContains(t, got, "teapot", c)
			assert.Contains(t, got, "did not take", c)
			got = a.Do(rootKey, c[0], c[1], c[2]).Body
			assert.Contains(t, got, "418 I'm a teapot", c)
			assert.NotContains(t, got, "did not take", c)
		}
	})
}
