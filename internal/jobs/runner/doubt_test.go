package runner_test

import (
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/jobs"
	"routemaster/internal/outbound"
	"routemaster/internal/rdb/rdbtest"
)

// TestAJobIsPostedAgainOverANewConnection has a connection that was used before be silent: the job
// does not wait for its deadline, and has all its attempts.
func TestAJobIsPostedAgainOverANewConnection(t *testing.T) {
	var posts atomic.Int64
	service := newService(t, func(w http.ResponseWriter, r *http.Request) {
		if posts.Add(1) == 2 {
			<-r.Context().Done()
			return
		}
		with(http.StatusOK, `{"status":"succeeded"}`)(w, r)
	})
	s := newShop(t, rdbtest.Embedded(t), service.url)
	s.config.Downstream = newClient(t, func(c *outbound.Config) { c.Timeout = 3 * time.Second })
	first := s.put("invoice")
	require.Equal(t, 1, s.run(0))
	s.requireJob(first, jobs.Succeeded, 3, "")

	second := s.Put("invoice")
	require.Equal(t, 1, s.run(0))
	s.requireJob(second, jobs.Queued, 3, "")
	require.Equal(t, 1, s.run(0))
	s.requireJob(second, jobs.Succeeded, 3, "")
	got := service.got()
	require.Len(t, got, 3)
	assert.Equal(t, got[1].body, got[2].body)
	ty, err := s.Type(t.Context(), "invoice")
	require.NoError(t, err)
	counts, err := s.Counts(t.Context(), ty)
	require.NoError(t, err)
	assert.Zero(t, counts[0].HeldUntil)
	assert.Contains(t, s.log.String(), "posting a job again over a new connection")
}
