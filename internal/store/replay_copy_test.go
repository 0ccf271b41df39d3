package store_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/store"
	"routemaster/internal/store/storetest"
)

// TestAReplayWaitsForRoom replays more than may be queued: to a subscriber that is paused, then
// takes a batch, and half of another. The other half still belongs to the replay, and makes room
// when it dies.
func TestAReplayWaitsForRoom(t *testing.T) {
	eachReplayBench(t, 100_000, func(t *testing.T, b *replayBench) {
		ctx := t.Context()
		const all = store.MaxWaiting + 1500
		for i := 0; i < all; i += 500 {
			b.PublishEvents(replayWidgets, i+1, i+500, i)
		}
		b.AddSubscriber(replayAlice, time.Hour, 1000, replayWidgets)
		b.SetOption(replayAlice, "dead_letters", "{}")
		require.NoError(t, b.Pause(ctx, replayAlice, bus.Forever))
		started := b.start(store.ReplayRange{From: 1})
		queued := func() string { return b.Redis.HGet(ctx, "batches:gauges:event", string(replayAlice)).Val() }

		events, _ := b.copy()
		assert.Equal(t, store.MaxWaiting, events)
		events, _ = b.copy()
		assert.Zero(t, events)
		assert.Equal(t, "10000", queued())
		require.Nil(t, b.Take("worker", 60_000), "paused")
		require.NoError(t, b.Resume(ctx, replayAlice))

		assert.Equal(t, numbersUpTo(1, 1000), b.deliver(started.ID, 1))
		events, _ = b.copy()
		assert.Equal(t, 1000, events)
		assert.Equal(t, store.ReplayRunning, b.only().State)

		task := b.Take("worker", 60_000)
		b.Complete(task, storetest.Result{
			RetryAt: storetest.After(60_001), Delivered: 500, Works: true,
			Slice: &store.SliceResult{KeepTurn: true, Removed: store.Ranges{{First: 0, Last: 499}}, Findings: &store.Findings{Refusals: 1}},
		})
		b.MakeInstant(60_001)
		task = b.Take("worker", 60_001)
		assert.Equal(t, started.ID, task.Delivery.Basis.Replay)
		assert.Equal(t, numbersUpTo(1501, 2000), storetest.Numbers(t, task))
		b.Complete(task, storetest.Result{Slice: &store.SliceResult{Letters: []store.DeadLetter{{
			ID: task.Delivery.Batch, Reason: bus.DiedRefused,
		}}}})
		events, ended := b.copy()
		assert.Equal(t, 500, events)
		require.Len(t, ended, 1)
		assert.EqualValues(t, all, ended[0].Copied)
		assert.Equal(t, numbersUpTo(2001, all), b.deliver(started.ID, 100))
	})
}

// TestCopyGoesOnWithinARun: a subscriber makes room while a run looks.
func TestCopyGoesOnWithinARun(t *testing.T) {
	eachReplayBench(t, 100_000, func(t *testing.T, b *replayBench) {
		const all = store.MaxWaiting + 1000
		for i := 0; i < all; i += 1000 {
			b.PublishEvents(replayWidgets, i+1, i+1000, i)
		}
		b.AddSubscriber(replayAlice, time.Hour, 1000, replayWidgets)
		started := b.start(store.ReplayRange{From: 1})
		calls := 0
		done, err := b.replays.Copy(t.Context(), storetest.Start, func() bool {
			if calls++; calls > 11 { // ten slices, and a look at the full queue
				b.deliver(started.ID, 1)
			}
			return true
		})
		require.NoError(t, err)
		assert.Equal(t, all, done.Events[replayAlice])
		assert.Equal(t, store.ReplayDone, b.only().State)
	})
}

