package maintenance_test

import (
	"log/slog"
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
)

func always() bool { return true }

// newRich is a bus whose subscriber alice has something of everything: options, lanes, a batch in
// flight and others behind it, attempts, a gap, a replay that copies, and dead letters.
func newRich(t *testing.T, server *rdbtest.Server) (b *storetest.Bus, inFlight *storetest.Task) {
	b, ctx := storetest.NewBus(t, server), t.Context()
	b.PublishEvents("widgets", 1, 1, 0)
	require.NoError(t, store.NewHistory(b.Store).Put(ctx, "widgets", "", store.HistoryLimits{Events: 1000}, storetest.Start))
	b.PublishEvents("widgets", 2, 600, 0)
	b.AddSubscriber(storetest.Alice, 0, 1, "widgets")
	for name, value := range map[string]string{
		"lanes": "4", "gap_notices": "true", "keep_events": "20", "dead_letters": "{}", "partial": "true",
	} {
		b.SetOption(storetest.Alice, name, value)
	}
	b.PublishEvents("widgets", 601, 630, 1)
	require.True(t, b.Complete(b.Take("w1", 1), storetest.Result{
		RetryAt: storetest.After(5), Failure: bus.BatchFailure, Attempt: []byte("x"), AttemptsKept: 20,
	}))
	inFlight = b.Take("w1", 1)
	require.NotNil(t, inFlight)
	_, err := store.NewRetention(b.Store).Drop(ctx, storetest.After(2), always)
	require.NoError(t, err)
	replays := store.NewReplays(store.NewBus(b.Store), b.Store)
	_, err = replays.Start(ctx, storetest.Alice, "widgets", store.ReplayRange{From: 1}, storetest.After(3))
	require.NoError(t, err)
	slices := 0
	_, err = replays.Copy(ctx, storetest.After(3), func() bool { slices++; return slices == 1 })
	require.NoError(t, err)
	for i := range 150 {
		b.Bury(storetest.DeadLetter{Number: i, Token: storetest.Alice, Reason: bus.DiedOfAge, DiedAt: i, Events: []int{i}})
	}
	b.RequireSound()
	return b, inFlight
}

// TestNothingIsLeftOfASubscriberThatIsGone has most of it go at once, the dead letters with the
// next run of autodrop, and the batches as they come up.
func TestNothingIsLeftOfASubscriberThatIsGone(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		b, inFlight := newRich(t, server)
		ctx := t.Context()
		owned := []string{"options:*", "delivery:*", "attempts:*", "gaps:*", "replay*", "retention", "subscriber*", "topics:*"}
		for _, pattern := range owned {
			require.NotEmpty(t, server.Raw.Keys(ctx, pattern).Val(), pattern)
		}
		require.NoError(t, b.DeleteSubscriber(ctx, storetest.Alice))
		for _, pattern := range owned {
			assert.Empty(t, server.Raw.Keys(ctx, pattern).Val(), pattern)
		}
		b.RequireSound()

		now := func() time.Time { return storetest.After(10_000) }
		keeper := maintenance.New(store.NewBus(b.Store), b.Store, b.Queue, bus.MemoryLimits{Max: 1 << 40}, nil, slog.New(slog.DiscardHandler), now)
		assert.Equal(t, queue.Done, keeper.Autodrop(ctx, nil))
		assert.Empty(t, server.Raw.Keys(ctx, "deadletter*").Val())

		require.True(t, b.Complete(inFlight, storetest.Done))
		for left := 1; left > 0; left = b.MakeInstant(1_000_000) {
			for server.Raw.LLen(ctx, "jobs:instant:main").Val() > 0 {
				require.Nil(t, b.Take("w1", 1_000_000))
			}
		}
		require.NoError(t, b.DeleteToken(ctx, storetest.Alice))
		for key, value := range rdbtest.Dump(t, server.Raw) {
			assert.NotContains(t, key+value, "alice")
		}
		b.RequireSound()
	})
}
