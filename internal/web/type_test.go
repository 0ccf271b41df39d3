package web_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/clock"
	"routemaster/internal/jobs"
	"routemaster/internal/overview"
	"routemaster/internal/overview/samples"
	"routemaster/internal/queue"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/web"
	"routemaster/internal/web/webtest"
)

// both are the paths that types are made at; below them, and a name, they are shown.
var both = map[string]string{"/v1/jobs": "/v1/jobs/", "/v2/job-types": "/v2/job-types/"}

// newType is the body of a request that makes a type, with other members behind its name.
func newType(name, others string) string {
	return fmt.Sprintf(`{"name":%q,"delivery_strategy":"at_least_once","attempts":7,"concurrency":3%s}`, name, others)
}

// typeView is a type as the API shows it.
type typeView struct {
	Name         string
	Strategy     string `json:"delivery_strategy"`
	Attempts     int
	Concurrency  int
	URL          *string
	Timeout      int
	Retention    int
	Paused       bool
	Schedule     *string
	Timezone     *string
	ScheduleData json.RawMessage `json:"schedule_data"`
	Clients      []string
	Owner        string
	CreatedAt    time.Time  `json:"created_at"`
	UpdatedAt    time.Time  `json:"updated_at"`
	HeldUntil    *time.Time `json:"held_until"`
	NextAt       *string    `json:"next_at"`
	Counts       struct {
		Queued, Waiting int
		InProgress      int `json:"in_progress"`
	}
	Causes []string
}

// requireType sends a request that is answered with a type.
func (a jobsAPI) requireType(status int, who, method, path, body string) (view typeView) {
	a.T.Helper()
	got := a.Do(who, method, path, body)
	require.Equal(a.T, status, got.Status, got.Body)
	require.NoError(a.T, json.Unmarshal([]byte(got.Body), &view))
	return view
}

func TestATypeIsMadeAndShown(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, redis *rdbtest.Server) {
		a := newJobsAPI(t, redis)
		now := time.Date(2026, 11, 22, 10, 44, 0, 123456789, time.UTC)
		a.Clock = func() time.Time { return now }
		for collection, one := range both {
			name := fmt.Sprintf("invoice-%d", len(one))
			made := a.requireType(201, alice, "POST", collection, newType(name, ""))
			empty := ""
			assert.Equal(t, typeView{
				Name: name, Strategy: "at_least_once", Attempts: 7, Concurrency: 3, URL: &empty, Timeout: 300_000,
				Retention: 604_800, ScheduleData: json.RawMessage("null"), Causes: []string{}, Owner: "alice",
				CreatedAt: now.Truncate(time.Microsecond), UpdatedAt: now.Truncate(time.Microsecond),
			}, made)
			for _, who := range []string{alice, bob, rootKey} {
				assert.Equal(t, made, a.requireType(200, who, "GET", one+name, ""))
			}
			twice := a.Problem(alice, "POST", collection, newType(name, ""))
			assert.Equal(t, []any{400, "invalid_parameter", "/name", collection}, []any{twice.Status, twice.ID, twice.Pointer, twice.Instance})
			unknown := a.Problem(alice, "GET", one+"unknown", "")
			assert.Equal(t, []any{404, "job_type_not_found", one + "unknown"}, []any{unknown.Status, unknown.ID, unknown.Instance})
		}
		assert.Equal(t, "root", a.requireType(201, rootKey, "POST", "/v1/jobs", newType("roots", "")).Owner)
	})
}

