package web_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store/storetest"
	"routemaster/internal/web/rest"
)

const full = `
state_machines:
  all:
    feeds:
      - {name: tests, url: "https://feeds.example/<label>", timeout: 1s500ms}
    webhooks:
      - {match: "^https://mail", headers: {X-Key: s3cret}}
    states:
      - gate: start
        exit_condition: "metadata.a < 5 and system.time >= 18:30"
        timezone: Europe/London
        triggers:
          - metadata: a.b
          - {time: 18h30m, timezone: metadata.zone}
          - interval: 1d2h30m
          - event: entry
        next:
          type: context
          path: feeds.tests.arm
          default: end
          destinations:
            - {state: mail, value: 1}
            - {state: end, value: null}
      - {action: mail, webhook: "https://mail.example/<label>", next: end}
      - {gate: end, exit_condition: false}
`

const shown = `{"states":[
  {"gate":"start","exit_condition":"metadata.a < 5 and system.time >= 18:30","timezone":"Europe/London","triggers":[
    {"metadata":"a.b"},{"time":"18h30m","timezone":"metadata.zone"},{"interval":"1d2h30m"},{"event":"entry"}],
   "next":{"type":"context","path":"feeds.tests.arm","default":"end","destinations":[{"state":"mail","value":1},{"state":"end","value":null}]}},
  {"action":"mail","webhook":"https://mail.example/<label>","attempts":20,"backoff":"10s","timeout":"10s","next":"end"},
  {"gate":"end","exit_condition":"false"}],
 "feeds":[{"name":"tests","url":"https://feeds.example/<label>","timeout":"1s500ms"}],
 "webhooks":[{"match":"^https://mail"HEADERS}]}`

func TestDefinitionsAreShown(t *testing.T) {
	a := newMachinesAPI(t, rdbtest.Embedded(t))
	assert.JSONEq(t, `{"state-machines":[],"version":0}`, a.require(200, "GET", "/state-machines", ""))
	assert.JSONEq(t, `{"version":1,"warnings":[]}`, a.requireOf(rootKey, 200, "PUT", "/state-machines", full))
	a.require(201, "POST", "/state-machines/all/labels/x?wait=0", `{"metadata":{}}`)
	assert.JSONEq(t, `{"state-machines":[{"name":"all","labels":"/state-machines/all/labels"}],"version":1}`,
		a.require(200, "GET", "/state-machines", ""))
	for who, headers := range map[string]string{alice: "", rootKey: `,"headers":{"X-Key":"s3cret"}`} {
		assert.JSONEq(t, `{"name":"all","version":1,"applied_at":1700000000000,"labels":{"start":1,"mail":0,"end":0},"errored":0,
			"definition":`+strings.Replace(shown, "HEADERS", headers, 1)+`}`, a.requireOf(who, 200, "GET", "/state-machines/all", ""))
	}
	assert.NotContains(t, a.Log.String(), "s3cret")
	body := a.require(200, "GET", "/state-machines/all", "")
	assert.Contains(t, body, `metadata.a < 5`, "to the letter")
	assert.Contains(t, body, `/<label>`)
}

func TestGraphs(t *testing.T) {
	a := newMachinesAPI(t, rdbtest.Embedded(t))
	a.apply(full)
	for format, want := range map[string]struct{ kind, begins string }{
		"dot": {"text/vnd.graphviz; charset=utf-8", "digraph"}, "mermaid": {"text/plain; charset=utf-8", "stateDiagram"}, "svg": {"image/svg+xml", "<svg"},
		"json": {"application/json", "{"},
	} {
		got := a.Do(alice, "GET", "/state-machines/all?format="+format, "")
		assert.Equal(t, 200, got.Status, got.Body)
		assert.Equal(t, want.kind, got.Header.Get("Content-Type"))
		assert.True(t, strings.HasPrefix(got.Body, want.begins), got.Body)
	}
	a.refuse(400, "invalid_parameter", "GET", "/state-machines/all?format=png", "")
	a.refuse(404, "not_found", "GET", "/state-machines/none?format=dot", "")
}

