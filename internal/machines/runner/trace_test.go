package runner_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/machines/machinestest"
	"routemaster/internal/machines/runner"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/telemetry/tracing"
)

// TestAWebhookIsTraced has each call of a webhook be a span, also one that fails.
func TestAWebhookIsTraced(t *testing.T) {
	exported := make(chan struct{}, 10)
	collector := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { exported <- struct{}{} }))
	t.Cleanup(collector.Close)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)
	tracer, err := tracing.New("worker", "test", slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	f, s := machinestest.New(t, rdbtest.Embedded(t)), machinestest.NewService(t)
	f.Configure(func(c *runner.Config) { c.Tracer = tracer })
	f.Apply(strings.ReplaceAll(m, "URL", s.URL))
	s.Answer(machinestest.With(500, ""))
	f.Create("m", "ann", `{"go":true}`)
	s.Answer(machinestest.With(200, ""))
	f.Pass(time.Minute)
	calls := s.Calls()
	require.Len(t, calls, 2)
	first, second := calls[0].Header.Get("Traceparent"), calls[1].Header.Get("Traceparent")
	assert.Regexp(t, "^00-[0-9a-f]{32}-[0-9a-f]{16}-01$", first)
	assert.Regexp(t, "^00-[0-9a-f]{32}-[0-9a-f]{16}-01$", second)
	assert.NotEqual(t, first, second)
	tracer.Close()
	assert.NotEmpty(t, exported)
}
