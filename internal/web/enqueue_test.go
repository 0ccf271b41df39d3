package web_test

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/jobs"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store/storetest"
)

// dataOf is a JSON string of so many bytes.
func dataOf(size int) string { return `"` + strings.Repeat("x", size-2) + `"` }

func TestAJobIsEnqueued(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, redis *rdbtest.Server) {
		a := newJobs(t, redis)
		a.add("ship")
		const data = `{"b":1.50,"a":[12345678901234567890,null,{"at":"2016-01-11T18:26:26.000Z"}],"<":1e300}`
		got := a.require(202, "PUT", "/v1/jobs/ship/"+jobID(1), `{"id":"any","data": `+data+`,"run_after":null,"expires_at":"2026-02-01T00:00:00+01:00"}`)
		assert.JSONEq(t, fmt.Sprintf(`{"id":"%s","name":"ship","attempts":3,"status":"queued","run_after":"2026-01-31T18:00:00.123456Z",
			"expires_at":"2026-01-31T23:00:00.000000Z","created_at":"2026-01-31T18:00:00.123456Z","updated_at":"2026-01-31T18:00:00.123456Z",
			"enqueued_at":"2026-01-31T18:00:00.123456Z","data":0,"auto_id":%d}`, jobID(1), start.UnixMicro()), strings.Replace(got, data, "0", 1))
		var shown job
		require.NoError(t, json.Unmarshal([]byte(got), &shown))
		stored, err := a.jobs.Job(t.Context(), "ship", jobs.ID(strings.TrimPrefix(jobID(1), "job_")))
		require.NoError(t, err)
		assert.Equal(t, data, string(stored.Data), "to the letter")

		again := a.require(202, "PUT", "/v1/jobs/ship/"+strings.ToUpper(strings.TrimPrefix(jobID(1), "job_")), `{"data":2}`)
		assert.Equal(t, got, again, "it is the job that is queued")
		for _, path := range []string{"/v1/jobs/ship/" + jobID(1), "/v1/jobs/" + jobID(1)} {
			assert.Equal(t, got, a.require(200, "GET", path, ""))
		}
		a.refuse("PUT", "/v1/jobs/pay/"+jobID(1), `{"data":2}`, 404, "job_type_not_found")
		a.add("pay")
		a.refuse("PUT", "/v1/jobs/pay/"+jobID(1), `{"data":2}`, 404, "job_not_found")

		random := map[string]bool{}
		for range 2 {
			require.NoError(t, json.Unmarshal([]byte(a.require(202, "PUT", "/v1/jobs/ship/random_id", `{"data":null}`)), &shown))
			random[shown.ID] = true
		}
		assert.Len(t, random, 2)
		a.require(202, "PUT", "/v1/jobs/ship/"+jobID(2), `{"data":`+dataOf(jobs.MaxData)+`}`)
		past := a.require(202, "PUT", "/v1/jobs/ship/"+jobID(3), `{"data":1,"run_after":"0001-01-01t00:00:00z","expires_at":"2026-01-31T17:59:30Z"}`)
		assert.Contains(t, past, `"run_after":"1970-01-01T00:00:00.001000Z","expires_at":"2026-01-31T17:59:30.000000Z"`)

		assert.Contains(t, a.require(202, "PUT", "/v1/jobs/meta.shutdown/random_id", `{"data":{}}`), `"name":"meta.shutdown"`)
		assert.Len(t, a.list("/v1/jobs"), 5, "nothing came of that")
		storetest.RequireAllSound(t, a.Bus)
	})
}

