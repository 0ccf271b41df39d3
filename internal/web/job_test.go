package web_test

import (
	"encoding/json"
	"io"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store/storetest"
)

func stringReader(text string) io.Reader { return strings.NewReader(text) }

// list requests all pages of a list, and returns the ids of its jobs.
func (a *jobsAPI) list(path string) (ids []string) {
	a.T.Helper()
	next := regexp.MustCompile(`^<([^>]+)>; rel="next"$`)
	for range 100 {
		got := a.Do(bob, "GET", path, "")
		require.Equal(a.T, 200, got.Status, got.Body)
		var page []job
		require.NoError(a.T, json.Unmarshal([]byte(got.Body), &page))
		require.NotNil(a.T, page)
		for _, one := range page {
			ids = append(ids, one.ID)
		}
		link := got.Header.Get("Link")
		if link == "" {
			return ids
		}
		require.Regexp(a.T, next, link)
		path = next.FindStringSubmatch(link)[1]
	}
	require.Fail(a.T, "the list does not end")
	return nil
}

func TestAJobIsLookedUp(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, redis *rdbtest.Server) {
		a := newJobs(t, redis)
		a.add("ship")
		a.add("pay")
		path := a.put("ship", 1)
		for range 2 { // queued, and archived
			assert.Equal(t, a.require(200, "GET", path, ""), a.require(200, "GET", "/v1/jobs/"+jobID(1), ""))
			a.refuse("GET", "/v1/jobs/pay/"+jobID(1), "", 404, "job_not_found")
			a.refuse("DELETE", "/v1/jobs/pay/"+jobID(1), "", 404, "job_not_found")
			a.Do(alice, "DELETE", path, "")
		}
		a.refuse("GET", "/v1/jobs/ship/"+jobID(2), "", 404, "not_found")
		a.refuse("GET", "/v1/jobs/"+jobID(2), "", 404, "not_found")
		a.refuse("GET", "/v1/jobs/job_x", "", 400, "invalid_uuid")
		a.refuse("GET", "/v1/jobs/ship/random_id", "", 404, "not_found")
		a.refuse("GET", path+"/attempts?x=1", "", 400, "invalid_request")
		storetest.RequireAllSound(t, a.Bus)
	})
}

// TestAReplayWithAKeyIsMadeOnce, however often its request is sent; another key, client or job
// makes another.
func TestAReplayWithAKeyIsMadeOnce(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, redis *rdbtest.Server) {
		a := newJobs(t, redis)
		a.add("ship")
		for _, n := range []int{1, 2} {
			a.put("ship", n)
			a.fetch("ship")
			a.require(200, "POST", "/v1/jobs/ship/"+jobID(n), `{"status":"failed","attempt":3,"retryable":false}`)
		}
		replay := func(status int, who, path string, keys ...string) (copied job) {
			got := a.DoOnce(who, "POST", "/v1/jobs/"+path+"/replay", "", keys...)
			require.Equal(t, status, got.Status, got.Body)
			if status == 201 {
				require.NoError(t, json.Unmarshal([]byte(got.Body), &copied))
			}
			return copied
		}
		first := replay(201, alice, "ship/"+jobID(1), "key")
		assert.Equal(t, first, replay(201, alice, "ship/"+jobID(1), "key"))
		assert.Equal(t, first, replay(201, alice, jobID(1), "key"))
		ids := map[string]bool{first.ID: true}
		for _, other := range []job{
			replay(201, alice, "ship/"+jobID(1), "another"), replay(201, bob, "ship/"+jobID(1), "key"),
			replay(201, alice, "ship/"+jobID(2), "key"), replay(201, alice, "ship/"+jobID(1)), replay(201, alice, "ship/"+jobID(1)),
		} {
			assert.False(t, ids[other.ID])
			ids[other.ID] = true
		}
		assert.Len(t, a.list("/v1/jobs"), 6)
		a.fetch("ship")
		a.require(200, "POST", "/v1/jobs/ship/"+first.ID, `{"status":"succeeded","attempt":3}`)
		assert.Equal(t, "succeeded", replay(201, alice, "ship/"+jobID(1), "key").Status, "also if it has ended")
		replay(400, alice, "ship/"+jobID(1), "one", "two")
		replay(400, alice, "ship/"+jobID(1), "not visible")
		storetest.RequireAllSound(t, a.Bus)
	})
}

func TestAJobIsReplayed(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, redis *rdbtest.Server) {
		a := newJobs(t, redis)
		a.add("ship")
		a.add("pay")
		path := "/v1/jobs/ship/" + jobID(1)
		short := "/v1/jobs/" + jobID(1)
		a.require(202, "PUT", path, `{"data":[1.0],"expires_at":"2027-01-01T00:00:00Z"}`)
		a.refuse("POST", path+"/replay", "", 400, "invalid_replay_attempt")
		a.fetch("ship")
		a.require(201, "POST", path+"/replay", "")
		a.require(200, "POST", path, `{"status":"failed","attempt":3,"retryable":false}`)

		a.Ahead += time.Second
		var copied job
		for _, from := range []string{path, short} {
			require.NoError(t, json.Unmarshal([]byte(a.require(201, "POST", from+"/replay", "")), &copied))
			assert.NotEqual(t, jobID(1), copied.ID)
			assert.Equal(t, copied, a.show("/v1/jobs/ship/"+copied.ID))
			assert.Equal(t, []any{"queued", 3, "[1.0]", "2026-01-31T18:00:01.123456Z", "2027-01-01T00:00:00.000000Z"},
				[]any{copied.Status, copied.Attempts, string(copied.Data), copied.RunAfter, *copied.ExpiresAt})
		}
		assert.Contains(t, a.Log.String(), `msg="a job was replayed" request_id=`)
		a.refuse("POST", "/v1/jobs/pay/"+jobID(1)+"/replay", "", 404, "job_not_found")
		a.refuse("POST", "/v1/jobs/ship/"+jobID(2)+"/replay", "", 404, "not_found")
		a.refuse("POST", "/v1/jobs/"+strings.TrimPrefix(jobID(1), "job_")+"/replay", "", 404, "not_found")
		a.refuse("POST", short+"/replay", `[true]`, 400, "invalid_request")
		assert.Len(t, a.list("/v1/jobs"), 3)
		storetest.RequireAllSound(t, a.Bus)
	})
}

