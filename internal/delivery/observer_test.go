package delivery

import (
	"bytes"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"routemaster/internal/bus"
	"routemaster/internal/outbound"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store"
	"routemaster/internal/telemetry"
)

// observe observes attempts, all acknowledged, and returns the log and the metrics.
func observe(t *testing.T, attempts ...outbound.Attempt) (log, page string) {
	t.Helper()
	return observeBatch(t, &store.Delivery{Client: "alice"}, attempts...)
}

// observeBatch observes attempts to deliver a batch.
func observeBatch(t *testing.T, batch *store.Delivery, attempts ...outbound.Attempt) (log, page string) {
	t.Helper()
	var lines rdbtest.Buffer
	logger := telemetry.NewLogger(&lines, slog.LevelInfo, false)
	defer telemetry.Flush(logger)
	registry := telemetry.NewRegistry()
	o := observer{
		recorder: telemetry.NewRecorder(registry, nil, logger), log: logger, now: time.Now,
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
		batch.Basis = &store.Basis{Test: test}
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
	assert.Contains(t, log, `level=WARN msg="out of file descriptors; raise the limit of open files" doing="connecting to a callback"`)
}

// A subscriber that fails at 20 events a second wrote 20 lines a second, and as many again if it
// answered 410 or its batches became dead letters.
func TestASubscriberThatFailsOftenIsALineIn10Seconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lines bytes.Buffer
		log := telemetry.NewLogger(&lines, slog.LevelInfo, false)
		o := observer{log: log, now: time.Now}
		gone := outbound.Attempt{Status: http.StatusGone, Err: errors.New("410 Gone")}
		for range 20 * 60 {
			ctx, observation := o.begin(t.Context(), &store.Delivery{Client: "alice"}, 1)
			observation.end(ctx, gone, &decision{
				outcome: bus.OutcomeFailed, status: http.StatusGone, cause: gone.Err,
				DeliveryResult: store.DeliveryResult{Slice: &store.SliceResult{Letters: []store.DeadLetter{{Reason: bus.DiedRefused, Events: store.Ranges{{First: 0, Last: 0}}}}}},
			})
			time.Sleep(50 * time.Millisecond)
		}
		synctest.Wait()
		for _, message := range []string{"failed to deliver", "subscriber returned 410 Gone", "gave up on a batch"} {
			assert.InDelta(t, 7, strings.Count(lines.String(), message), 1, "%s\n%s", message, &lines)
		}
		assert.Contains(t, lines.String(), "times=")
	})
}
