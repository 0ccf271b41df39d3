package web_test

import (
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/jobs"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store/storetest"
	"routemaster/internal/web/webtest"
)

// remove moves the clock on, and has all partitions remove the jobs that were kept long enough.
func (a *jobsAPI) remove(after time.Duration) {
	a.T.Helper()
	a.Ahead += after
	for _, err := range a.jobs.Each(func(_ int, st *jobs.Store) error {
		_, err := st.Purge(a.T.Context(), start.Add(a.Ahead), func() bool { return true })
		return err
	}) {
		require.NoError(a.T, err)
	}
}

// TestARemovedJobIsNotEnqueuedAgain sends the request for a job of [jobs.AtMostOnce] again, which
// has run and was removed: until a day after that it is answered as while the job was kept.
func TestARemovedJobIsNotEnqueuedAgain(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, redis *rdbtest.Server) {
		a := newJobs(t, redis)
		a.add("pay", atMostOnce, limit(9))
		path := a.put("pay", 1)
		a.fetch("pay")
		a.require(200, "POST", path, `{"status":"succeeded","attempt":1}`)
		kept := a.refuse("PUT", path, `{"data":null}`, 400, "job_already_archived")
		a.remove(time.Hour + time.Second)
		a.refuse("GET", path, "", 404, "not_found")
		a.refuse("POST", path, `{"status":"succeeded","attempt":1}`, 404, "not_found")
		a.refuse("POST", path+"/replay", "", 404, "not_found")
		storetest.RequireAllSound(t, a.Bus)

		a.Ahead += 24*time.Hour - time.Millisecond
		removed := a.refuse("PUT", path, `{"data":null}`, 400, "job_already_archived")
		assert.NotEqual(t, kept.Detail, removed.Detail)
		assert.Contains(t, removed.Detail, "removed less than 24 hours ago")
		bulk := a.refuse("POST", "/v1/jobs/pay", `[{"id":"`+jobID(2)+`","data":1},{"id":"`+jobID(1)+`","data":1}]`, 400, "job_already_archived")
		assert.Equal(t, "/1/id", bulk.Pointer)
		assert.Empty(t, a.list("/v1/jobs"))
		a.Ahead += time.Millisecond
		a.put("pay", 1)
		assert.Equal(t, 1, a.fetch("pay"))
		storetest.RequireAllSound(t, a.Bus)
	})
}

// TestARemovedReplayIsNotMadeAgain sends a replay again, of a job that is still there.
func TestARemovedReplayIsNotMadeAgain(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, redis *rdbtest.Server) {
		a := newJobs(t, redis)
		a.add("pay", atMostOnce, limit(9), func(t *jobs.Type) { t.Timeout = 24 * time.Hour })
		path := a.put("pay", 1)
		a.fetch("pay")
		replay := func(status int, key string) string {
			r := httptest.NewRequestWithContext(t.Context(), "POST", path+"/replay", nil)
			a.Authorize(r, alice)
			r.Header.Set("Idempotency-Key", key)
			w := httptest.NewRecorder()
			a.Handler.ServeHTTP(w, r)
			require.Equal(t, status, w.Code, w.Body)
			webtest.RequireDocumented(t, r, "", w)
			return w.Body.String()
		}
		replay(201, "key")
		copied := a.list("/v1/jobs?status=queued")[0]
		a.require(204, "DELETE", "/v1/jobs/pay/"+copied, "")
		assert.Contains(t, replay(201, "key"), copied)
		a.remove(time.Hour + time.Second)
		assert.Contains(t, replay(400, "key"), "send another key")
		assert.NotContains(t, replay(201, "another"), copied)
		storetest.RequireAllSound(t, a.Bus)
	})
}