func TestAllMembersOfAType(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, redis *rdbtest.Server) {
		a := newJobsAPI(t, redis)
		made := a.requireType(201, alice, "POST", "/v2/job-types", `{"name":"a","delivery_strategy":"at_most_once","attempts":1,"concurrency":32767,
			"url":"https://jobs.example/a?b=<c>","timeout":1000,"retention":0,"paused":true,"schedule":"0 6 * * *","timezone":"Europe/Berlin",
			"schedule_data":{"b":12345678901234567890.10,"a":null}}`)
		assert.Equal(t, "https://jobs.example/a?b=<c>", *made.URL)
		assert.Equal(t, []any{"at_most_once", 1, 32767, 1000, 0, true}, []any{made.Strategy, made.Attempts, made.Concurrency, made.Timeout, made.Retention, made.Paused})
		assert.Equal(t, []string{"0 6 * * *", "Europe/Berlin"}, []string{*made.Schedule, *made.Timezone})
		assert.Equal(t, `{"b":12345678901234567890.10,"a":null}`, string(made.ScheduleData))
		assert.Equal(t, made.Attempts, a.requireType(200, bob, "GET", "/v1/jobs/a", "").Attempts)

		pulled := a.requireType(201, alice, "POST", "/v1/jobs", newType("pulled", `,"url":null,"timeout":null,"paused":null,"schedule":null,"schedule_data":null`))
		assert.Nil(t, pulled.URL)
		assert.Equal(t, 300_000, pulled.Timeout)
		stored, err := a.jobs.Type(t.Context(), "pulled")
		require.NoError(t, err)
		assert.True(t, stored.Pull)
	})
}

// TestTypesAreRefused checks the reading of requests; the rules of a type have a test of their own.
func TestTypesAreRefused(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, redis *rdbtest.Server) {
		deny, err := bus.ParseDenyList(bus.DefaultDeny)
		require.NoError(t, err)
		a := newJobsAPI(t, redis, func(c *web.Config) { c.Jobs.Deny, c.Jobs.Downstream = deny, false })
		for _, c := range []struct {
			body        string
			status      int
			id, pointer string
		}{
			{``, 400, "invalid_request", ""},
			{`{`, 400, "invalid_request", ""},
			{`[]`, 400, "invalid_request", ""},
			{`{"attempts":"7"}`, 400, "invalid_request", "/attempts"},
			{`{"attempts":32768}`, 400, "invalid_request", "/attempts"},
			{`{"concurrency":1.5}`, 400, "invalid_request", "/concurrency"},
			{`{"name":7}`, 400, "invalid_request", "/name"},
			{`{}`, 400, "missing_parameter", "/name"},
			{`{"name":"","delivery_strategy":"","attempts":7,"concurrency":3}`, 400, "missing_parameter", "/name"},
			{`{"name":null}`, 400, "missing_parameter", "/name"},
			{`{"name":"meta.shutdown"}`, 400, "forbidden_parameter", "/name"},
			{`{"name":"a"}`, 400, "missing_parameter", "/delivery_strategy"},
			{`{"name":"a","delivery_strategy":"foo"}`, 400, "invalid_delivery_strategy", "/delivery_strategy"},
			{`{"name":"a","delivery_strategy":"at_most_once","attempts":7}`, 400, "invalid_attempts", "/attempts"},
			{`{"name":"a","delivery_strategy":"at_most_once","attempts":0}`, 400, "invalid_parameter", "/attempts"},
			{`{"name":"a","delivery_strategy":"at_least_once","attempts":-7,"concurrency":3}`, 400, "invalid_parameter", "/attempts"},
			{`{"name":"a","delivery_strategy":"at_least_once","attempts":7}`, 400, "invalid_parameter", "/concurrency"},
			{newType("a", ``), 400, "missing_parameter", "/url"},
			{newType("a", `,"url":"http://a.example/"`), 400, "invalid_parameter", "/url"},
			{newType("a", `,"url":"https://127.0.0.1/"`), 400, "invalid_parameter", "/url"},
			{newType("a", `,"url":null,"timeout":9223372036854775807`), 400, "invalid_parameter", "/timeout"},
			{newType("a", `,"url":null,"retention":-9223372036854775808`), 400, "invalid_parameter", "/retention"},
			{newType("a", `,"url":null,"schedule":"* * *"`), 400, "invalid_parameter", "/schedule"},
			{newType("a", `,"url":null,"schedule":"* * * * *","schedule_data":"`+strings.Repeat("x", jobs.MaxData)+`"`), 400, "invalid_parameter", "/schedule_data"},
			{newType("a", `,"schedule_data":"`+strings.Repeat("x", 300_000)+`"`), 413, "entity_too_large", ""},
		} {
			for collection := range both {
				got := a.Problem(alice, "POST", collection, c.body)
				assert.Equal(t, []any{c.status, c.id, c.pointer, collection}, []any{got.Status, got.ID, got.Pointer, got.Instance}, "%.100s: %s", c.body, got.Detail)
			}
		}
		assert.Equal(t, "[]", a.Do(alice, "GET", "/v2/job-types", "").Body, "nothing was made")
	})
}

