package maintenance_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/maintenance"
	"routemaster/internal/queue"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store"
	"routemaster/internal/store/storetest"
)

// papers are a spare: a list of some text.
type papers struct {
	server *rdbtest.Server
	key    string
}

func (p *papers) DropOldest(ctx context.Context) (int, error) {
	dropped, err := p.server.Raw.LPopCount(ctx, p.key, 100).Result()
	if len(dropped) == 0 && p.left(ctx) == 0 {
		err = nil // what redis.Nil says
	}
	return len(dropped), err
}

func (p *papers) Dropped(log *slog.Logger, n int) {
	log.Warn("dropped papers", "key", p.key, "dropped", n)
}

func (p *papers) left(ctx context.Context) int64 { return p.server.Raw.LLen(ctx, p.key).Val() }

// TestSparesGoBeforeWhatIsOwed fills Redis with batches and spares.
func TestSparesGoBeforeWhatIsOwed(t *testing.T) {
	const mb = 1_000_000
	server := rdbtest.Real(t)
	st, ctx := storetest.Open(t, server), t.Context()
	fill(t, st, used(t, st)+mb)
	base, queued := used(t, st), server.Raw.ZCard(ctx, "batches:index").Val()
	first, second, broken := &papers{server, "first"}, &papers{server, "second"}, &papers{server, "broken"}
	sheet := strings.Repeat("x", 1000)
	for range 1000 {
		require.NoError(t, server.Raw.RPush(ctx, first.key, sheet).Err())
		require.NoError(t, server.Raw.RPush(ctx, second.key, sheet).Err())
	}
	require.NoError(t, server.Raw.Set(ctx, broken.key, "something else wrote here", 0).Err())

	var log bytes.Buffer
	run := func(limits bus.MemoryLimits) {
		log.Reset()
		keeper := maintenance.New(store.NewBus(st), st, storetest.NewQueue(st, 1), limits, nil, slog.New(slog.NewTextHandler(&log, nil)), frozen,
			broken, first, second)
		assert.Equal(t, queue.Done, keeper.Autodrop(ctx, nil))
	}
	run(bus.MemoryLimits{Max: base + 2*mb, MinFree: mb / 4}) // the low mark is in the middle of the first
	assert.Positive(t, first.left(ctx))
	assert.Less(t, first.left(ctx), int64(1000))
	assert.EqualValues(t, 1000, second.left(ctx), "the first comes first")
	assert.Regexp(t, `msg="dropped papers" bytes_used=\d+ .* key=first dropped=\d+\n`, log.String())
	assert.Equal(t, 1, strings.Count(log.String(), "\n"))

	run(bus.MemoryLimits{Max: base + mb/2, MinFree: mb / 8})
	assert.Zero(t, first.left(ctx))
	assert.Less(t, second.left(ctx), int64(1000))
	assert.Equal(t, queued, server.Raw.ZCard(ctx, "batches:index").Val(), "every batch is still there")

	run(bus.MemoryLimits{Max: 1000})
	assert.Zero(t, second.left(ctx))
	assert.Zero(t, server.Raw.ZCard(ctx, "batches:index").Val())
	assert.Contains(t, log.String(), `msg="dropped the oldest batches`)
}
