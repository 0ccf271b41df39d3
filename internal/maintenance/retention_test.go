package maintenance_test

import (
	"bytes"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"routemaster/internal/bus"
	"routemaster/internal/maintenance"
	"routemaster/internal/queue"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store"
	"routemaster/internal/store/storetest"
	"routemaster/internal/telemetry"
)

// TestAutodropDropsWhatIsNotKept has batches that are too old for one subscriber, which wants no
// notices, but not for another.
func TestAutodropDropsWhatIsNotKept(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		b := storetest.NewBus(t, server)
		b.AddSubscriber(storetest.Alice, time.Hour, 10, "widgets")
		b.AddSubscriber(storetest.Bob, time.Hour, 10, "widgets")
		b.SetOption(storetest.Alice, "keep_age", "60000")
		b.PublishEvents("widgets", 1, 5, 0)
		var log bytes.Buffer
		registry := telemetry.NewRegistry()
		recorder := telemetry.NewRecorder(registry, b.Store, slog.New(slog.DiscardHandler))
		now := func() time.Time { return storetest.After(60_001) }
		keeper := maintenance.New(store.NewBus(b.Store), b.Store, b.Queue, bus.MemoryLimits{Max: 1 << 40}, recorder, slog.New(slog.NewTextHandler(&log, nil)), now)
		for range 2 {
			assert.Equal(t, queue.Done, keeper.Autodrop(t.Context(), nil))
		}
		assert.Equal(t, map[string]string{"bob--2": "5"}, server.Raw.HGetAll(t.Context(), "batches:gauges:event").Val())
		const line = `msg="dropped batches that were too old or too many for their subscriber" subscriber=alice batches=1 events=5`
		assert.Equal(t, 1, strings.Count(log.String(), line), log.String())
		page := httptest.NewRecorder()
		registry.Handler().ServeHTTP(page, httptest.NewRequestWithContext(t.Context(), "GET", "/metrics", nil))
		assert.Contains(t, page.Body.String(), `routemaster_gap_events_total{reason="retention",subscriber="alice"} 5`)
		b.RequireSound()
	})
}