func TestTypesAreListed(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, redis *rdbtest.Server) {
		a := newJobsAPI(t, redis)
		assert.Equal(t, "[]", a.Do(alice, "GET", "/v2/job-types", "").Body)
		for _, name := range []string{"b", "c", "a"} {
			a.Ahead += time.Second
			a.requireType(201, alice, "POST", "/v2/job-types", newType(name, ""))
		}
		var queued []jobs.NewJob
		for range 5 {
			queued = append(queued, jobs.NewJob{ID: jobs.NewID(), Data: []byte("1")})
		}
		_, err := a.jobs.Of("c").Enqueue(t.Context(), "c", queued, "", time.Now())
		require.NoError(t, err)
		var list []typeView
		require.NoError(t, json.Unmarshal([]byte(a.Do(bob, "GET", "/v2/job-types", "").Body), &list))
		require.Len(t, list, 3)
		assert.Equal(t, []string{"a", "c", "b"}, []string{list[0].Name, list[1].Name, list[2].Name})
		assert.Equal(t, 5, list[1].Counts.Queued)
		assert.Equal(t, 2, list[1].Counts.Waiting, "of 5, 3 may be in progress")
		alone := a.requireType(200, bob, "GET", "/v1/jobs/c", "")
		assert.Equal(t, "null", string(alone.ScheduleData))
		alone.ScheduleData = nil
		assert.Equal(t, list[1], alone)
		assert.Zero(t, list[0].Counts)
	})
}

func TestATypeIsChanged(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, redis *rdbtest.Server) {
		a := newJobsAPI(t, redis)
		made := a.requireType(201, alice, "POST", "/v2/job-types",
			newType("a", `,"url":"https://a.example/","timeout":2000,"schedule":"* * * * *","timezone":"UTC","schedule_data":7`))
		a.Ahead = time.Hour
		change := func(who, body string) typeView { return a.requireType(200, who, "PATCH", "/v2/job-types/a", body) }

		same := change(alice, `{}`)
		assert.WithinDuration(t, made.CreatedAt.Add(time.Hour), same.UpdatedAt, time.Minute)
		same.UpdatedAt, same.NextAt = made.UpdatedAt, made.NextAt
		assert.Equal(t, made, same)

		changed := change(rootKey, `{"name":"a","attempts":9,"concurrency":1,"paused":true,"timeout":null,"retention":60}`)
		assert.Equal(t, []any{9, 1, true, 300_000, 60, "alice"},
			[]any{changed.Attempts, changed.Concurrency, changed.Paused, changed.Timeout, changed.Retention, changed.Owner})
		assert.Equal(t, "https://a.example/", *changed.URL)
		assert.Equal(t, changed, a.requireType(200, bob, "GET", "/v2/job-types/a", ""))

		assert.Nil(t, change(alice, `{"url":null}`).URL)
		assert.Empty(t, *change(alice, `{"url":""}`).URL, "below DOWNSTREAM_URL")
		unscheduled := change(alice, `{"schedule":null}`)
		assert.Nil(t, unscheduled.Schedule)
		assert.Nil(t, unscheduled.Timezone)
		assert.Equal(t, "null", string(unscheduled.ScheduleData))
	})
}