// TestALostPartIsSkipped trims the history while it is replayed.
func TestALostPartIsSkipped(t *testing.T) {
	eachReplayBench(t, 100_000, func(t *testing.T, b *replayBench) {
		b.PublishEvents(replayWidgets, 1, 3000, 0)
		b.AddSubscriber(replayAlice, time.Hour, 100, replayWidgets)
		started := b.start(store.ReplayRange{From: 1, To: 2900})
		slices := 0
		_, err := b.replays.Copy(t.Context(), storetest.Start, func() bool { slices++; return slices <= 1 })
		require.NoError(t, err)
		assert.EqualValues(t, 1000, b.only().Copied)

		keep := func(events int64) {
			t.Helper()
			require.NoError(t, b.history.Put(t.Context(), replayWidgets, "", store.HistoryLimits{Events: events}, storetest.Start))
			_, err := b.history.Trim(t.Context(), storetest.Start, always)
			require.NoError(t, err)
		}
		keep(1500)
		events, _ := b.copy()
		assert.Equal(t, 1400, events)
		done := b.only()
		assert.Equal(t, []int64{1, 2901, 2400, 500}, []int64{done.From(), done.Next, done.Copied, done.Skipped})
		assert.Equal(t, append(numbersUpTo(1, 1000), numbersUpTo(1501, 2900)...), b.deliver(started.ID, 100))

		// All of the range is lost.
		b.start(store.ReplayRange{From: 1600, To: 2000})
		keep(100)
		b.SetOption(replayAlice, "gap_notices", "true")
		events, ended := b.copy()
		assert.Zero(t, events)
		require.Len(t, ended, 1)
		gap := b.Redis.HGetAll(t.Context(), "gaps:"+string(replayAlice)).Val()
		assert.Equal(t, []string{"401", "0", "history"}, []string{gap["events"], gap["batches"], gap["reason"]}, "it is told of")
		assert.Equal(t, []int64{0, 401}, []int64{ended[0].Copied, ended[0].Skipped})
		assert.Equal(t, store.ReplayDone, ended[0].State)
	})
}

func TestWhatEndsAReplay(t *testing.T) {
	for name, c := range map[string]struct {
		happens func(b *replayBench) error
		state   store.ReplayState
		why     string
	}{
		"it is cancelled": {func(b *replayBench) error {
			_, err := b.replays.Cancel(b.T.Context(), replayAlice, b.only().ID)
			return err
		}, store.ReplayCancelled, ""},
		"the topic is left": {func(b *replayBench) error {
			return b.Unsubscribe(b.T.Context(), replayAlice, replayWidgets)
		}, store.ReplayCancelled, "the subscriber is not subscribed to the topic any more"},
		"the history is removed": {func(b *replayBench) error {
			return b.history.Delete(b.T.Context(), replayWidgets, "")
		}, store.ReplayFailed, "the topic keeps no history any more"},
		"the topic is deleted": {func(b *replayBench) error {
			return b.DeleteTopic(b.T.Context(), replayWidgets, "")
		}, store.ReplayFailed, "the topic keeps no history any more"},
		"the topic is made anew": {func(b *replayBench) error {
			if err := b.DeleteTopic(b.T.Context(), replayWidgets, ""); err != nil {
				return err
			}
			b.PublishEvents(replayWidgets, 1, 1, 0)
			return b.history.Put(b.T.Context(), replayWidgets, "", store.HistoryLimits{Events: 10}, storetest.Start)
		}, store.ReplayFailed, "the topic has fewer events by now: it was deleted and has begun anew, or Redis has lost them"},
	} {
		t.Run(name, func(t *testing.T) {
			eachReplayBench(t, 100_000, func(t *testing.T, b *replayBench) {
				b.PublishEvents(replayWidgets, 1, 2000, 0)
				b.AddSubscriber(replayAlice, time.Hour, 1000, replayWidgets, "gadgets")
				started := b.start(store.ReplayRange{From: 1})
				slices := 0
				_, err := b.replays.Copy(t.Context(), storetest.Start, func() bool { slices++; return slices <= 1 })
				require.NoError(t, err)
				require.NoError(t, c.happens(b))
				events, ended := b.copy()
				assert.Zero(t, events)
				found := b.only()
				assert.Equal(t, []any{c.state, c.why, int64(1000)}, []any{found.State, found.Error, found.Copied})
				if c.why != "" {
					assert.Equal(t, []store.Replay{found}, ended)
				}
				assert.Equal(t, numbersUpTo(1, 1000), b.deliver(started.ID, 100), "what was copied is delivered")
				b.copy()
				assert.Empty(t, b.Redis.Keys(t.Context(), "replays:running").Val())
			})
		})
	}
}

