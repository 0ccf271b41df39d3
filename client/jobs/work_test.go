package jobs_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/client"
	"routemaster/client/jobs"
)

// TestAReportIsRepeated has a bus that is away for extensions and, at first, for reports.
func TestAReportIsRepeated(t *testing.T) {
	var handed, refused bool
	reported := make(chan string, 2)
	bus := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		switch {
		case r.Method == http.MethodGet:
			_, _ = io.WriteString(w, `{"name":"ship","timeout":60}`)
		case strings.HasSuffix(r.URL.Path, "/extend"):
			w.WriteHeader(http.StatusServiceUnavailable)
		case !strings.HasSuffix(r.URL.Path, "/fetch"):
			reported <- string(body)
			if !refused {
				refused = true
				w.WriteHeader(http.StatusServiceUnavailable)
			}
		case !handed:
			handed = true
			_, _ = io.WriteString(w, `[{"id":"job_1","data":1,"attempt":3}]`)
		default:
			w.WriteHeader(http.StatusNoContent)
		}
	}))
	t.Cleanup(bus.Close)
	c, err := client.New(bus.URL, "token", client.WithRetries(0))
	require.NoError(t, err)
	t.Cleanup(c.CloseIdleConnections)
	causes := make(chan error, 1)
	handle := func(ctx context.Context, _ jobs.Fetched) error {
		<-ctx.Done()
		causes <- context.Cause(ctx)
		return nil
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- jobs.New(c).Work(ctx, "ship", handle, jobs.WorkOptions{Wait: 20 * time.Millisecond}) }()
	require.ErrorIs(t, <-causes, context.DeadlineExceeded, "the deadline has passed")
	const success = `{"status":"succeeded","attempt":3,"retryable":true}`
	assert.Equal(t, success, <-reported)
	assert.Equal(t, success, <-reported)
	stop()
	assert.NoError(t, <-ended)
}