func TestChangesAreRefused(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, redis *rdbtest.Server) {
		a := newJobsAPI(t, redis)
		made := a.requireType(201, alice, "POST", "/v2/job-types", newType("a", ""))
		for _, c := range []struct {
			who, name, body string
			status          int
			id, pointer     string
		}{
			{alice, "a", `{"attempts":0}`, 400, "invalid_parameter", "/attempts"},
			{alice, "a", `{"attempts":null}`, 400, "invalid_parameter", "/attempts"},
			{alice, "a", `{"delivery_strategy":null}`, 400, "missing_parameter", "/delivery_strategy"},
			{alice, "a", `{"delivery_strategy":"at_most_once"}`, 400, "invalid_attempts", "/attempts"},
			{alice, "a", `{"name":"b"}`, 400, "forbidden_parameter", "/name"},
			{alice, "a", `{"created_at":"2026-11-22T10:44:00Z"}`, 400, "invalid_request", "/created_at"},
			{alice, "a", `{"url":"http://a.example"}`, 400, "invalid_parameter", "/url"},
			{alice, "a", `{"timezone":"UTC"}`, 400, "invalid_parameter", "/timezone"},
			{alice, "a", ``, 400, "invalid_request", ""},
			{bob, "a", `{"attempts":0}`, 403, "forbidden", ""},
			{bob, "b", `{"paused":true}`, 404, "job_type_not_found", ""},
		} {
			got := a.Problem(c.who, "PATCH", "/v2/job-types/"+c.name, c.body)
			assert.Equal(t, []any{c.status, c.id, c.pointer}, []any{got.Status, got.ID, got.Pointer}, c.body)
		}
		assert.Equal(t, made, a.requireType(200, alice, "GET", "/v2/job-types/a", ""), "nothing was changed")
	})
}

// TestATypeWithoutItsServiceCanBePaused pauses a type after the bus lost its default service.
func TestATypeWithoutItsServiceCanBePaused(t *testing.T) {
	a := newJobsAPI(t, rdbtest.Embedded(t), func(c *web.Config) { c.Jobs.Downstream = false })
	now := time.Now()
	require.NoError(t, a.jobs.CreateType(t.Context(), jobs.Type{
		Name: "a", Strategy: jobs.AtLeastOnce, Attempts: 1, Concurrency: 1, Timeout: time.Minute, Owner: "alice", CreatedAt: now, UpdatedAt: now,
	}))
	assert.True(t, a.requireType(200, alice, "PATCH", "/v2/job-types/a", `{"paused":true}`).Paused)
	assert.Equal(t, "/url", a.Problem(alice, "PATCH", "/v2/job-types/a", `{"url":""}`).Pointer)
}

// TestATypeSaysWhenItsScheduleComesNext, so that a rule can be checked; start is a Saturday.
func TestATypeSaysWhenItsScheduleComesNext(t *testing.T) {
	a := newJobs(t, rdbtest.Embedded(t))
	for i, c := range []struct{ more, want string }{
		{`,"schedule":"0 6 * * *"`, "2026-02-01T06:00:00.000000Z"},
		{`,"schedule":"0 6 * * *","timezone":"Asia/Kolkata"`, "2026-02-01T00:30:00.000000Z"},
		{`,"schedule":"0 0 */2 * mon","paused":true`, "2026-02-09T00:00:00.000000Z"},
	} {
		name := fmt.Sprint("next", i)
		made := a.requireType(201, alice, "POST", "/v1/jobs", newType(name, `,"url":null`+c.more))
		assert.Equal(t, &c.want, made.NextAt, c.more)
		shown := a.requireType(200, alice, "GET", "/v2/job-types/"+name, "")
		assert.Equal(t, &c.want, shown.NextAt, c.more)
	}
	changed := a.requireType(200, alice, "PATCH", "/v2/job-types/next0", `{"schedule":null}`)
	assert.Nil(t, changed.NextAt)
}