// TestReplaysGoWithTheirSubscriber: a run meets a replay whose subscriber has gone.
func TestReplaysGoWithTheirSubscriber(t *testing.T) {
	eachReplayBench(t, 100_000, func(t *testing.T, b *replayBench) {
		b.PublishEvents(replayWidgets, 1, 2000, 0)
		b.AddSubscriber(replayAlice, time.Hour, 1000, replayWidgets)
		b.start(store.ReplayRange{From: 1})
		slices := 0
		done, err := b.replays.Copy(t.Context(), storetest.Start, func() bool {
			if slices++; slices == 2 {
				require.NoError(t, b.DeleteSubscriber(t.Context(), replayAlice))
			}
			return true
		})
		require.NoError(t, err)
		assert.Equal(t, 1000, done.Events[replayAlice])
		assert.Empty(t, done.Ended)
		assert.Empty(t, b.Redis.Keys(t.Context(), "replay*").Val())
	})
}

// TestAReplayFollowsItsToken changes the token of a subscriber in the middle.
func TestAReplayFollowsItsToken(t *testing.T) {
	eachReplayBench(t, 100_000, func(t *testing.T, b *replayBench) {
		ctx := t.Context()
		b.PublishEvents(replayWidgets, 1, 2000, 0)
		b.AddSubscriber(replayAlice, time.Hour, 1000, replayWidgets)
		b.start(store.ReplayRange{From: 1})
		slices := 0
		_, err := b.replays.Copy(ctx, storetest.Start, func() bool { slices++; return slices <= 1 })
		require.NoError(t, err)
		const heir = bus.Token("alice--2")
		_, _, err = b.RotateToken(ctx, replayAlice, heir)
		require.NoError(t, err)
		for done := false; !done; {
			_, done, err = b.Relabel(ctx, replayAlice, store.BeginRelabelling(), time.Minute)
			require.NoError(t, err)
		}
		require.NoError(t, b.FinishRotation(ctx, replayAlice))
		done, err := b.replays.Copy(ctx, storetest.Start, always)
		require.NoError(t, err)
		assert.Equal(t, map[bus.Token]int{heir: 1000}, done.Events)
		all, err := b.replays.List(ctx, heir)
		require.NoError(t, err)
		require.Len(t, all, 1)
		assert.Equal(t, []any{heir, store.ReplayDone}, []any{all[0].Subscriber, all[0].State})
	})
}

// TestThePlanStays takes the last option away while replayed events wait.
func TestThePlanStays(t *testing.T) {
	eachReplayBench(t, 100_000, func(t *testing.T, b *replayBench) {
		ctx := t.Context()
		hasPlan := func() bool { return b.Redis.HExists(ctx, "delivery:"+string(replayAlice), "plan").Val() }
		b.PublishEvents(replayWidgets, 1, 10, 0)
		b.AddSubscriber(replayAlice, time.Hour, 5, replayWidgets)
		b.SetOption(replayAlice, "partial", "true")
		started := b.start(store.ReplayRange{From: 1})
		b.copy()
		b.SetOption(replayAlice, "partial", "false")
		assert.True(t, hasPlan())
		assert.Equal(t, numbersUpTo(1, 10), b.deliver(started.ID, 2))
		b.copy()
		assert.False(t, hasPlan())
	})
}
