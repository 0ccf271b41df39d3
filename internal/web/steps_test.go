package web_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/machines/machinestest"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store/storetest"
)

func TestAnErroredLabelIsRetried(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, redis *rdbtest.Server) {
		a := newMachinesAPI(t, redis)
		a.apply(a.journey())
		const one = labels + "one"
		a.service.Answer(machinestest.With(500, "no"))
		a.require(201, "POST", one+"?wait=0", `{"metadata":{"go":true}}`)
		a.workers.Work()
		tried := a.show(one)
		assert.Equal(t, "act", tried.State)
		assert.Nil(t, tried.WaitingFor)
		assert.Nil(t, tried.Errored)
		require.NotNil(t, tried.Action)
		assert.Equal(t, 1, tried.Action.Attempts)
		assert.Equal(t, 500, tried.Action.LastStatus)
		assert.Contains(t, tried.Action.LastError, "500")
		assert.Greater(t, tried.Action.NextTryAt, a.workers.Now.UnixMilli())
		assert.Equal(t, []string{"end"}, tried.Route)
		a.refuse(409, "conflict", "POST", one+"/retry", "")
		a.refuse(409, "conflict", "POST", one+"/evaluate", "")
		a.refuse(409, "conflict", "POST", one+"/evaluate?dry_run=true", "")

		a.workers.Pass(time.Minute)
		errored := a.show(one)
		require.NotNil(t, errored.Errored)
		assert.Equal(t, a.workers.Now.UnixMilli(), errored.Errored.At)
		assert.Contains(t, errored.Errored.Reason, "500")
		assert.Zero(t, errored.Action.NextTryAt)
		refused := a.refuse(409, "conflict", "POST", one+"/evaluate", "")
		assert.Contains(t, refused.Detail, "errored in the action act")
		assert.Contains(t, refused.Detail, "/retry")
		assert.Contains(t, a.require(200, "GET", "/state-machines/journey/labels?errored=true", ""), `"one"`)

		a.service.Answer(machinestest.With(204, ""))
		a.refuse(400, "invalid_request", "POST", one+"/retry", `{"x":1}`)
		assert.Nil(t, decode[label](a, a.require(200, "POST", one+"/retry?wait=0", "")).Errored)
		a.workers.Work()
		assert.Equal(t, "end", a.show(one).State)
		storetest.RequireAllSound(t, a.Bus)
	})
}

// fed has a gate that only a feed opens, and where that leads the feed says too.
func (a *machinesAPI) fed() string {
	return `
state_machines:
  fed:
    feeds: [{name: tests, url: "` + a.service.URL + `/feed/<label>"}]
    states:
      - gate: start
        exit_condition: feeds.tests.open and metadata.a = 1
        triggers: [{interval: 1h}]
        next: {type: context, path: feeds.tests.arm, default: left, destinations: [{state: right, value: "r"}]}
      - {gate: left, exit_condition: false}
      - {gate: right, exit_condition: false}
`
}

func TestEvaluate(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, redis *rdbtest.Server) {
		a := newMachinesAPI(t, redis)
		a.apply(a.fed())
		const one = "/state-machines/fed/labels/one"
		a.require(201, "POST", one, `{"metadata":{"a":1}}`)
		dryRun := func() (got struct {
			explanation
			State, To string
		}) {
			t.Helper()
			return decode[struct {
				explanation
				State, To string
			}](a, a.require(200, "POST", one+"/evaluate?dry_run=true", ""))
		}
		assert.Empty(t, a.service.Calls())
		unknown := a.show(one).WaitingFor
		assert.True(t, unknown.Unknown)
		assert.Nil(t, unknown.Value)
		assert.Empty(t, a.service.Calls(), "a plain GET asks no feeds")

		got := dryRun()
		assert.False(t, *got.Value)
		assert.Equal(t, "start", got.State)
		assert.Empty(t, got.To)
		require.Len(t, a.service.Calls(), 1)

		a.service.Answer(machinestest.With(500, ""))
		got = dryRun()
		assert.Nil(t, got.Value)
		assert.Contains(t, got.Error, "tests")

		a.service.Answer(machinestest.With(200, `{"open":true,"arm":"r"}`))
		got = dryRun()
		assert.True(t, *got.Value)
		assert.Equal(t, "right", got.To)
		assert.Equal(t, "start", a.show(one).State)
		a.refuse(400, "invalid_parameter", "POST", one+"/evaluate?dry_run=1", "")

		a.require(200, "POST", one+"/evaluate?wait=0", "")
		a.workers.Work()
		assert.Equal(t, "right", a.show(one).State)
		moves := decode[history](a, a.require(200, "GET", one+"/history", ""))
		assert.Equal(t, "evaluate", moves.History[0].Why.Trigger)
	})
}
