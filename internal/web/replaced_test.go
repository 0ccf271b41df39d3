package web_test

import (
	"encoding/json"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/jobs"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store/storetest"
	"routemaster/internal/web"
)

// send sends a body that is not as documented, and requires a status: openapi.json cannot describe
// names in other cases.
func (a *jobsAPI) send(status int, method, path, body string) {
	a.T.Helper()
	r := httptest.NewRequestWithContext(a.T.Context(), method, path, strings.NewReader(body))
	a.Authorize(r, alice)
	w := httptest.NewRecorder()
	a.Handler.ServeHTTP(w, r)
	require.Equal(a.T, status, w.Code, "%s %s %s: %s", method, path, body, w.Body)
}

// TestWhatServicesOfTheReplacedServiceSend sends bodies with other members and in other cases, on
// each path that the bus has from the job service that it replaces.
func TestWhatServicesOfTheReplacedServiceSend(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, redis *rdbtest.Server) {
		a := newJobs(t, redis, func(c *web.Config) { c.Jobs.Downstream = true })
		a.send(201, "POST", "/v1/jobs", `{"Name":"ship","Delivery_Strategy":"at_least_once","ATTEMPTS":7,"concurrency":1,"created_at":"x"}`)
		path := "/v1/jobs/ship/" + jobID(1)
		a.send(202, "PUT", path, `{"Data":{"A":1,"a":2},"RUN_AFTER":"2026-01-31T18:00:00Z","runafter":7,"priority":1,"id":5}`)
		shown := a.show(path)
		assert.JSONEq(t, `{"A":1,"a":2}`, string(shown.Data), "data is the client's own")
		assert.Equal(t, "2026-01-31T18:00:00.000000Z", shown.RunAfter)
		a.send(200, "POST", path, `{"data":{"Attempt":9},"Attempt":7,"Status":"failed","Retryable":true}`)
		assert.Equal(t, 6, a.show(path).Attempts)
		a.send(200, "POST", path, `{"Attempt":6,"Status":"failed","RETRYABLE":false,"error":null}`)
		assert.Equal(t, "failed", a.show(path).Status)
		a.send(201, "POST", path+"/replay", `{"reason":"again"}`)
		a.send(201, "POST", "/v1/jobs/"+jobID(1)+"/replay", `{"Attempt":1}`)
		a.send(202, "POST", "/v1/jobs/ship", `[{"ID":"`+jobID(2)+`","Data":1,"x":2}]`)

		for _, c := range []struct{ method, path, body, pointer string }{
			{"POST", path, `{"attempt":7,"Attempt":6,"status":"failed"}`, "/Attempt"},
			{"POST", path, `{"Attempt":"7","status":"failed"}`, "/Attempt"},
			{"POST", path + "/replay", `[1]`, ""},
			{"PATCH", "/v2/job-types/ship", `{"Paused":true}`, "/Paused"},
			{"POST", "/v2/job-types", `{"x":1}`, "/x"},
		} {
			assert.Equal(t, c.pointer, a.refuse(c.method, c.path, c.body, 400, "invalid_request").Pointer, c.body)
		}
		storetest.RequireAllSound(t, a.Bus)
	})
}

// TestQueriesOfTheReplacedService has names in queries that the bus does not know: they are ignored
// where that service ignores them, and refused in requests that it does not have.
func TestQueriesOfTheReplacedService(t *testing.T) {
	a := newJobs(t, rdbtest.Embedded(t))
	a.send(201, "POST", "/v1/jobs?foo=1", `{"name":"ship","delivery_strategy":"at_least_once","attempts":3,"concurrency":1,"url":null}`)
	path := "/v1/jobs/ship/" + jobID(1)
	a.send(202, "PUT", path+"?foo=1&foo=2", `{"data":1}`)
	for _, shown := range []string{"/v1/jobs/ship", path, "/v1/jobs/" + jobID(1), "/v1/archived-jobs"} {
		a.send(200, "GET", shown+"?foo=1", "")
	}
	a.send(400, "GET", "/v1/archived-jobs?foo=1&limit=0", "")
	for _, own := range []string{"/v1/jobs", "/v2/job-types", "/v2/job-types/ship", path + "/attempts"} {
		a.send(400, "GET", own+"?foo=1", "")
	}
	a.send(400, "POST", "/v1/jobs/ship/fetch?foo=1", `{}`)
	a.send(400, "DELETE", path+"?foo=1", "")
	a.fetch("ship")
	a.send(200, "POST", path+"?foo=1", `{"status":"succeeded","attempt":3}`)
	a.send(201, "POST", path+"/replay?foo=1", "")
	a.send(201, "POST", "/v1/jobs/"+jobID(1)+"/replay?foo=1", "")
}

// TestTypeNamesOfTheReplacedService takes types whose names only that service allowed through
// everything that types do.
func TestTypeNamesOfTheReplacedService(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, redis *rdbtest.Server) {
		a := newJobs(t, redis)
		for i, name := range []string{"Invoice", "mail:daily", "mail:failed", "_x-", strings.Repeat("Long.", 51)} {
			a.require(201, "POST", "/v1/jobs", `{"name":"`+name+`","delivery_strategy":"at_least_once","attempts":1,"concurrency":5,"url":null}`)
			for _, written := range []string{name, strings.ReplaceAll(url.QueryEscape(name), "_", "%5F")} {
				assert.Contains(t, a.require(200, "GET", "/v2/job-types/"+written, ""), `"name":"`+name+`"`)
			}
			path := a.put(name, 2*i)
			assert.Equal(t, 1, a.fetch(name))
			a.require(200, "POST", path, `{"status":"failed","attempt":1}`)
			var listed []job
			require.NoError(t, json.Unmarshal([]byte(a.require(200, "GET", "/v1/archived-jobs?name="+url.QueryEscape(name), "")), &listed))
			require.Len(t, listed, 1)
			assert.Equal(t, name, listed[0].Name)
			a.put(name, 2*i+1)
			a.require(409, "DELETE", "/v2/job-types/"+name, "")
		}
		storetest.RequireAllSound(t, a.Bus)
		require.Error(t, jobs.TypeName("a/b").Validate())
	})
}