func TestAJobIsRefused(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, redis *rdbtest.Server) {
		a := newJobs(t, redis)
		a.add("ship")
		tooMuch := dataOf(jobs.MaxData + 1)
		for _, c := range []struct {
			path, body  string
			status      int
			id, pointer string
		}{
			{"/ship/" + jobID(1), ``, 400, "invalid_request", ""},
			{"/ship/" + jobID(1), `{"data":`, 400, "invalid_request", ""},
			{"/ship/" + jobID(1), `[]`, 400, "invalid_request", ""},
			{"/ship/" + jobID(1), `{"run_after":"tomorrow"}`, 400, "invalid_request", "/run_after"},
			{"/ship/" + jobID(1), `{"data":1,"expires_at":1}`, 400, "invalid_request", "/expires_at"},
			{"/ship/" + jobID(1), `{"data":1,"expires_at":"0001-01-01T00:00:00Z"}`, 400, "invalid_request", "/expires_at"},
			{"/ship/" + jobID(1), `{"data":1,"expires_at":"2026-01-31T17:58:00Z"}`, 400, "invalid_request", "/expires_at"},
			{"/ship/" + jobID(1), `{"data":1,"run_after":"2026-02-01T00:00:00Z","expires_at":"2026-02-01T00:00:00Z"}`, 400, "invalid_request", "/expires_at"},
			{"/ship/random_id", `{"data":1,"run_after":"2026-01-31T18:00:10Z","expires_at":"2026-01-31T18:00:05Z"}`, 400, "invalid_request", "/expires_at"},
			{"/ship/" + jobID(1), `{"data":1,"run_after":"2026-01-31T8:00:00Z"}`, 400, "invalid_request", "/run_after"},
			{"/ship/" + jobID(1), `{}`, 400, "missing_parameter", "/data"},
			{"/ship/job_" + strings.Repeat("z", 36), `{}`, 400, "missing_parameter", "/data"},
			{"/ship/job_" + strings.Repeat("z", 36), `{"data":` + tooMuch + `}`, 400, "invalid_uuid", ""},
			{"/ship/" + strings.Replace(jobID(1), "job_", "usr_", 1), `{"data":1}`, 400, "invalid_prefix", ""},
			{"/ship/job_1", `{"data":1}`, 404, "not_found", ""},
			{"/ship/" + strings.Repeat("1", 41), `{"data":1}`, 404, "not_found", ""},
			{"/none/" + jobID(1), `{"data":` + tooMuch + `}`, 413, "entity_too_large", "/data"},
			{"/none/" + jobID(1), `{"data":1,"x":` + dataOf(2*jobs.MaxData+8<<10) + `}`, 413, "entity_too_large", ""},
			{"/none/" + jobID(1), `{"data":` + strings.Repeat("[", 1001) + strings.Repeat("]", 1001) + `}`, 400, "invalid_parameter", "/data"},
			{"/none/" + jobID(1), `{"data":1}`, 404, "job_type_not_found", ""},
			{"/No%20ne/" + jobID(1), `{"data":1}`, 404, "job_type_not_found", ""},
		} {
			path := strings.Replace("/v1/jobs"+c.path, "%20", " ", 1)
			got := a.Problem(alice, "PUT", "/v1/jobs"+c.path, c.body)
			body := c.body[:min(len(c.body), 60)]
			assert.Equal(t, c.status, got.Status, "%s %s: %s", c.path, body, got.Detail)
			assert.Equal(t, c.id, got.ID, "%s %s", c.path, body)
			assert.Equal(t, c.pointer, got.Pointer, "%s %s", c.path, body)
			assert.Equal(t, path, got.Instance)
		}
		path := a.put("ship", 1)
		a.require(204, "DELETE", path, "")
		a.refuse("PUT", path, `{"data":1}`, 400, "job_already_archived")
		assert.Empty(t, a.list("/v1/jobs"))
		storetest.RequireAllSound(t, a.Bus)
	})
}

