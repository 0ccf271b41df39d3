package web_test

import (
	"log/slog"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/inspect"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store"
	"routemaster/internal/store/storetest"
	"routemaster/internal/telemetry"
	"routemaster/internal/web"
)

func TestRequestsAndEndsAreCounted(t *testing.T) {
	redis := rdbtest.Embedded(t)
	st := storetest.OpenAll(t, redis).First()
	recorder := telemetry.NewRecorder(telemetry.NewRegistry(), st, slog.New(slog.DiscardHandler))
	a := newJobs(t, redis, func(c *web.Config) { c.Jobs.Recorder = recorder })
	a.require(201, "POST", "/v1/jobs", `{"name":"ship","delivery_strategy":"at_least_once","attempts":2,"concurrency":9,"url":null}`)
	done, failing, unwanted := a.put("ship", 1), a.put("ship", 2), a.put("ship", 3)
	a.put("ship", 1)
	a.fetch("ship")
	a.require(200, "POST", done, `{"status":"succeeded","attempt":2}`)
	a.require(200, "POST", done, `{"status":"succeeded","attempt":2}`)
	a.fetch("ship")
	a.require(409, "POST", failing, `{"status":"failed","attempt":1}`)
	a.require(200, "POST", failing, `{"status":"failed","attempt":2}`)
	for range 2 {
		a.require(204, "DELETE", unwanted, "")
	}
	a.require(400, "PUT", done, `{"data":1}`)
	a.require(200, "GET", done, "")
	a.require(200, "GET", failing, "")
	a.require(404, "GET", "/v1/jobs/ship/"+jobID(9), "")
	a.require(404, "POST", "/v1/jobs/ship/"+jobID(9)+"/replay", "")
	a.require(201, "POST", done+"/replay", "")
	a.require(202, "PUT", "/v1/jobs/ship/"+jobID(8), `{"data":1,"expires_at":"2026-01-31T18:00:00Z"}`)
	a.fetch("ship") // the copy
	a.require(204, "POST", "/v1/jobs/ship/fetch", "")
	assert.Equal(t, map[string]int64{
		"jobs.requests create created": 1, "jobs.enqueued ship": 5, "jobs.requests enqueue archived": 1,
		"jobs.ended ship web succeeded": 1, "jobs.requests report repeated": 1, "jobs.requests report stale": 1,
		"jobs.attempts ship retried": 1, "jobs.ended ship web cancelled": 1, "jobs.ended ship web expired": 1,
		"jobs.requests get archived": 1, "jobs.requests get queued": 1, "jobs.requests get not_found": 1,
		"jobs.requests replay not_found": 1, "jobs.requests replay queued": 1,
	}, counters(t, st, recorder))
}

// counters are all that a recorder has counted: name and values of tags.
func counters(t *testing.T, st *store.Store, recorder *telemetry.Recorder) map[string]int64 {
	t.Helper()
	recorder.Flush(t.Context())
	counted, err := inspect.Of(st).Counters(t.Context())
	require.NoError(t, err)
	named := map[string]int64{}
	for c, n := range counted {
		name := c.Name
		for _, tag := range c.All() {
			name += " " + tag.Value
		}
		named[name] = n
	}
	return named
}
