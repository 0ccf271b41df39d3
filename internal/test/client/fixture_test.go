package client_test

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

// connect returns a client of a bus.
func connect(t *testing.T, url, token string) *client.Client {
	t.Helper()
	c, err := client.New(url, token)
	require.NoError(t, err)
	t.Cleanup(c.CloseIdleConnections)
	return c
}

// connectJobs starts the API of a bus, and returns its jobs as a client of it sees them.
func connectJobs(t *testing.T) *jobs.Jobs {
	t.Helper()
	return jobs.New(connect(t, webtest.New(t, rdbtest.Embedded(t)).Run(), webtest.Alice))
}

// addType makes a type whose services fetch its jobs.
func addType(t *testing.T, j *jobs.Jobs, name, strategy string, attempts int) {
	t.Helper()
	_, err := j.AddType(t.Context(), jobs.Type{Name: name, Strategy: strategy, Attempts: attempts, Concurrency: 10, Timeout: 1000})
	require.NoError(t, err)
}

// assertRefused requires that the bus has refused a request with a status and an id.
func assertRefused(t *testing.T, err error, status int, id string) *client.Error {
	t.Helper()
	var refused *client.Error
	require.ErrorAs(t, err, &refused)
	assert.Equal(t, status, refused.Status)
	assert.Equal(t, id, refused.ID)
	return refused
}
