package jobs_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/jobs"
	"routemaster/internal/outbound"
	"routemaster/internal/rdb/rdbtest"
)

// TestAJobIsPostedAgainOverANewConnection leaves a reused connection without an answer: the job
// does not wait for its deadline, and keeps all its attempts.
func TestAJobIsPostedAgainOverANewConnection(t *testing.T) {
	var posts atomic.Int64
	service := newService(t, func(w http.ResponseWriter, r *http.Request) {
		if posts.Add(1) == 2 {
			hang(w, r)
		}
		with(http.StatusOK, `{"status":"succeeded"}`)(w, r)
	})
	s := newServedShop(t, rdbtest.Embedded(t), service.url)
	s.config.Downstream = newClient(t, func(c *outbound.Config) { c.Timeout = 3 * time.Second })
	first := s.put("invoice")
	require.Equal(t, 1, s.run(0))
	s.requireJob(first, jobs.Succeeded, 3, "")

	second := s.Put("invoice")
	require.Equal(t, 1, s.run(0))
	const inDoubt = "the service did not answer over a connection that was used before; the job is posted again over a new one"
	s.requireJob(second, jobs.Queued, 3, inDoubt)
	attempts, err := s.Attempts(t.Context(), "invoice", second)
	require.NoError(t, err)
	require.Len(t, attempts, 1)
	assert.Equal(t, []any{"failed", inDoubt}, []any{attempts[0].Outcome, attempts[0].Error})
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

// TestAReportThatIsNotReadIsShown has services answer with a report that is too long, or in a code
// that cannot be read. One in gzip is read.
func TestAReportThatIsNotReadIsShown(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		report, long, coded := `{"status":"succeeded"}`, `{"status":"failed","message":"`+strings.Repeat("x", 5000)+`"}`, ""
		service := newService(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Encoding", coded)
			body := []byte(long)
			if coded == "gzip" {
				var packed bytes.Buffer
				z := gzip.NewWriter(&packed)
				_, _ = io.WriteString(z, report)
				_ = z.Close()
				body = packed.Bytes()
			}
			_, _ = w.Write(body)
		})
		s := newServedShop(t, server, service.url)
		id := s.put("invoice", func(t *jobs.Type) { t.Concurrency = 3 })
		require.Equal(t, 1, s.run(0))
		s.requireJob(id, jobs.InProgress, 3, "the report in the answer is longer than 4096 bytes")
		assert.Contains(t, s.log.String(), `level=WARN msg="cannot read the report in a service's answer"`)
		coded = "br"
		id = s.Put("invoice")
		require.Equal(t, 1, s.run(0))
		s.requireJob(id, jobs.InProgress, 3, `the report in the answer has the Content-Encoding "br", though identity was asked for`)
		coded = "gzip"
		id = s.Put("invoice")
		require.Equal(t, 1, s.run(0))
		s.requireJob(id, jobs.Succeeded, 3, "")
	})
}
