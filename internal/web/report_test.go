package web_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/jobs"
	"routemaster/internal/queue"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store/storetest"
)

// wait is how long after the clock's time a job is tried again.
func (a *jobsAPI) wait(path string) time.Duration {
	a.T.Helper()
	at, err := time.Parse(time.RFC3339Nano, a.show(path).RunAfter)
	require.NoError(a.T, err)
	return at.Sub(start.Add(a.Ahead))
}

func TestReportsAreRefused(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, redis *rdbtest.Server) {
		a := newJobs(t, redis)
		a.add("ship")
		a.add("pay")
		path := a.put("ship", 1)
		before := a.show(path)
		const good = `{"status":"succeeded","attempt":3}`
		for _, c := range []struct {
			path, body  string
			status      int
			id, pointer string
		}{
			{path, `{}`, 400, "missing_parameter", "/status"},
			{path, `{"status":"succeeded"}`, 400, "missing_parameter", "/attempt"},
			{path, `{"status":"expired","attempt":3}`, 400, "invalid_status", "/status"},
			{path, `{"status":"cancelled","attempt":3}`, 400, "invalid_status", "/status"},
			{path, `{"status":"failed","attempt":"3"}`, 400, "invalid_request", "/attempt"},
			{path, `{"status":"failed","attempt":32768}`, 400, "invalid_request", "/attempt"},
			{path, `{"status":"failed","attempt":-1}`, 400, "invalid_parameter", "/attempt"},
			{path, `{"status":"failed","attempt":3,"retryable":"no"}`, 400, "invalid_request", "/retryable"},
			{path, `{"status":"succeeded","attempt":99}`, 409, "stale_attempt", "/attempt"},
			{path, `{"status":"failed","attempt":99,"retryable":false}`, 409, "stale_attempt", "/attempt"},
			{path, `{"status":"failed","attempt":1}`, 409, "stale_attempt", "/attempt"},
			{"/v1/jobs/pay/" + jobID(1), good, 404, "job_not_found", ""},
			{"/v1/jobs/pay/" + jobID(1), `{"status":"failed","attempt":3}`, 404, "job_not_found", ""},
			{"/v1/jobs/ship/" + jobID(2), good, 404, "not_found", ""},
			{"/v1/jobs/ship/job_" + fmt.Sprintf("%036d", 0), good, 400, "invalid_uuid", ""},
		} {
			assert.Equal(t, c.pointer, a.refuse("POST", c.path, c.body, c.status, c.id).Pointer, c.body)
		}
		assert.Equal(t, before, a.show(path), "nothing was changed")
		storetest.RequireAllSound(t, a.Bus)
	})
}

func TestWhatBecomesOfAJob(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, redis *rdbtest.Server) {
		a := newJobs(t, redis)
		a.add("ship", limit(9))
		a.add("bill", atMostOnce, limit(9))
		for n, c := range []struct {
			name     jobs.TypeName
			reports  string // each with its attempt
			status   string
			attempts int
		}{
			{"ship", `{"status":"succeeded","attempt":3}`, "succeeded", 3},
			{"ship", `{"status":"failed","attempt":3,"retryable":false}`, "failed", 2},
			{"ship", `{"status":"failed","attempt":3,"retryable":null}`, "queued", 2},
			{"ship", `{"status":"failed","attempt":3}{"status":"failed","attempt":2}{"status":"succeeded","attempt":1}`, "succeeded", 1},
			{"ship", `{"status":"failed","attempt":3}{"status":"failed","attempt":2}{"status":"failed","attempt":1}`, "failed", 0},
			{"bill", `{"status":"failed","attempt":1}`, "failed", 0},
		} {
			path := "/v1/jobs/" + string(c.name) + "/" + jobID(n)
			sent := a.require(202, "PUT", path, `{"data":{"n":1.0},"expires_at":"2027-01-01T00:00:00Z"}`)
			var report json.RawMessage
			for decoder := json.NewDecoder(stringReader(c.reports)); decoder.More(); {
				require.NoError(t, decoder.Decode(&report))
				for range 2 { // it may be said twice
					assert.Equal(t, "", a.require(200, "POST", path, string(report)))
				}
			}
			shown := a.show(path)
			assert.Equal(t, c.status, shown.Status, c.reports)
			assert.Equal(t, c.attempts, shown.Attempts, c.reports)
			assert.Equal(t, `{"n":1.0}`, string(shown.Data))
			assert.Equal(t, "2027-01-01T00:00:00.000000Z", *shown.ExpiresAt)
			if shown.Status == "queued" {
				continue
			}
			assert.Empty(t, shown.RunAfter)
			assert.NotEqual(t, sent, a.require(200, "GET", "/v1/jobs/"+jobID(n), ""))
			a.refuse("GET", "/v1/jobs/pay/"+jobID(n), "", 404, "job_not_found")
			other := map[string]string{"succeeded": "failed", "failed": "succeeded"}[shown.Status]
			said := struct{ Attempt int }{}
			require.NoError(t, json.Unmarshal(report, &said))
			a.refuse("POST", path, fmt.Sprintf(`{"status":"%s","attempt":%d}`, other, said.Attempt), 409, "already_reported")
			assert.Equal(t, shown, a.show(path))
		}
		storetest.RequireAllSound(t, a.Bus)
	})
}

