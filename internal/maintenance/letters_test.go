package maintenance_test

import (
	"bytes"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/maintenance"
	"routemaster/internal/queue"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store"
	"routemaster/internal/store/storetest"
	"routemaster/internal/telemetry"
)

// TestAutodropTrimsDeadLetters has letters that are too many and letters of a subscriber that is
// gone, also where Redis does not report its memory.
func TestAutodropTrimsDeadLetters(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		b := storetest.NewBus(t, server)
		ctx := t.Context()
		b.AddSubscriber(storetest.Alice, 0, 100, "widgets")
		b.SetOption(storetest.Alice, "dead_letters", `{"keep_events":3}`)
		for i := range 5 {
			b.Bury(storetest.DeadLetter{Number: i, Token: storetest.Alice, Reason: bus.DiedRefused, DiedAt: i, Events: []int{i}})
		}
		b.Bury(storetest.DeadLetter{Number: 9, Token: storetest.Bob, Reason: bus.DiedRefused, Events: []int{1}})
		var log bytes.Buffer
		registry := telemetry.NewRegistry()
		recorder := telemetry.NewRecorder(registry, b.Store, slog.New(slog.DiscardHandler))
		now := func() time.Time { return storetest.After(10) }
		keeper := maintenance.New(store.NewBus(b.Store), b.Store, b.Queue, bus.MemoryLimits{Max: 1 << 40}, recorder, slog.New(slog.NewTextHandler(&log, nil)), now)
		for range 2 {
			assert.Equal(t, queue.Done, keeper.Autodrop(ctx, nil))
		}
		assert.Equal(t, map[string]string{string(storetest.Alice): "3"}, server.Raw.HGetAll(ctx, "deadletters:events").Val())
		const line = `level=WARN msg="dropped dead letters that were too many" letters=2 events=2 subscribers.alice=2`
		assert.Equal(t, 1, strings.Count(log.String(), line), log.String())
		assert.Equal(t, 1, strings.Count(log.String(), `"removed dead letters of subscribers that are gone" letters=1`), log.String())
		page := httptest.NewRecorder()
		registry.Handler().ServeHTTP(page, httptest.NewRequestWithContext(ctx, "GET", "/metrics", nil))
		assert.Contains(t, page.Body.String(), `routemaster_dead_letters_dropped_events_total{subscriber="alice"} 2`)
		b.RequireSound()
	})
}

// TestAutodropGoesOnWithoutDeadLetters overwrites the index of dead letters.
func TestAutodropGoesOnWithoutDeadLetters(t *testing.T) {
	server := rdbtest.Real(t)
	st := storetest.Open(t, server)
	var log bytes.Buffer
	fill(t, st, used(t, st)+1_000_000)
	require.NotEmpty(t, server.Raw.Keys(t.Context(), "batch:*").Val())
	require.NoError(t, server.Raw.Set(t.Context(), "deadletters:events", "x", 0).Err())
	keeper := maintenance.New(store.NewBus(st), st, storetest.NewQueue(st, 1), bus.MemoryLimits{Max: 1000}, nil, slog.New(slog.NewTextHandler(&log, nil)), frozen)
	assert.Equal(t, queue.Done, keeper.Autodrop(t.Context(), nil))
	assert.Contains(t, log.String(), "could not trim dead letters")
	assert.Empty(t, server.Raw.Keys(t.Context(), "batch:*").Val(), "batches went")
}