// TestTypesAreListedInPages without the data of their schedules.
func TestTypesAreListedInPages(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, redis *rdbtest.Server) {
		a := newJobsAPI(t, redis)
		data := `"` + strings.Repeat("x", 100_000) + `"`
		for i := range 5 {
			a.requireType(201, alice, "POST", "/v2/job-types",
				newType(fmt.Sprint("t", i), `,"schedule":"0 6 * * *","schedule_data":`+data))
		}
		read := func(path string) (names []string, next string) {
			got := a.Do(bob, "GET", path, "")
			require.Equal(t, 200, got.Status, got.Body)
			assert.NotContains(t, got.Body, "schedule_data")
			assert.Less(t, len(got.Body), 5000)
			var page []typeView
			require.NoError(t, json.Unmarshal([]byte(got.Body), &page))
			for _, one := range page {
				names = append(names, one.Name)
			}
			next, _ = strings.CutPrefix(got.Header.Get("Link"), "<")
			next, _, _ = strings.Cut(next, ">")
			return names, next
		}
		all, next := read("/v2/job-types")
		assert.Len(t, all, 5)
		assert.Empty(t, next)
		var paged []string
		for path, pages := "/v2/job-types?limit=2", 1; path != ""; pages++ {
			var page []string
			page, path = read(path)
			paged = append(paged, page...)
			require.LessOrEqual(t, pages, 3)
		}
		assert.Equal(t, all, paged)
		_, next = read("/v2/job-types?limit=2")
		a.RequireDone(alice, "DELETE", "/v2/job-types/"+all[1], "")
		after, _ := read(next)
		assert.Equal(t, all[2:4], after, "behind a type that has gone")
		for _, query := range []string{"after=x", "after=t1", "limit=0", "limit=1001"} {
			assert.Equal(t, 400, a.Problem(bob, "GET", "/v2/job-types?"+query, "").Status, query)
		}
		assert.Len(t, a.requireType(200, bob, "GET", "/v2/job-types/t0", "").ScheduleData, len(data))
	})
}

// TestALimitOfTypesNamesItsClient, and leaves others alone.
func TestALimitOfTypesNamesItsClient(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, redis *rdbtest.Server) {
		a := newJobsAPI(t, redis, func(c *web.Config) { c.Jobs.Types = jobs.TypeLimits{Client: 2, Bus: 4} })
		add := func(who, name string) string {
			if got := a.Do(who, "POST", "/v2/job-types", newType(name, "")); got.Status == 201 {
				return ""
			}
			got := a.Problem(who, "POST", "/v2/job-types", newType(name, ""))
			assert.Equal(t, 409, got.Status)
			return got.Detail
		}
		assert.Empty(t, add(alice, "a1"))
		assert.Empty(t, add(alice, "a2"))
		assert.Contains(t, add(alice, "a3"), "the client alice has 2 job types (ROUTEMASTER_MAX_CLIENT_JOB_TYPES)")
		assert.Empty(t, add(bob, "b1"), "the first of another")
		assert.Empty(t, add(rootKey, "r1"))
		assert.Contains(t, add(bob, "b2"), "the bus has 4 job types (ROUTEMASTER_MAX_JOB_TYPES)")
		a.RequireDone(alice, "DELETE", "/v2/job-types/a1", "")
		assert.Empty(t, add(bob, "b2"))
		a.RequireDone(bob, "DELETE", "/v2/job-types/b2", "")
		a.requireType(200, alice, "PATCH", "/v2/job-types/a2", `{"paused":true}`)
		assert.Empty(t, add(alice, "a3"))
	})
}

func TestATypeIsDeleted(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, redis *rdbtest.Server) {
		a := newJobsAPI(t, redis)
		a.requireType(201, alice, "POST", "/v2/job-types", newType("a", ""))
		id := jobs.NewID()
		_, err := a.jobs.Of("a").Enqueue(t.Context(), "a", []jobs.NewJob{{ID: id, Data: []byte("1")}}, "", time.Now())
		require.NoError(t, err)
		refused := func(who, query string) string {
			return a.Problem(who, "DELETE", "/v2/job-types/a"+query, "").ID
		}
		assert.Equal(t, "forbidden", refused(bob, "?force=true"))
		assert.Equal(t, "conflict", refused(alice, ""))
		assert.Equal(t, "conflict", refused(rootKey, "?force=false"))
		assert.Equal(t, "invalid_parameter", refused(alice, "?force=1"))
		assert.Equal(t, "invalid_request", refused(alice, "?force=true&force=true"))
		a.RequireDone(alice, "DELETE", "/v2/job-types/a?force=true", "")
		assert.Equal(t, "job_type_not_found", refused(alice, "?force=true"))
		assert.Equal(t, 404, a.Problem(alice, "GET", "/v1/jobs/a", "").Status)
		job, err := a.jobs.Job(t.Context(), "a", id)
		require.NoError(t, err)
		assert.Equal(t, jobs.Cancelled, job.Status)
		assert.Contains(t, a.Log.String(), `msg="deleted a job type" request_id=`)
		a.requireType(201, bob, "POST", "/v2/job-types", newType("a", ""))
		a.RequireDone(rootKey, "DELETE", "/v2/job-types/a", "")
	})
}

