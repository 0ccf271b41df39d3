package chaos

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/store"
	"routemaster/internal/store/storetest"
)

const (
	// archived is the topic that keeps a history, of all its events.
	archived = bus.TopicName("letters")
	// replayInterval is how often a replay is started, if none runs, and replayedTime how long ago its
	// first event was received.
	replayInterval = 500 * time.Millisecond
	replayedTime   = 10 * time.Second
)

// keepHistory has the archived topic keep all that it receives.
func (c *chaos) keepHistory() {
	limits := store.HistoryLimits{Events: 1_000_000}
	require.NoError(c.t, store.NewHistory(c.stores.Home(archived)).Put(c.t.Context(), archived, "", limits, time.Now()))
}

// startReplay starts a replay. It is refused while one runs, and where there is nothing to replay.
func (c *chaos) startReplay(ctx context.Context, _ *rand.Rand) {
	replays := store.NewReplays(c.meanwhile, c.meanwhile.Of(tokenOf(replayed)))
	if all, err := replays.List(ctx, tokenOf(replayed)); err != nil || len(all) == store.MaxReplaysKept {
		return // one more would have the oldest go, which is to be counted
	}
	since := time.Now().Add(-replayedTime)
	_, _ = replays.Start(ctx, tokenOf(replayed), archived, store.ReplayRange{Since: since}, time.Now())
}

// runningReplays is how many replays have not copied all of their range yet, -1 if that could not
// be found out.
func (c *chaos) runningReplays() (running int64) {
	all, err := store.NewReplays(c.stores, c.stores.Of(tokenOf(replayed))).List(c.t.Context(), tokenOf(replayed))
	if err != nil {
		return -1
	}
	for _, r := range all {
		if r.State == store.ReplayRunning {
			running++
		}
	}
	return running
}

// replayed returns the events that each replay must have delivered: its range of the history. It
// requires that the history has each event of its topic once, and that all replays are through.
func (c *chaos) replayed() (must []expected) {
	numbers := c.history()
	assert.ElementsMatch(c.t, c.ledger.acknowledgedIn(string(archived)), numbers, "the history")
	all, err := store.NewReplays(c.stores, c.stores.Of(tokenOf(replayed))).List(c.t.Context(), tokenOf(replayed))
	require.NoError(c.t, err)
	assert.NotEmpty(c.t, all, "replays")
	for _, r := range all {
		if r.State == store.ReplayFailed && c.faults.failedOver("", r.CreatedAt.Add(-completeMargin()), time.Now()) {
			continue // the history has lost its range, and events that were not acknowledged
		}
		assert.Equal(c.t, store.ReplayDone, r.State, r.Error)
		assert.Zero(c.t, r.Skipped, "nothing was dropped")
		assert.Equal(c.t, r.To+1, r.Next)
		must = append(must, expected{of: string(r.ID), subscriber: replayed, due: numbers[r.From()-1 : r.To]})
	}
	return must
}

// history reads the numbers of all events of the archived topic: that at position n is the n-th.
func (c *chaos) history() (numbers []int) {
	for {
		next := int64(len(numbers)) + 1
		read, err := store.NewHistory(c.stores.Home(archived)).Read(c.t.Context(), archived, next, 1000)
		require.NoError(c.t, err)
		for i, entry := range read.Entries {
			require.Equal(c.t, next+int64(i), entry.Position)
			numbers = append(numbers, storetest.Number(c.t, entry.Event))
		}
		if len(read.Entries) == 0 {
			return numbers
		}
	}
}
