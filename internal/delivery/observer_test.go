package delivery

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"routemaster/internal/bus"
	"routemaster/internal/outbound"
	"routemaster/internal/store"
	"routemaster/internal/telemetry"
	"routemaster/internal/telemetry/logs"
	"routemaster/internal/telemetry/metrics"
)

// observe observes attempts, all acknowledged, and returns the log and the metrics.
func observe(t *testing.T, attempts ...outbound.Attempt) (log, page string) {
	t.Helper()
	return observeBatch(t, &store.Delivery{Client: "alice"}, attempts...)
}

// observeBatch observes attempts to deliver a batch.
func observeBatch(t *testing.T, batch *store.Delivery, attempts ...outbound.Attempt) (log, page string) {
	t.Helper()
	var lines bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&lines, nil))
	registry := metrics.NewRegistry()
	o := observer{
		recorder: telemetry.NewRecorder(registry, nil, logger), files: logs.NewFileWarner(logger), log: logger, now: time.Now,
	}
	for _, attempt := range attempts {
		ctx, observation := o.begin(t.Context(), batch, 1)
		observation.end(ctx, attempt, &decision{outcome: bus.OutcomeAcknowledged})
	}
	answer := httptest.NewRecorder()
	registry.Handler().ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	return lines.String(), answer.Body.String()
}

func TestConnectionsAreCounted(t *testing.T) {
	log, page := observe(t,
		outbound.Attempt{Connected: true},
		outbound.Attempt{Reused: true},
		outbound.Attempt{Reused: true},
		outbound.Attempt{Reused: true, Connected: true},
		outbound.Attempt{},
	)
	assert.Contains(t, page, `connections_total{reused="true"} 3`)
	assert.Contains(t, page, `connections_total{reused="false"} 2`)
	assert.Empty(t, log, "what is delivered is logged at the level debug")
}

// TestATestEventIsNotCounted also shows that others are, under the same name.
func TestATestEventIsNotCounted(t *testing.T) {
	batch := &store.Delivery{Client: "alice", Attempts: 1}
	for test, counted := range map[bool]string{true: " 0", false: " 1"} {
		batch.Plan = &store.Plan{Test: test}
		_, page := observeBatch(t, batch, outbound.Attempt{Connected: true})
		assert.Contains(t, page, "routemaster_delivery_duration_seconds_count{status=\"success\"}"+counted)
		assert.Contains(t, page, "routemaster_delivery_start_latency_seconds_count 0")
		assert.Equal(t, !test, strings.Contains(page, `subscriber="alice"`), page)
	}
}

func TestOutOfFilesIsLoggedOnceIn10Seconds(t *testing.T) {
	out := outbound.Attempt{Connected: true, OutOfFiles: syscall.EMFILE}
	log, _ := observe(t, out, out, out)
	assert.Equal(t, 1, strings.Count(log, "\n"), log)
	assert.Contains(t, log, `level=WARN msg="out of file descriptors; raise the limit of open files" doing="connecting to a callback" times=1`)
}