// TestATypeFollowsItsClient changes a type with a new token of its client.
func TestATypeFollowsItsClient(t *testing.T) {
	a := newJobsAPI(t, rdbtest.Embedded(t))
	a.requireType(201, alice, "POST", "/v2/job-types", newType("a", ""))
	require.NoError(t, a.PutToken(t.Context(), "alice--2", "alice"))
	a.requireType(200, "alice--2", "PATCH", "/v2/job-types/a", `{"paused":true}`)
	assert.NotContains(t, a.Log.String(), alice)
}

// TestChangesHoldForWorkersAtOnce takes jobs with workers while types are made and changed.
func TestChangesHoldForWorkersAtOnce(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, redis *rdbtest.Server) {
		a := newJobsAPI(t, redis)
		workers := 0
		takes := func() jobs.TypeName {
			workers++
			worker := bus.WorkerID(fmt.Sprintf("w%d", workers))
			_, task := a.acquire(worker, time.Now())
			if task == nil {
				return ""
			}
			return task.Payload.(*jobs.Run).Type
		}
		put := func(name jobs.TypeName) {
			_, err := a.jobs.Of(name).Enqueue(t.Context(), name, []jobs.NewJob{{ID: jobs.NewID(), Data: []byte("1")}}, "", time.Now())
			require.NoError(t, err)
		}
		require.Empty(t, takes())
		a.requireType(201, alice, "POST", "/v1/jobs", `{"name":"one","delivery_strategy":"at_least_once","attempts":3,"concurrency":1}`)
		for range 3 {
			put("one")
		}
		require.Equal(t, jobs.TypeName("one"), takes())
		require.Empty(t, takes(), "one at once")
		a.requireType(200, alice, "PATCH", "/v2/job-types/one", `{"concurrency":2}`)
		require.Equal(t, jobs.TypeName("one"), takes())
		a.requireType(200, alice, "PATCH", "/v2/job-types/one", `{"concurrency":3,"paused":true}`)
		require.Empty(t, takes())
		view := a.requireType(200, alice, "PATCH", "/v2/job-types/one", `{"paused":false}`)
		assert.Equal(t, []int{1, 2}, []int{view.Counts.Queued, view.Counts.InProgress})
		require.Equal(t, jobs.TypeName("one"), takes())
	})
}

func TestOtherMethodsAndCredentials(t *testing.T) {
	a := newJobsAPI(t, rdbtest.Embedded(t), func(c *web.Config) { c.ForceTLS = true })
	request := func(method, path, user string) (status int, id string, header http.Header) {
		r := httptest.NewRequestWithContext(t.Context(), method, path, nil)
		r.Header.Set("X-Forwarded-Proto", "https")
		if user != "none" {
			r.SetBasicAuth(user, "password")
		}
		w := httptest.NewRecorder()
		a.Handler.ServeHTTP(w, r)
		webtest.RequireDocumented(t, r, "", w)
		var problem webtest.Problem
		require.NoError(t, json.Unmarshal(w.Body.Bytes(), &problem))
		assert.Equal(t, path, problem.Instance)
		return w.Code, problem.ID, w.Header()
	}
	for _, c := range []struct {
		method, path, user string
		status             int
		id                 string
	}{
		{"PUT", "/v2/job-types", alice, 405, "method_not_allowed"},
		{"DELETE", "/v1/jobs", "none", 405, "method_not_allowed"},
		{"GET", "/v2/unknown", "none", 404, "not_found"},
		{"GET", "/v2/job-types/", alice, 404, "not_found"},
		{"GET", "/v2/job-types", "none", 401, "unauthorized"},
		{"GET", "/v2/job-types", "", 401, "missing_authentication"},
		{"GET", "/v2/job-types", "nobody--9", 401, "unauthorized"},
	} {
		status, id, header := request(c.method, c.path, c.user)
		assert.Equal(t, []any{c.status, c.id}, []any{status, id}, "%s %s as %q", c.method, c.path, c.user)
		assert.Equal(t, "max-age=31536000", header.Get("Strict-Transport-Security"))
		assert.Equal(t, "routemaster", header.Get("Server"))
		assert.Equal(t, status == 401, header.Get("WWW-Authenticate") != "")
		assert.Equal(t, status == 405, header.Get("Allow") != "")
	}
}