func TestManyJobsAreEnqueuedOrNone(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, redis *rdbtest.Server) {
		a := newJobs(t, redis)
		a.add("ship")
		a.add("pay")
		one := func(n int, more string) string { return fmt.Sprintf(`{"id":"%s","data":%d%s}`, jobID(n), n, more) }
		got := a.require(202, "POST", "/v1/jobs/ship", `[`+one(2, `,"expires_at":null`)+`,`+one(1, `,"run_after":"2026-02-01T00:00:00Z"`)+`]`)
		var list []job
		require.NoError(t, json.Unmarshal([]byte(got), &list))
		require.Len(t, list, 2)
		assert.Equal(t, []string{jobID(2), jobID(1)}, []string{list[0].ID, list[1].ID})
		assert.Equal(t, "2026-02-01T00:00:00.000000Z", list[1].RunAfter)
		assert.Equal(t, got, a.require(202, "POST", "/v1/jobs/ship", `[`+one(2, "")+`,`+one(1, "")+`]`), "they are queued")
		a.Ahead += time.Millisecond
		a.put("pay", 8)
		a.require(204, "DELETE", a.put("ship", 9), "")

		for _, c := range []struct {
			path, body  string
			status      int
			id, pointer string
		}{
			{"/ship", `{"data":1}`, 400, "invalid_request", ""},
			{"/ship", `[]`, 400, "invalid_request", ""},
			{"/ship", `[` + one(3, "") + `,1]`, 400, "invalid_request", "/1"},
			{"/ship", `[` + one(3, "") + `,` + one(4, `,"run_after":"now"`) + `]`, 400, "invalid_request", "/1/run_after"},
			{"/ship", `[` + one(2, `,"expires_at":"2026-01-01T00:00:00Z"`) + `,` + one(4, `,"expires_at":"2026-01-01T00:00:00Z"`) + `]`, 400, "invalid_request", "/1/expires_at"},
			{"/ship", `[` + one(3, `,"run_after":"2026-03-01T00:00:00Z","expires_at":"2026-02-01T00:00:00Z"`) + `]`, 400, "invalid_request", "/0/expires_at"},
			{"/ship", `[` + one(3, "") + `,` + one(9, `,"expires_at":"2026-01-01T00:00:00Z"`) + `]`, 400, "job_already_archived", "/1/id"},
			{"/ship", `[` + one(3, "") + `,{"id":"` + jobID(4) + `"}]`, 400, "missing_parameter", "/1/data"},
			{"/ship", `[` + one(3, "") + `,{"data":1}]`, 400, "missing_parameter", "/1/id"},
			{"/ship", `[` + one(3, "") + `,{"data":1,"id":4}]`, 400, "invalid_request", "/1/id"},
			{"/ship", `[` + one(3, "") + `,{"data":1,"id":"random_id"}]`, 400, "invalid_uuid", "/1/id"},
			{"/ship", `[` + one(3, "") + `,` + one(4, "") + `,` + one(3, "") + `]`, 400, "invalid_request", "/2/id"},
			{"/ship", `[` + one(3, "") + `,{"id":"` + jobID(4) + `","data":` + strings.Repeat("[", 101) + strings.Repeat("]", 101) + `}]`, 400, "invalid_parameter", "/1/data"},
			{"/ship", `[` + one(3, "") + `,{"id":"` + jobID(4) + `","data":` + dataOf(jobs.MaxData+1) + `}]`, 413, "entity_too_large", "/1/data"},
			{"/ship", `[` + strings.Repeat(one(3, "")+",", jobs.MaxBulk) + one(3, "") + `]`, 400, "invalid_request", ""},
			{"/ship", `[` + strings.Repeat(" ", 4<<20) + `]`, 413, "entity_too_large", ""},
			{"/none", `[` + one(3, "") + `]`, 404, "job_type_not_found", ""},
			{"/ship", `[` + one(3, "") + `,` + one(8, "") + `]`, 404, "job_not_found", "/1/id"},
			{"/ship", `[` + one(3, "") + `,` + one(9, "") + `]`, 400, "job_already_archived", "/1/id"},
		} {
			got := a.refuse("POST", "/v1/jobs"+c.path, c.body, c.status, c.id)
			assert.Equal(t, c.pointer, got.Pointer, c.body[:min(len(c.body), 200)])
		}
		assert.Equal(t, []string{jobID(8), jobID(1), jobID(2)}, a.list("/v1/jobs"), "nothing else was stored")
		storetest.RequireAllSound(t, a.Bus)
	})
}