func TestAJobIsCancelled(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, redis *rdbtest.Server) {
		a := newJobs(t, redis)
		a.add("ship")
		queued, running, done := a.put("ship", 2), a.put("ship", 1), a.put("ship", 3)
		require.Equal(t, 3, a.fetch("ship"), "the oldest")
		a.require(202, "DELETE", queued, "")
		a.require(204, "DELETE", queued, "")
		a.refuse("POST", queued, `{"status":"succeeded","attempt":3}`, 409, "job_already_archived")
		a.require(204, "DELETE", running, "")
		assert.Equal(t, "cancelled", a.show(running).Status)
		a.require(200, "POST", done, `{"status":"succeeded","attempt":3}`)
		a.refuse("DELETE", done, "", 409, "job_already_archived")
		a.refuse("DELETE", "/v1/jobs/ship/"+jobID(9), "", 404, "not_found")
		assert.Empty(t, a.list("/v1/jobs"))
		assert.Equal(t, 2, strings.Count(a.Log.String(), `msg="a job was cancelled"`))
		storetest.RequireAllSound(t, a.Bus)
	})
}

func TestJobsAreListed(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, redis *rdbtest.Server) {
		a := newJobs(t, redis)
		a.add("ship")
		a.add("bill")
		assert.Equal(t, "[]", a.require(200, "GET", "/v1/archived-jobs", ""))
		for n, name := range []string{"ship", "bill", "ship", "bill", "ship", "ship"} {
			a.put(name, n)
			a.Ahead += time.Millisecond
		}
		a.fetch("ship")
		a.require(204, "DELETE", "/v1/jobs/ship/"+jobID(5), "")
		a.Ahead += time.Millisecond
		a.require(200, "POST", "/v1/jobs/bill/"+jobID(3), `{"status":"failed","attempt":3,"retryable":false}`)
		ids := func(numbers ...int) (ids []string) {
			for _, n := range numbers {
				ids = append(ids, jobID(n))
			}
			return ids
		}
		for query, want := range map[string][]string{
			"jobs":                                          ids(4, 2, 1, 0),
			"jobs?limit=1":                                  ids(4, 2, 1, 0),
			"jobs?name=bill":                                ids(1),
			"jobs?status=in-progress":                       ids(0),
			"jobs?status=queued&name=ship&limit=1":          ids(4, 2),
			"jobs?name=none":                                nil,
			"archived-jobs":                                 ids(3, 5),
			"archived-jobs?limit=1":                         ids(3, 5),
			"archived-jobs?status=cancelled&name=ship":      ids(5),
			"archived-jobs?status=succeeded":                nil,
			"archived-jobs?status=failed&name=ship&limit=1": nil,
		} {
			assert.Equal(t, want, a.list("/v1/"+query), query)
		}
		for query, id := range map[string]string{
			"limit=0": "invalid_parameter", "limit=101": "invalid_parameter", "limit=abc": "invalid_parameter",
			"status=expired": "invalid_parameter", "before=x": "invalid_request", "limit=1&limit=1": "invalid_request",
		} {
			a.refuse("GET", "/v1/jobs?"+query, "", 400, id)
			a.refuse("GET", "/v1/archived-jobs?"+strings.Replace(query, "expired", "queued", 1), "", 400, id)
		}
		storetest.RequireAllSound(t, a.Bus)
	})
}

// TestEveryClientMayDoAllWithJobs sends a request of each route without credentials, as
// another client than the one that enqueued the job, and as the operator.
func TestEveryClientMayDoAllWithJobs(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, redis *rdbtest.Server) {
		a := newJobs(t, redis)
		a.add("ship", limit(2))
		path := a.put("ship", 1)
		for _, r := range []struct {
			method, path, body string
			status             int
		}{
			{"PUT", path, `{"data":2}`, 202},
			{"POST", "/v1/jobs/ship", `[{"id":"` + jobID(1) + `","data":3}]`, 202},
			{"GET", path, "", 200},
			{"GET", "/v1/jobs/" + jobID(1), "", 200},
			{"GET", "/v1/jobs?name=ship", "", 200},
			{"POST", path, `{"status":"succeeded","attempt":3}`, 200},
			{"POST", path + "/extend", `{"attempt":3,"timeout":1000}`, 409},
			{"GET", "/v1/archived-jobs", "", 200},
			{"POST", path + "/replay", "", 201},
			{"POST", "/v1/jobs/" + jobID(1) + "/replay", "", 201},
			{"POST", "/v1/jobs/ship/fetch", "", 200},
			{"DELETE", path, "", 409},
		} {
			assert.Equal(t, 401, a.Do("", r.method, r.path, r.body).Status, r.path)
			for _, who := range []string{bob, rootKey} {
				assert.Equal(t, r.status, a.Do(who, r.method, r.path, r.body).Status, "%s %s as %s", r.method, r.path, who)
			}
		}
		storetest.RequireAllSound(t, a.Bus)
	})
}
