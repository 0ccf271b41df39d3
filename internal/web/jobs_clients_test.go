package web_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"routemaster/internal/bus"
	"routemaster/internal/jobs"
	"routemaster/internal/rdb/rdbtest"
)

// forBob has only bob use a type.
func forBob(t *jobs.Type) { t.Clients = bus.Clients{"bob", "carol"} }

// TestATypeIsForItsClients sends the same requests as alice, whom the type does not name, as bob
// and as root.
func TestATypeIsForItsClients(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, redis *rdbtest.Server) {
		a := newJobs(t, redis)
		a.add("ship", forBob, limit(9), func(t *jobs.Type) { t.Owner = "alice" })
		change := func(who string, status int, method, path, body string) {
			t.Helper()
			got := a.Do(who, method, path, body)
			assert.Equal(t, status, got.Status, "%s %s: %s", method, path, got.Body)
		}
		refuse := func(method, path, body string) {
			t.Helper()
			assert.Contains(t, a.refuse(method, path, body, 403, "forbidden").Detail, "PATCH /v2/job-types/{name}")
		}
		path := func(n int) string { return "/v1/jobs/ship/" + jobID(n) }
		array := fmt.Sprintf(`[{"id":%q,"data":1}]`, jobID(2))

		refuse("PUT", path(1), `{"data":1}`)
		refuse("POST", "/v1/jobs/ship", array)
		assert.Equal(t, "[]", a.require(200, "GET", "/v1/jobs?name=ship", ""), "nothing was enqueued")
		change(bob, 202, "PUT", path(1), `{"data":1}`)
		change(bob, 202, "POST", "/v1/jobs/ship", array)
		change(rootKey, 202, "PUT", path(3), `{"data":1}`)
		refuse("PUT", path(1), `{"data":1}`)

		refuse("POST", "/v1/jobs/ship/fetch", `{"max":9}`)
		refuse("POST", "/v1/jobs/ship/fetch", `{"max":9,"wait":30000}`)
		assert.Equal(t, "queued", a.show(path(1)).Status)
		change(bob, 200, "POST", "/v1/jobs/ship/fetch", "")
		change(rootKey, 200, "POST", "/v1/jobs/ship/fetch", `{"max":9}`)

		deadline := a.show(path(1)).Deadline
		refuse("POST", path(1)+"/extend", `{"attempt":3,"timeout":90000}`)
		refuse("POST", path(1), `{"attempt":3,"status":"succeeded"}`)
		refuse("POST", path(1), `{"attempt":1,"status":"succeeded"}`)
		refuse("DELETE", path(1), "")
		refuse("POST", path(1)+"/replay", "")
		refuse("POST", "/v1/jobs/"+jobID(1)+"/replay", "")
		assert.Equal(t, []any{"in-progress", deadline}, []any{a.show(path(1)).Status, a.show(path(1)).Deadline})
		change(bob, 200, "POST", path(1)+"/extend", `{"attempt":3,"timeout":90000}`)
		change(bob, 201, "POST", path(1)+"/replay", "")
		change(bob, 200, "POST", path(1), `{"attempt":3,"status":"succeeded"}`)
		refuse("POST", path(1), `{"attempt":3,"status":"succeeded"}`)
		change(bob, 202, "DELETE", path(2), "")
		refuse("DELETE", path(2), "")

		// The one that made the type lets itself in, and then all.
		a.require(200, "PATCH", "/v2/job-types/ship", `{"clients":["alice"]}`)
		a.require(202, "PUT", path(4), `{"data":1}`)
		change(bob, 403, "PUT", path(5), `{"data":1}`)
		shown := a.requireType(200, alice, "PATCH", "/v2/job-types/ship", `{"clients":null}`)
		assert.Nil(t, shown.Clients)
		change(bob, 202, "PUT", path(5), `{"data":1}`)
	})
}

func TestTheClientsOfATypeAreShownAndChecked(t *testing.T) {
	a := newJobs(t, rdbtest.Embedded(t))
	made := a.requireType(201, alice, "POST", "/v2/job-types", newType("ship", `,"clients":["bob","alice"]`))
	assert.Equal(t, []string{"bob", "alice"}, made.Clients)
	assert.Equal(t, made, a.requireType(200, bob, "GET", "/v2/job-types/ship", ""))
	for body, pointer := range map[string]string{
		`{"clients":[]}`: "/clients", `{"clients":["bob","bob"]}`: "/clients/1", `{"clients":["Bob"]}`: "/clients/0",
	} {
		assert.Equal(t, pointer, a.refuse("PATCH", "/v2/job-types/ship", body, 400, "invalid_parameter").Pointer, body)
	}
	assert.Equal(t, "/clients", a.refuse("PATCH", "/v2/job-types/ship", `{"clients":"bob"}`, 400, "invalid_request").Pointer)
}
