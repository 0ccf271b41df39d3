package jobs_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/client"
	"routemaster/client/jobs"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store/storetest"
	"routemaster/internal/web/webtest"
)

func TestMain(m *testing.M) { storetest.MainWithCluster(m) }

// connect starts the API of a bus, and returns its jobs as a client of it sees them.
func connect(t *testing.T) (*jobs.Jobs, *webtest.API) {
	t.Helper()
	a := webtest.New(t, rdbtest.Embedded(t))
	c, err := client.New(a.Run(), webtest.Alice)
	require.NoError(t, err)
	t.Cleanup(c.CloseIdleConnections)
	return jobs.New(c), a
}

// addType makes a type whose services fetch its jobs.
func addType(t *testing.T, j *jobs.Jobs, name, strategy string, attempts int) {
	t.Helper()
	_, err := j.AddType(t.Context(), jobs.Type{Name: name, Strategy: strategy, Attempts: attempts, Concurrency: 10, Timeout: 1000})
	require.NoError(t, err)
}

// assertRefused requires that the bus has refused a request with a status and an id.
func assertRefused(t *testing.T, err error, status int, id string) {
	t.Helper()
	var refused *client.Error
	if assert.ErrorAs(t, err, &refused) {
		assert.Equal(t, status, refused.Status)
		assert.Equal(t, id, refused.ID)
	}
}