// TestATypeShowsUntilWhenItIsHeld has a service ask for time.
func TestATypeShowsUntilWhenItIsHeld(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, redis *rdbtest.Server) {
		a := newJobs(t, redis)
		a.add("ship", func(t *jobs.Type) { t.Pull, t.URL = false, "https://ship.example/" })
		a.put("ship", 1)
		heldUntil := func() *time.Time {
			t.Helper()
			shown := a.requireType(200, bob, "GET", "/v2/job-types/ship", "").HeldUntil
			var all []typeView
			require.NoError(t, json.Unmarshal([]byte(a.require(200, "GET", "/v2/job-types", "")), &all))
			assert.Equal(t, shown, all[0].HeldUntil)
			return shown
		}
		assert.Nil(t, heldUntil())
		q, task := a.acquire("worker", start)
		until := start.Truncate(time.Millisecond).Add(time.Minute)
		_, err := q.Complete(t.Context(), task, queue.Result{
			RetryAt: until, Detail: jobs.Outcome{Result: jobs.RunHeld, Standing: bus.Failing},
		}, start)
		require.NoError(t, err)
		require.NotNil(t, heldUntil())
		assert.Equal(t, until, *heldUntil())
		a.Ahead = time.Minute
		assert.Nil(t, heldUntil(), "the time has come")
		a.Ahead = 0
		require.NotNil(t, heldUntil())
		assert.Nil(t, a.requireType(200, rootKey, "PATCH", "/v2/job-types/ship", `{"url":"https://ship.example/2"}`).HeldUntil)
	})
}

// TestATypeSaysWhyItsJobsWait has jobs wait for each cause.
func TestATypeSaysWhyItsJobsWait(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, redis *rdbtest.Server) {
		a := newJobs(t, redis)
		a.add("ship")
		causes := func() []string { return a.requireType(200, alice, "GET", "/v2/job-types/ship", "").Causes }
		assert.Empty(t, causes(), "nothing waits")
		a.require(202, "PUT", "/v1/jobs/ship/"+jobID(1), `{"data":1,"run_after":"2026-01-31T19:00:00Z"}`)
		assert.Equal(t, []string{"no_worker"}, causes())
		require.NoError(t, a.jobs.Queues()[0].Heartbeat(t.Context(), start, "worker"))
		assert.Equal(t, []string{"not_due"}, causes())
		a.put("ship", 2)
		assert.Equal(t, []string{"awaiting_fetch"}, causes())
		idle := samples.NewHeartbeat(a.First().Partition(), overview.Process{Kind: "worker", JobThreads: new(0)}, nil, clock.New(time.Now, nil))
		require.NoError(t, idle.Beat(t.Context()))
		assert.Equal(t, []string{"no_job_threads", "awaiting_fetch"}, causes())
		other := samples.NewHeartbeat(a.First().Partition(), overview.Process{Kind: "worker", JobThreads: new(1)}, nil, clock.New(time.Now, nil))
		require.NoError(t, other.Beat(t.Context()))
		assert.Equal(t, []string{"awaiting_fetch"}, causes(), "one of two workers runs jobs")
		a.fetch("ship")
		a.put("ship", 3)
		assert.Equal(t, []string{"concurrency"}, causes())
		a.requireType(200, rootKey, "PATCH", "/v2/job-types/ship", `{"paused":true}`)
		assert.Equal(t, []string{"paused"}, causes())
		a.Ahead += time.Hour
		assert.Equal(t, []string{"no_worker", "paused"}, causes(), "the worker is silent")
	})
}
