package engine_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/machines/engine"
	"routemaster/internal/machines/machinestest"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/telemetry"
)

// TestAWebhookIsTraced: each call of a webhook is a span, also a call that fails.
func TestAWebhookIsTraced(t *testing.T) {
	exported := make(chan struct{}, 10)
	collector := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { exported <- struct{}{} }))
	t.Cleanup(collector.Close)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)
	tracer, err := telemetry.NewTracer("worker", "test", slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	f, s := machinestest.New(t, rdbtest.Embedded(t)), machinestest.NewService(t)
	f.Configure(func(c *engine.RunnerConfig) { c.Tracer = tracer })
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

// TestAWebhookContinuesATrace: all attempts of a webhook continue the trace of the request that
// caused them; the next run does not.
func TestAWebhookContinuesATrace(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://"+rdbtest.FreeAddress(t))
	tracer, err := telemetry.NewTracer("worker", "test", slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	t.Cleanup(tracer.Close)
	f, s := machinestest.New(t, rdbtest.Embedded(t)), machinestest.NewService(t)
	f.Configure(func(c *engine.RunnerConfig) { c.Tracer = tracer })
	f.Apply(strings.ReplaceAll(round, "URL", s.URL))
	request := "00-11111111111111111111111111111111-2222222222222222-01"
	f.Trace = func(context.Context) string { return request }
	f.Create("m", "ann", `{}`)
	s.Answer(machinestest.With(500, ""))
	f.Change("m", "ann", `{"go":1}`)
	s.Answer(machinestest.With(200, ""))
	f.Pass(time.Minute)
	f.Change("m", "ann", `{"go":9}`)
	f.Change("m", "ann", `{"go":"fails"}`)
	f.Trace = nil
	f.Change("m", "ann", `{"go":1}`)
	calls := s.Calls()
	require.Len(t, calls, 3)
	const trace = "00-11111111111111111111111111111111-"
	for i, within := range []bool{true, true, false} {
		sent := calls[i].Header.Get("Traceparent")
		assert.Equal(t, within, strings.HasPrefix(sent, trace), "call %d: %s", i, sent)
		assert.NotEqual(t, request, sent)
	}
}

// round is a machine whose labels come back after their action.
const round = `
state_machines:
  m:
    states:
      - gate: start
        triggers: [metadata: go]
        exit_condition: metadata.go < 5
        next: between
      - gate: between
        triggers: [event: entry]
        exit_condition: true
        next: act
      - action: act
        webhook: URL/act
        next: start
`
