package web_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/jobs"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store/storetest"
	"routemaster/internal/web/webtest"
)

func TestJobsAreFetched(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, redis *rdbtest.Server) {
		a := newJobs(t, redis)
		a.add("ship", limit(3))
		a.add("posted", func(t *jobs.Type) { t.URL, t.Pull = "https://posted.example/", false })
		const fetch = "/v1/jobs/ship/fetch"
		a.require(204, "POST", fetch, "")
		a.require(202, "PUT", "/v1/jobs/ship/"+jobID(1), `{"data":1,"run_after":"2026-01-31T19:00:00Z"}`)
		a.require(202, "PUT", "/v1/jobs/ship/"+jobID(2), `{"data":1,"expires_at":"2026-01-31T18:00:00Z"}`)
		for n := 3; n < 7; n++ {
			a.put("ship", n)
		}
		one := func(n int) string {
			return `{"id":"` + jobID(n) + `","data":null,"attempt":3,"deadline":"2026-01-31T18:01:00.123456Z"}`
		}
		assert.JSONEq(t, "["+one(3)+","+one(4)+"]", a.require(200, "POST", fetch, `{"max":2}`), "not the expired one")
		assert.JSONEq(t, "["+one(5)+"]", a.require(200, "POST", fetch, `{"max":100,"wait":0}`), "as many as may be in progress")
		a.require(204, "POST", fetch, `{"max":null}`)
		assert.Equal(t, "expired", a.show("/v1/jobs/ship/"+jobID(2)).Status)
		a.refuse("POST", "/v1/jobs/ship/"+jobID(2), `{"status":"succeeded","attempt":3}`, 409, "job_already_archived")
		a.require(200, "POST", "/v1/jobs/ship/"+jobID(4), `{"status":"failed","attempt":3}`)
		assert.JSONEq(t, "["+one(6)+"]", a.require(200, "POST", fetch, `{"max":2}`), "the retry's time has not come")

		for body, pointer := range map[string]string{
			`{"max":0}`: "/max", `{"max":101}`: "/max", `{"wait":-1}`: "/wait", `{"wait":30001}`: "/wait",
		} {
			assert.Equal(t, pointer, a.refuse("POST", fetch, body, 400, "invalid_parameter").Pointer)
		}
		a.refuse("POST", fetch, `{"max":"1"}`, 400, "invalid_request")
		a.refuse("POST", "/v1/jobs/none/fetch", "", 404, "job_type_not_found")
		a.refuse("POST", "/v1/jobs/posted/fetch", "", 409, "conflict")
		storetest.RequireAllSound(t, a.Bus)
	})
}

// TestFetchWaits fetches with a wait, for a job that another request enqueues, and for none.
func TestFetchWaits(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, redis *rdbtest.Server) {
		a := newJobs(t, redis)
		a.add("ship")
		url := a.Run()
		fetched := make(chan string, 1)
		fetch := func(wait string) {
			r, err := http.NewRequestWithContext(t.Context(), "POST", url+"/v1/jobs/ship/fetch", strings.NewReader(`{"wait":`+wait+`}`))
			assert.NoError(t, err)
			a.Authorize(r, alice)
			resp, err := http.DefaultClient.Do(r)
			if !assert.NoError(t, err) {
				fetched <- ""
				return
			}
			text, err := io.ReadAll(resp.Body)
			assert.NoError(t, err)
			assert.NoError(t, resp.Body.Close())
			fetched <- http.StatusText(resp.StatusCode) + string(text)
		}
		fetch("50")
		assert.Equal(t, "No Content", <-fetched)

		go fetch("30000")
		a.put("ship", 1)
		require.Contains(t, <-fetched, jobID(1))
		storetest.RequireAllSound(t, a.Bus)
	})
}

// patient is a connection that shows until when the response may take.
type patient struct {
	*httptest.ResponseRecorder
	deadline time.Time
}

func (p *patient) SetWriteDeadline(t time.Time) error {
	p.deadline = t
	return nil
}

func TestAFetchMayTakeLongerThanOtherRequests(t *testing.T) {
	a := newJobs(t, rdbtest.Embedded(t))
	a.add("ship")
	deadline := func(wait time.Duration) time.Time {
		r := httptest.NewRequestWithContext(t.Context(), "POST", "/v1/jobs/ship/fetch", strings.NewReader(fmt.Sprintf(`{"wait":%d}`, wait.Milliseconds())))
		a.Authorize(r, alice)
		w := &patient{ResponseRecorder: httptest.NewRecorder()}
		a.Handler.ServeHTTP(w, r)
		assert.Equal(t, 204, w.Code)
		return w.deadline
	}
	const wait = 20 * time.Millisecond
	started := time.Now()
	assert.Zero(t, deadline(0), "it is the server's")
	assert.GreaterOrEqual(t, deadline(wait).Sub(started), 30*time.Second+wait)
	assert.GreaterOrEqual(t, time.Since(started), wait)
}

// TestAWaitingFetchEndsWithItsToken removes the token of a client that waits: in this process, and
// as another one does.
func TestAWaitingFetchEndsWithItsToken(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, redis *rdbtest.Server) {
		a := newJobs(t, redis)
		a.add("ship")
		for name, remove := range map[string]func(){
			"here":      func() { a.RequireDone(rootKey, "DELETE", "/api_tokens/"+bob, "") },
			"elsewhere": func() { require.NoError(t, a.DeleteToken(t.Context(), bob)) },
		} {
			require.NoError(t, a.PutToken(t.Context(), bob, "bob"))
			fetched := make(chan int, 1)
			body := webtest.NewSignal(`{"wait":30000}`)
			go func() {
				r := httptest.NewRequestWithContext(t.Context(), "POST", "/v1/jobs/ship/fetch", body)
				a.Authorize(r, bob)
				w := httptest.NewRecorder()
				a.Handler.ServeHTTP(w, r)
				fetched <- w.Code
			}()
			<-body.Ended
			remove()
			assert.Equal(t, 401, <-fetched, name)
		}
		path := a.put("ship", 1)
		assert.Equal(t, "queued", a.show(path).Status)
		assert.Equal(t, 3, a.fetch("ship"), "it is another's")
		storetest.RequireAllSound(t, a.Bus)
	})
}