func TestAJobIsTriedAgainLaterAndLater(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, redis *rdbtest.Server) {
		a := newJobs(t, redis)
		a.add("ship", attempts(100))
		path := a.put("ship", 1)
		for left, most := 100, 2*time.Second; left > 87; left, most = left-1, min(2*most, time.Hour) {
			a.require(200, "POST", path, fmt.Sprintf(`{"status":"failed","attempt":%d}`, left))
			assert.LessOrEqual(t, a.wait(path), most)
			assert.Greater(t, a.wait(path), most*4/5-time.Millisecond)
		}
		storetest.RequireAllSound(t, a.Bus)
	})
}

func TestTheDeadlineEndsAnAttempt(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, redis *rdbtest.Server) {
		a := newJobs(t, redis)
		a.add("ship")
		a.add("bill", atMostOnce)
		path, once := a.put("ship", 1), a.put("bill", 2)
		a.refuse("POST", path+"/extend", `{"attempt":3,"timeout":1000}`, 409, "conflict")
		require.Equal(t, 3, a.fetch("ship"))
		require.Equal(t, 1, a.fetch("bill"))
		assert.Equal(t, "in-progress", a.show(path).Status)
		assert.Equal(t, "2026-01-31T18:01:00.123456Z", a.show(path).Deadline)

		a.pass(59 * time.Second)
		assert.JSONEq(t, `{"deadline":"2026-01-31T18:01:04.123456Z"}`, a.require(200, "POST", path+"/extend", `{"attempt":3,"timeout":5000}`))
		for _, c := range []struct {
			path, body  string
			status      int
			id, pointer string
		}{
			{path, `{"timeout":5000}`, 400, "missing_parameter", "/attempt"},
			{path, `{"attempt":3}`, 400, "missing_parameter", "/timeout"},
			{path, `{"attempt":3,"timeout":999}`, 400, "invalid_parameter", "/timeout"},
			{path, `{"attempt":3,"timeout":86400001}`, 400, "invalid_parameter", "/timeout"},
			{path, `{"attempt":2,"timeout":5000}`, 409, "stale_attempt", "/attempt"},
			{"/v1/jobs/bill/" + jobID(1), `{"attempt":3,"timeout":5000}`, 404, "job_not_found", ""},
		} {
			assert.Equal(t, c.pointer, a.refuse("POST", c.path+"/extend", c.body, c.status, c.id).Pointer, c.body)
		}
		a.pass(3 * time.Second)
		assert.Equal(t, "in-progress", a.show(path).Status, "it has more time")
		assert.Equal(t, "failed", a.show(once).Status)
		assert.NotEmpty(t, a.show(once).Reason)
		a.require(200, "POST", once, `{"status":"succeeded","attempt":1}`)
		assert.Equal(t, "succeeded", a.show(once).Status, "a late success is taken")

		a.pass(5 * time.Second)
		shown := a.show(path)
		assert.Equal(t, []any{"queued", 2}, []any{shown.Status, shown.Attempts})
		a.require(200, "POST", path, `{"status":"succeeded","attempt":3}`)
		assert.Equal(t, "succeeded", a.show(path).Status, "a late success cancels the retry")
		assert.Empty(t, a.list("/v1/jobs"))
		storetest.RequireAllSound(t, a.Bus)
	})
}

// TestALateFailureIsNotDropped has attempts reported as failed that the deadline has ended, and one
// that was reported as failed before, now as the last: each report is refused, or holds.
func TestALateFailureIsNotDropped(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, redis *rdbtest.Server) {
		a := newJobs(t, redis)
		a.add("ship")
		a.add("bill", atMostOnce)
		const failed, last = `{"status":"failed","attempt":3}`, `{"status":"failed","attempt":3,"retryable":false}`
		path, once := a.put("ship", 1), a.put("bill", 2)
		a.fetch("ship")
		a.fetch("bill")
		a.pass(time.Minute + time.Second)
		a.refuse("POST", path, failed, 409, "stale_attempt")
		require.Equal(t, []any{"queued", 2}, []any{a.show(path).Status, a.show(path).Attempts})
		a.require(200, "POST", path, last)
		require.Equal(t, []any{"failed", 2}, []any{a.show(path).Status, a.show(path).Attempts}, "it says not to retry")
		a.require(200, "POST", path, last)
		a.refuse("POST", path, `{"status":"succeeded","attempt":3}`, 409, "already_reported")
		a.require(200, "POST", once, `{"status":"failed","attempt":1}`)
		a.refuse("POST", once, `{"status":"succeeded","attempt":1}`, 409, "already_reported")

		path = a.put("ship", 3)
		a.fetch("ship")
		a.require(200, "POST", path, failed)
		a.require(200, "POST", path, failed)
		a.require(200, "POST", path, last)
		require.Equal(t, "failed", a.show(path).Status, "it says now not to retry")
		a.require(200, "POST", path, last)

		path = a.put("ship", 4)
		a.fetch("ship")
		a.require(200, "POST", path, failed)
		a.pass(3 * time.Second)
		a.fetch("ship")
		a.refuse("POST", path, last, 409, "already_reported")
		a.require(200, "POST", path, failed)
		require.Equal(t, "in-progress", a.show(path).Status)
		storetest.RequireAllSound(t, a.Bus)
	})
}