func TestDefinitionsAreReplacedOnce(t *testing.T) {
	a := newMachinesAPI(t, rdbtest.Embedded(t))
	for range 2 { // the same again changes nothing
		assert.JSONEq(t, `{"version":1,"warnings":[]}`, a.requireOf(rootKey, 200, "PUT", "/state-machines", a.journey()))
	}
	got := a.requireOf(rootKey, 200, "PUT", "/state-machines", a.journey()+"    color: red\n")
	applied := decode[struct {
		Version  int
		Warnings []rest.Fault
	}](a, got)
	assert.Equal(t, 2, applied.Version)
	require.Len(t, applied.Warnings, 1)
	assert.Equal(t, 15, applied.Warnings[0].Line)
	assert.Contains(t, a.Log.String(), `msg="replaced the state machines" `)
	assert.Contains(t, a.Log.String(), "version=2")
}

func TestWrongDefinitionsAreRefusedWithAllPlaces(t *testing.T) {
	a := newMachinesAPI(t, rdbtest.Embedded(t))
	wrong := `
state_machines:
  m:
    states:
      - {gate: start, exit_condition: "a = ", next: nowhere}
`
	got := a.Do(rootKey, "PUT", "/state-machines", wrong)
	require.Equal(t, 400, got.Status, got.Body)
	problem := decode[rest.Problem](a, got.Body)
	assert.Equal(t, "invalid_definitions", problem.ID)
	require.Greater(t, len(problem.Errors), 1, got.Body)
	for _, fault := range problem.Errors {
		assert.Equal(t, 5, fault.Line, fault)
		assert.Positive(t, fault.Column, fault)
		assert.NotEmpty(t, fault.Message)
	}
	for body, status := range map[string]int{"": 400, "a: [": 400, strings.Repeat("#", 1<<20+1): 413} {
		assert.Equal(t, status, a.Problem(rootKey, "PUT", "/state-machines", body).Status)
	}
	assert.Equal(t, 403, a.Problem(alice, "PUT", "/state-machines", a.journey()).Status)
}

// TestStatesThatVanish renames a state that has labels.
func TestStatesThatVanish(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, redis *rdbtest.Server) {
		a := newMachinesAPI(t, redis)
		a.apply(a.journey())
		a.require(201, "POST", labels+"one?wait=0", `{"metadata":{}}`)
		a.require(201, "POST", labels+"two?wait=0", `{"metadata":{}}`)
		a.workers.Work()
		renamed := strings.Replace(a.journey(), "gate: start", "gate: begin", 1)

		got := a.Do(rootKey, "PUT", "/state-machines", renamed)
		require.Equal(t, 409, got.Status, got.Body)
		problem := decode[rest.Problem](a, got.Body)
		assert.Equal(t, "labels_rest", problem.ID)
		assert.Equal(t, []rest.StateLabels{{Machine: "journey", State: "start", Labels: 2}}, problem.States)
		assert.Contains(t, problem.Detail, "journey.start (2)")

		for _, move := range []string{"start:begin", "journey.start", "journey.start:nowhere", "journey.end:begin", "x&move=journey.start:begin", "journey.start:begin&move=journey.start:end"} {
			assert.Equal(t, "invalid_parameter", a.Problem(rootKey, "PUT", "/state-machines?move="+move, renamed).ID, move)
		}
		assert.Equal(t, 400, a.Problem(rootKey, "PUT", "/state-machines?to=x", renamed).Status)
		a.requireOf(rootKey, 200, "PUT", "/state-machines?move=journey.start:begin&move=journey.gone:end", renamed)
		a.workers.Work()
		assert.Equal(t, "begin", a.show(labels+"one").State)
		storetest.RequireAllSound(t, a.Bus)
	})
}
