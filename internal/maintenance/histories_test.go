package maintenance_test

import (
	"bytes"
	"log/slog"
	"net/http/httptest"
	"slices"
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
	"routemaster/internal/wire"
)

// TestAutodropTrimsHistories has a topic that is idle, also where Redis does not report its memory.
func TestAutodropTrimsHistories(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		b := storetest.NewBus(t, server)
		ctx := t.Context()
		b.PublishEvents("widgets", 1, 1, 0)
		require.NoError(t, store.NewHistory(b.Store).Put(ctx, "widgets", "", store.HistoryLimits{Age: time.Minute}, storetest.Start))
		b.PublishEvents("widgets", 2, 4, 0)
		b.PublishEvents("widgets", 5, 5, 1)
		now := func() time.Time { return storetest.After(60_001) }
		keeper := maintenance.New(store.NewBus(b.Store), b.Store, b.Queue, bus.MemoryLimits{Max: 1 << 40}, nil, slog.New(slog.DiscardHandler), now)
		assert.Equal(t, queue.Done, keeper.Autodrop(ctx, nil))
		assert.EqualValues(t, 1, server.Raw.LLen(ctx, "history:widgets").Val())
		b.RequireSound()
	})
}

// TestHistoryGoesBeforeDeadLettersAndBatches fills Redis with all of these.
func TestHistoryGoesBeforeDeadLettersAndBatches(t *testing.T) {
	const mb = 1_000_000
	server := rdbtest.Real(t)
	b := storetest.NewBus(t, server)
	ctx, st := t.Context(), b.Store
	fill(t, st, used(t, st)+mb)
	b.SetOption("alice--1", "dead_letters", `{"keep_events":1000000,"keep_bytes":1000000000}`)
	queued := server.Raw.ZCard(ctx, "batches:index").Val()
	for i, limit := 0, used(t, st)+3*mb; used(t, st) < limit; i++ {
		b.Bury(storetest.DeadLetter{Number: i, Token: "alice--1", Reason: bus.DiedOfAge, DiedAt: i, Events: make([]int, 500)})
	}
	base, letters := used(t, st), server.Raw.ZCard(ctx, "deadletters:index:alice--1").Val()
	b.PublishEvents("unheard", 1, 1, 0)
	require.NoError(t, store.NewHistory(st).Put(ctx, "unheard", "", store.HistoryLimits{Events: 10_000}, storetest.Start))
	p := store.Publication{Topic: "unheard", Publisher: storetest.Publisher, ReceivedAt: 1}
	p.Events = slices.Repeat([]wire.PackedEvent{wire.PackedEvent(strings.Repeat("x", 600))}, 1000)
	for range 6 {
		require.NoError(t, b.Publish(ctx, p))
	}
	require.Greater(t, used(t, st), base+3*mb)

	var log bytes.Buffer
	registry := telemetry.NewRegistry()
	recorder := telemetry.NewRecorder(registry, st, slog.New(slog.DiscardHandler))
	run := func(limits bus.MemoryLimits) {
		log.Reset()
		now := func() time.Time { return storetest.Start }
		keeper := maintenance.New(store.NewBus(st), st, b.Queue, limits, recorder, slog.New(slog.NewTextHandler(&log, nil)), now)
		assert.Equal(t, queue.Done, keeper.Autodrop(ctx, nil))
		b.RequireSound()
	}
	stored := func() int64 { return server.Raw.LLen(ctx, "history:unheard").Val() }
	run(bus.MemoryLimits{Max: base + 3*mb, MinFree: mb / 4}) // the marks are at 2.75 and 2.5 MB of the history
	assert.Positive(t, stored())
	assert.Less(t, stored(), int64(6000))
	assert.Equal(t, letters, server.Raw.ZCard(ctx, "deadletters:index:alice--1").Val())
	assert.Contains(t, log.String(), `level=WARN msg="dropped the oldest events of histories: redis is about to be full"`)

	run(bus.MemoryLimits{Max: base - mb/2, MinFree: mb / 2}) // the low mark is half-way through the letters
	assert.Zero(t, stored())
	assert.Positive(t, server.Raw.ZCard(ctx, "deadletters:index:alice--1").Val())
	assert.Less(t, server.Raw.ZCard(ctx, "deadletters:index:alice--1").Val(), letters)
	assert.Equal(t, queued, server.Raw.ZCard(ctx, "batches:index").Val(), "every batch is still there")
	assert.Contains(t, log.String(), "topics=1\n")

	run(bus.MemoryLimits{Max: 1000})
	assert.Zero(t, server.Raw.ZCard(ctx, "batches:index").Val())
	assert.Regexp(t, `dropped the oldest batches.* history=0 dead_letters=\d+\n`, log.String())
	page := httptest.NewRecorder()
	registry.Handler().ServeHTTP(page, httptest.NewRequestWithContext(ctx, "GET", "/metrics", nil))
	assert.Contains(t, page.Body.String(), `routemaster_history_dropped_events_total{topic="unheard"} 6000`+"\n")
}
