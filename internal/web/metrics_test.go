package web_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/ingest"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/telemetry"
	"routemaster/internal/web"
)

// counted returns the handler of an API that counts in a registry, and traces if there is a tracer.
func counted(a *api, registry *telemetry.Registry, tracer *telemetry.Tracer) http.Handler {
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	config := web.Config{RootKey: rootKey, NonceTTL: time.Minute, MaxEventData: 64, Tracer: tracer}
	if registry != nil {
		config.Recorder = telemetry.NewRecorder(registry, nil, log)
	}
	return web.New(config, a.Bus, ingest.New(a.Bus, ingest.Options{}), http.NotFoundHandler(), log, time.Now).Handler()
}

func TestRequestsAreCountedByRoute(t *testing.T) {
	rdbtest.OneRedisOnly(t, "it is about HTTP")
	collector := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer collector.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)
	tracer, err := telemetry.NewTracer("web", "test", slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	defer tracer.Close()
	for name, tracer := range map[string]*telemetry.Tracer{"untraced": nil, "traced": tracer} {
		t.Run(name, func(t *testing.T) { requireCountedByRoute(t, tracer) })
	}
}

// requireCountedByRoute sends requests of each kind, with secrets in paths, methods and
// credentials, and requires that the metrics contain none of the secrets.
func requireCountedByRoute(t *testing.T, tracer *telemetry.Tracer) {
	t.Helper()
	registry := telemetry.NewRegistry()
	handler := counted(newAPI(t, rdbtest.Embedded(t)), registry, tracer)
	send := func(ctx context.Context, who, method, path, body string) {
		r := httptest.NewRequestWithContext(ctx, method, path, strings.NewReader(body))
		if who != "" {
			r.SetBasicAuth(who, "")
		}
		handler.ServeHTTP(httptest.NewRecorder(), r)
	}
	event := `{"type":"update","url":"https://x.example/1"}`
	for _, q := range [][4]string{
		{alice, "POST", "/topics/widgets", event},
		{alice, "POST", "/topics/widgets", event},
		{alice, "POST", "/topics/widgets", `{}`},
		{"wrong--s3cret", "POST", "/topics/widgets", event},
		{"", "GET", "/topics", ""},
		{alice, "HEAD", "/topics/widgets", ""},
		{rootKey, "DELETE", "/api_tokens/" + bob, ""},
		{rootKey, "GET", "/s3cret/" + bob, ""},
		{rootKey, "S3CRET", "/topics", ""},
		{"", "GET", "/health", ""},
	} {
		send(t.Context(), q[0], q[1], q[2], q[3])
	}
	left, leave := context.WithCancel(t.Context())
	leave()
	send(left, alice, "GET", "/pulse", "")
	w := httptest.NewRecorder()
	registry.Handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	page := w.Body.String()
	for series, value := range map[string]string{
		`requests_total{method="POST",route="/topics/{topic}",status="2xx"}`:        "2",
		`requests_total{method="POST",route="/topics/{topic}",status="4xx"}`:        "2",
		`requests_total{method="POST",route="/topics/{topic}",status="5xx"}`:        "0",
		`requests_total{method="GET",route="/topics",status="4xx"}`:                 "1",
		`requests_total{method="HEAD",route="/topics/{topic}",status="2xx"}`:        "1",
		`requests_total{method="DELETE",route="/api_tokens/{token}",status="2xx"}`:  "1",
		`requests_total{method="GET",route="(none)",status="4xx"}`:                  "1",
		`requests_total{method="(other)",route="(none)",status="4xx"}`:              "1",
		`requests_total{method="GET",route="/health",status="2xx"}`:                 "1",
		`requests_total{method="GET",route="/pulse",status="none"}`:                 "1",
		`request_duration_seconds_count{method="POST",route="/topics/{topic}"}`:     "4",
		`request_duration_seconds_bucket{method="GET",route="/health",le="16.384"}`: "1",
	} {
		assert.Contains(t, page, "\nroutemaster_http_"+series+" "+value+"\n")
	}
	for _, secret := range []string{alice, bob, rootKey, "s3cret", "S3CRET"} {
		assert.NotContains(t, page, secret)
	}
}

// TestCountingARequestAllocatesNothing compares requests with and without metrics.
func TestCountingARequestAllocatesNothing(t *testing.T) {
	if rdbtest.RaceDetector {
		t.Skip("the race detector allocates by chance")
	}
	rdbtest.OneRedisOnly(t, "it is about HTTP")
	a := newAPI(t, rdbtest.Embedded(t))
	allocations := func(registry *telemetry.Registry) float64 {
		handler := counted(a, registry, nil)
		request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/health", nil)
		w := &statusWriter{header: http.Header{}}
		serve := func() {
			r := *request
			handler.ServeHTTP(w, &r)
		}
		serve()
		return testing.AllocsPerRun(1000, serve)
	}
	require.InDelta(t, allocations(nil), allocations(telemetry.NewRegistry()), 0.1)
}
