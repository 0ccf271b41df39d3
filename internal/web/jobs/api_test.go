package jobs_test

import (
	"testing"

	"routemaster/internal/jobs/jobstore/jobstores"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store/storetest"
	"routemaster/internal/web"
	"routemaster/internal/web/webtest"
)

func TestMain(m *testing.M) { storetest.MainWithCluster(m) }

const (
	rootKey = webtest.RootKey
	alice   = webtest.Alice
	bob     = webtest.Bob
)

// api is an API under test, with its jobs.
type api struct {
	*webtest.API
	jobs *jobstores.Stores
}

func newAPI(t *testing.T, redis *rdbtest.Server, adjust ...func(*web.Config)) api {
	t.Helper()
	a := webtest.New(t, redis, adjust...)
	return api{a, jobstores.New(a.Partitions())}
}
