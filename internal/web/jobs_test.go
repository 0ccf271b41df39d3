package web_test

import (
	"testing"

	"routemaster/internal/jobs"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/web"
	"routemaster/internal/web/webtest"
)

// jobsAPI is an API under test, with its jobs.
type jobsAPI struct {
	*webtest.API
	jobs *jobs.Bus
}

func newJobsAPI(t *testing.T, redis *rdbtest.Server, adjust ...func(*web.Config)) jobsAPI {
	t.Helper()
	a := webtest.New(t, redis, adjust...)
	return jobsAPI{a, jobs.NewBus(a.Partitions())}
}