// TestDataIsMeasuredWithoutSpaces sends data as PostgreSQL prints it, wherever there is data.
func TestDataIsMeasuredWithoutSpaces(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, redis *rdbtest.Server) {
		a := newJobs(t, redis)
		a.add("ship")
		compact := "[" + strings.Repeat("1,", jobs.MaxData/2-2) + "12]"
		require.Len(t, compact, jobs.MaxData)
		spaced := strings.ReplaceAll(compact, ",", ", ")
		require.Greater(t, len(spaced), jobs.MaxData+40_000)
		a.require(202, "PUT", "/v1/jobs/ship/"+jobID(1), `{"data": `+spaced+`}`)
		a.require(202, "POST", "/v1/jobs/ship", `[{"id": "`+jobID(2)+`", "data": `+spaced+`}]`)
		a.require(201, "POST", "/v2/job-types", newType("daily", `,"schedule":"0 6 * * *","schedule_data":`+spaced))
		a.require(202, "PUT", "/v1/jobs/ship/"+jobID(3), `{"data": [ 1.50 ]}`)
		for n, want := range []string{compact, compact, "[ 1.50 ]"} {
			stored, err := a.jobs.Job(t.Context(), "ship", jobs.ID(strings.TrimPrefix(jobID(n+1), "job_")))
			require.NoError(t, err)
			assert.Equal(t, want, string(stored.Data))
		}
		got := a.refuse("PUT", "/v1/jobs/ship/"+jobID(4), `{"data":[ `+dataOf(jobs.MaxData-1)+`]}`, 413, "entity_too_large")
		assert.Equal(t, "/data", got.Pointer)
		assert.Contains(t, got.Detail, "102401 bytes without white space")
		storetest.RequireAllSound(t, a.Bus)
	})
}

// TestARequestIsRepeatedAfterItsJobHasExpired gets the job, as any repeated request, or learns that
// it has ended.
func TestARequestIsRepeatedAfterItsJobHasExpired(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, redis *rdbtest.Server) {
		a := newJobs(t, redis)
		a.add("ship", limit(2))
		const expires = `"expires_at":"2026-01-31T18:30:00Z","data":1}`
		ran := a.require(202, "PUT", "/v1/jobs/ship/"+jobID(1), `{`+expires)
		a.fetch("ship")
		a.require(202, "POST", "/v1/jobs/ship", `[{"id":"`+jobID(2)+`","run_after":"2026-01-31T18:20:00Z",`+expires+`]`)
		a.Ahead = time.Hour
		again := a.require(202, "PUT", "/v1/jobs/ship/"+jobID(1), `{`+expires)
		assert.Equal(t, strings.Replace(ran, "queued", "in-progress", 1)[:100], again[:100])
		both := `[{"id":"` + jobID(1) + `",` + expires + `,{"id":"` + jobID(2) + `","run_after":"2026-02-20T18:20:00Z",` + expires + `]`
		var list []job
		require.NoError(t, json.Unmarshal([]byte(a.require(202, "POST", "/v1/jobs/ship", both)), &list))
		assert.Equal(t, []string{"in-progress", "queued"}, []string{list[0].Status, list[1].Status})
		a.require(204, "DELETE", "/v1/jobs/ship/"+jobID(2), "")
		a.refuse("PUT", "/v1/jobs/ship/"+jobID(2), `{`+expires, 400, "job_already_archived")
		assert.Equal(t, "/1/id", a.refuse("POST", "/v1/jobs/ship", both, 400, "job_already_archived").Pointer)
		assert.Equal(t, "/expires_at", a.refuse("PUT", "/v1/jobs/ship/"+jobID(3), `{`+expires, 400, "invalid_request").Pointer)
		storetest.RequireAllSound(t, a.Bus)
	})
}

// endless is a body without an end; read counts the bytes read.
type endless struct{ read int }

func (e *endless) Read(into []byte) (int, error) {
	for i := range into {
		into[i] = ' '
	}
	e.read += len(into)
	return len(into), nil
}

func TestABodyThatIsTooLargeIsNotReadToItsEnd(t *testing.T) {
	a := newJobs(t, rdbtest.Embedded(t))
	body := &endless{}
	r := httptest.NewRequestWithContext(t.Context(), "PUT", "/v1/jobs/ship/random_id", body)
	a.Authorize(r, alice)
	w := httptest.NewRecorder()
	a.Handler.ServeHTTP(w, r)
	assert.Equal(t, 413, w.Code)
	assert.Less(t, body.read, 3*jobs.MaxData)
}
