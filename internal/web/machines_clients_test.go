package web_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"routemaster/internal/rdb/rdbtest"
)

// TestAMachineIsForItsClients sends the same requests as alice, whom the machine does not name, as
// bob and as root.
func TestAMachineIsForItsClients(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, redis *rdbtest.Server) {
		a := newMachinesAPI(t, redis)
		const of = "state_machines:\n  m:\n    clients: ["
		const states = "]\n    states:\n      - {gate: a, exit_condition: metadata.go, triggers: [{metadata: go}], next: b}\n      - {gate: b, exit_condition: false}\n"
		a.apply(of + "bob, carol" + states)
		change := func(who string, status int, method, path, body string) {
			t.Helper()
			got := a.Do(who, method, path, body)
			assert.Equal(t, status, got.Status, "%s %s: %s", method, path, got.Body)
		}
		refuse := func(method, path, body string) {
			t.Helper()
			assert.Contains(t, a.refuse(403, "forbidden", method, path, body).Detail, "rtm machine apply")
		}
		const labels, ann = "/state-machines/m/labels", "/state-machines/m/labels/ann"
		const metadata = `{"metadata":{"a":1}}`

		refuse("POST", ann+"?wait=0", metadata)
		assert.Contains(t, a.require(200, "GET", labels, ""), `"labels":[]`)
		change(bob, 201, "POST", ann+"?wait=0", metadata)
		change(rootKey, 201, "POST", labels+"/ben?wait=0", metadata)
		refuse("POST", ann+"?wait=0", metadata)

		refuse("PATCH", ann+"?wait=0", `{"metadata":{"go":true}}`)
		refuse("PATCH", labels+"/other?wait=0", metadata)
		refuse("POST", ann+"/retry?wait=0", "")
		refuse("POST", ann+"/evaluate?wait=0", "")
		refuse("DELETE", ann, "")
		refuse("DELETE", labels+"/other", "")
		shown := a.show(ann)
		assert.Equal(t, map[string]any{"a": 1.0}, shown.Metadata)
		assert.Contains(t, a.require(200, "POST", ann+"/evaluate?dry_run=true", ""), `"state":"a"`)
		assert.Contains(t, a.require(200, "GET", "/state-machines/m", ""), `"clients":["bob","carol"]`)

		change(bob, 409, "POST", ann+"/retry?wait=0", "")
		change(bob, 200, "POST", ann+"/evaluate?wait=0", "")
		change(bob, 200, "PATCH", ann+"?wait=0", metadata)
		change(bob, 204, "DELETE", ann, "")
		refuse("PATCH", ann+"?wait=0", metadata)

		a.apply(of + "alice" + states)
		change(bob, 403, "PATCH", labels+"/ben?wait=0", metadata)
		a.require(200, "PATCH", labels+"/ben?wait=0", metadata)
	})
}