// TestAFailedJobSaysWhy reports errors, and has clients see the attempts. Only the operator sees
// the answer of an address that is not public.
func TestAFailedJobSaysWhy(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, redis *rdbtest.Server) {
		a := newJobs(t, redis)
		a.add("ship")
		path := a.put("ship", 1)
		assert.Equal(t, "[]", a.require(200, "GET", path+"/attempts", ""))
		a.fetch("ship")
		a.Ahead = 250 * time.Millisecond
		a.require(200, "POST", path, `{"status":"failed","attempt":3,"error":"no such customer\u001f\u0000 7"}`)
		var shown struct {
			Reason     string
			EnqueuedAt string `json:"enqueued_at"`
			StartedAt  string `json:"started_at"`
			EndedAt    string `json:"ended_at"`
		}
		require.NoError(t, json.Unmarshal([]byte(a.require(200, "GET", path, "")), &shown))
		assert.Equal(t, "no such customer   7", shown.Reason)
		const began, ended = "2026-01-31T18:00:00.123456Z", "2026-01-31T18:00:00.373456Z"
		assert.Equal(t, []string{began, began, ""}, []string{shown.EnqueuedAt, shown.StartedAt, shown.EndedAt})
		failed := `{"attempt":3,"began_at":"` + began + `","ended_at":"` + ended + `","duration":250,"outcome":"failed",
			"status":null,"error":"no such customer   7","excerpt":null}`
		assert.JSONEq(t, "["+failed+"]", a.require(200, "GET", path+"/attempts", ""))
		a.pass(3 * time.Second)
		a.fetch("ship")
		a.require(200, "POST", path, `{"status":"succeeded","attempt":2,"error":"a warning"}`)
		list := a.require(200, "GET", path+"/attempts", "")
		assert.Contains(t, list, `"outcome":"succeeded","status":null,"error":null`)
		assert.Contains(t, list, `"outcome":"failed"`)
		shown.Reason = ""
		require.NoError(t, json.Unmarshal([]byte(a.require(200, "GET", path, "")), &shown))
		assert.Empty(t, shown.Reason)
		assert.Equal(t, "2026-01-31T18:00:03.373456Z", shown.EndedAt)

		a.add("posted", func(t *jobs.Type) { t.URL, t.Pull = "https://posted.example/", false })
		hidden := a.put("posted", 2)
		q, task := a.acquire("worker", start.Add(a.Ahead))
		require.NotNil(t, task)
		_, err := q.Complete(t.Context(), task, queue.Result{Detail: jobs.Outcome{
			Result: jobs.RunFailed, Reason: bus.HidingReason("not taken", "the service answered 500"), Status: 500, Excerpt: "a secret",
		}}, start.Add(a.Ahead))
		require.NoError(t, err)
		assert.Contains(t, a.require(200, "GET", hidden+"/attempts", ""), `"status":null,"error":"not taken","excerpt":null`)
		seen := a.Do(rootKey, "GET", hidden+"/attempts", "").Body
		assert.Contains(t, seen, `"status":500,"error":"the service answered 500","excerpt":"a secret"`)
		silent := a.put("posted", 3)
		q, task = a.acquire("worker", start.Add(a.Ahead))
		require.NotNil(t, task)
		a.Ahead += 2 * time.Second
		_, err = q.Complete(t.Context(), task, queue.Result{Detail: jobs.Outcome{Result: jobs.RunFailed}}, start.Add(a.Ahead))
		require.NoError(t, err)
		assert.Contains(t, a.require(200, "GET", silent+"/attempts", ""), `"ended_at":null,"duration":null,"outcome":"failed","status":null`)
		assert.Contains(t, a.Do(rootKey, "GET", silent+"/attempts", "").Body, `"duration":2000,"outcome":"failed","status":null`)
		a.refuse("GET", "/v1/jobs/ship/"+jobID(9)+"/attempts", "", 404, "not_found")
		a.refuse("POST", path, `{"status":"failed","attempt":2,"error":7}`, 400, "invalid_request")
		storetest.RequireAllSound(t, a.Bus)
	})
}
