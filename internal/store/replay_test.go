package store_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store"
	"routemaster/internal/store/storetest"
)

const (
	replayAlice, replayBob = storetest.Alice, storetest.Bob
	replayWidgets          = bus.TopicName("widgets")
)

// replayBench is a bus with a topic widgets that keeps a history, with replays.
type replayBench struct {
	*storetest.Bus
	history *store.History
	replays *store.Replays
}

// eachReplayBench runs a test with a history of at most the given number of events. Only bob is
// subscribed, and his events wait.
func eachReplayBench(t *testing.T, events int64, test func(t *testing.T, b *replayBench)) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		b := &replayBench{Bus: storetest.NewBus(t, server)}
		b.history, b.replays = store.NewHistory(b.Store), store.NewReplays(store.NewBus(b.Store), b.Store)
		b.AddSubscriber(replayBob, time.Hour, 100_000, replayWidgets)
		require.NoError(t, b.history.Put(t.Context(), replayWidgets, "", store.HistoryLimits{Events: events}, storetest.Start))
		test(t, b)
		b.RequireSound()
	})
}

// start begins a replay to alice.
func (b *replayBench) start(of store.ReplayRange) store.Replay {
	b.T.Helper()
	started, err := b.replays.Start(b.T.Context(), replayAlice, replayWidgets, of, storetest.Start)
	require.NoError(b.T, err)
	return started
}

// copy is one run, which has to end by itself. It returns how many events it has copied.
func (b *replayBench) copy() (events int, ended []store.Replay) {
	b.T.Helper()
	done, err := b.replays.Copy(b.T.Context(), storetest.After(50_000), always)
	require.NoError(b.T, err)
	return done.Events[replayAlice], done.Ended
}

// only is alice's only replay.
func (b *replayBench) only() store.Replay {
	b.T.Helper()
	all, err := b.replays.List(b.T.Context(), replayAlice)
	require.NoError(b.T, err)
	require.Len(b.T, all, 1)
	return all[0]
}

// deliver takes and acknowledges instant batches, up to a number of them, and returns the numbers
// of the events. All have to be of alice and of a replay.
func (b *replayBench) deliver(id bus.ReplayID, batches int) (numbers []int) {
	b.T.Helper()
	for range batches {
		task := b.Take("worker", 60_000)
		if task == nil {
			break
		}
		require.Equal(b.T, replayAlice, task.Delivery.Subscriber)
		require.NotNil(b.T, task.Delivery.Basis)
		assert.Equal(b.T, id, task.Delivery.Basis.Replay)
		numbers = append(numbers, storetest.Numbers(b.T, task)...)
		require.True(b.T, b.Complete(task, storetest.Done))
	}
	return numbers
}

func numbersUpTo(first, last int) (all []int) {
	for i := first; i <= last; i++ {
		all = append(all, i)
	}
	return all
}

// TestReplay replays events to alice that only bob has got.
func TestReplay(t *testing.T) {
	eachReplayBench(t, 1000, func(t *testing.T, b *replayBench) {
		ctx := t.Context()
		b.PublishEvents(replayWidgets, 1, 1000, 10)
		b.PublishEvents(replayWidgets, 1001, 1500, 20)
		b.AddSubscriber(replayAlice, time.Hour, 300, replayWidgets)
		topic, queued := b.Redis.HGetAll(ctx, "topic:widgets").Val(), b.Redis.HGet(ctx, "batches:gauges:event", string(replayBob)).Val()

		started := b.start(store.ReplayRange{From: 501, To: 1500})
		assert.Equal(t, []int64{501, 1500}, []int64{started.Next, started.To})
		assert.Equal(t, started, b.only())
		events, ended := b.copy()
		assert.Equal(t, 1000, events)
		done := b.only()
		assert.Equal(t, []store.Replay{done}, ended)
		assert.Equal(t, store.Replay{
			ID: started.ID, Subscriber: replayAlice, Topic: replayWidgets, Next: 1501, To: 1500, Copied: 1000, State: store.ReplayDone,
			CreatedAt: storetest.Start, Asked: started.Asked,
		}, done)
		assert.EqualValues(t, 501, done.From())

		b.RequireSound()
		assert.Equal(t, numbersUpTo(501, 1500), b.deliver(started.ID, 100), "once each, and in order")
		assert.Equal(t, topic, b.Redis.HGetAll(ctx, "topic:widgets").Val())
		assert.Equal(t, queued, b.Redis.HGet(ctx, "batches:gauges:event", string(replayBob)).Val())

		b.copy()
		assert.Equal(t, done, b.only(), "it is kept")
		for _, key := range []string{"replay:" + string(done.ID), "replays:of:" + string(replayAlice)} {
			assert.Equal(t, 24*time.Hour, b.Redis.TTL(ctx, key).Val(), key)
		}
		assert.Empty(t, b.Redis.Keys(ctx, "replays:running*").Val())
		assert.Empty(t, b.Redis.Keys(ctx, "replays:batches:*").Val())
		assert.False(t, b.Redis.HExists(ctx, "delivery:"+string(replayAlice), "plan").Val(), "it costs deliveries nothing more")
	})
}

func TestRange(t *testing.T) {
	eachReplayBench(t, 100, func(t *testing.T, b *replayBench) {
		b.AddSubscriber(replayAlice, time.Hour, 100, replayWidgets)
		for i := 1; i <= 120; i++ {
			b.PublishEvents(replayWidgets, i, i, 10*i) // 21 to 120 are left
		}
		at := func(event int) time.Time { return storetest.After(10 * event) }
		for name, c := range map[string]struct {
			of       store.ReplayRange
			from, to int64
		}{
			"from":             {store.ReplayRange{From: 50}, 50, 120},
			"before the first": {store.ReplayRange{From: 1}, 21, 120},
			"to":               {store.ReplayRange{From: 50, To: 60}, 50, 60},
			"beyond the last":  {store.ReplayRange{From: 120, To: 1000}, 120, 120},
			"since":            {store.ReplayRange{Since: at(70)}, 70, 120},
			"a moment after":   {store.ReplayRange{Since: at(70).Add(time.Millisecond)}, 71, 120},
			"until":            {store.ReplayRange{Since: at(1), Until: at(80)}, 21, 80},
			"a moment before":  {store.ReplayRange{From: 70, Until: at(80).Add(-time.Millisecond)}, 70, 79},
			"later":            {store.ReplayRange{Since: at(100), Until: at(900)}, 100, 120},
		} {
			started := b.start(c.of)
			assert.Equal(t, []int64{c.from, c.to}, []int64{started.Next, started.To}, name)
			_, err := b.replays.Cancel(t.Context(), replayAlice, started.ID)
			require.NoError(t, err)
		}
		for _, of := range []store.ReplayRange{{From: 121}, {From: 50, To: 49}, {From: 1, To: 20}, {Since: at(121)}, {From: 30, Until: at(20)}} {
			_, err := b.replays.Start(t.Context(), replayAlice, replayWidgets, of, storetest.Start)
			require.ErrorIs(t, err, store.ErrNothingToReplay, "%v", of)
		}
	})
}

func TestStartIsRefused(t *testing.T) {
	eachReplayBench(t, 100, func(t *testing.T, b *replayBench) {
		ctx := t.Context()
		b.PublishEvents(replayWidgets, 1, 10, 0)
		b.PublishEvents("gadgets", 1, 10, 0)
		b.AddSubscriber(replayAlice, time.Hour, 100, "gadgets")
		start := func(topic bus.TopicName) error {
			_, err := b.replays.Start(ctx, replayAlice, topic, store.ReplayRange{From: 1}, storetest.Start)
			return err
		}
		require.ErrorIs(t, start("things"), bus.ErrTopicUnknown)
		require.ErrorIs(t, start("gadgets"), store.ErrReplayNoHistory)
		require.ErrorIs(t, start(replayWidgets), store.ErrReplayNotSubscribed)
		b.AddSubscriber(replayAlice, time.Hour, 100, "gadgets", replayWidgets)
		first := b.start(store.ReplayRange{From: 1})
		require.ErrorIs(t, start(replayWidgets), store.ErrReplayRunning)

		_, err := b.replays.Cancel(ctx, replayBob, first.ID)
		require.ErrorIs(t, err, store.ErrReplayUnknown, "it is another's")
		_, err = b.replays.Cancel(ctx, replayAlice, "x")
		require.ErrorIs(t, err, store.ErrReplayUnknown)
		for _, want := range []bool{true, false} {
			ran, err := b.replays.Cancel(ctx, replayAlice, first.ID)
			require.NoError(t, err)
			assert.Equal(t, want, ran)
		}
		require.NoError(t, start(replayWidgets))
	})
}

// TestOldReplaysGo begins more replays than are kept.
func TestOldReplaysGo(t *testing.T) {
	eachReplayBench(t, 100, func(t *testing.T, b *replayBench) {
		ctx := t.Context()
		b.PublishEvents(replayWidgets, 1, 1, 0)
		b.AddSubscriber(replayAlice, time.Hour, 100, replayWidgets)
		begin := func(i int) (store.Replay, error) {
			return b.replays.Start(ctx, replayAlice, replayWidgets, store.ReplayRange{From: 1}, storetest.After(i))
		}
		for i := range store.MaxReplaysKept {
			started, err := begin(i)
			require.NoError(t, err)
			_, err = b.replays.Cancel(ctx, replayAlice, started.ID)
			require.NoError(t, err)
		}
		_, err := begin(store.MaxReplaysKept)
		require.ErrorIs(t, err, store.ErrTooManyReplays, "none is closed")
		b.copy()
		_, err = begin(store.MaxReplaysKept)
		require.NoError(t, err)
		all, err := b.replays.List(ctx, replayAlice)
		require.NoError(t, err)
		require.Len(t, all, store.MaxReplaysKept)
		assert.Equal(t, storetest.After(store.MaxReplaysKept), all[0].CreatedAt)
		assert.Equal(t, storetest.After(1), all[len(all)-1].CreatedAt, "the oldest is gone")

		// Expired replays leave the set when another begins.
		for _, one := range all[1:] {
			require.NoError(t, b.Redis.Del(ctx, "replay:"+string(one.ID)).Err())
		}
		_, err = b.replays.Cancel(ctx, replayAlice, all[0].ID)
		require.NoError(t, err)
		_, err = begin(1000)
		require.NoError(t, err)
		assert.EqualValues(t, 2, b.Redis.SCard(ctx, "replays:of:"+string(replayAlice)).Val())
	})
}
