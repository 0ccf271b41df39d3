package replay_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/history"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/replay"
	"routemaster/internal/store/stores"
	"routemaster/internal/store/storetest"
)

func TestMain(m *testing.M) { rdbtest.Main(m) }

const (
	alice, bob = storetest.Alice, storetest.Bob
	widgets    = bus.TopicName("widgets")
)

// bench is a bus with a topic widgets that keeps a history, with replays.
type bench struct {
	*storetest.Bus
	history *history.History
	replays *replay.Replays
}

// eachBench runs a test with a history of so many events at most. Only bob is subscribed, who lets
// his events wait.
func eachBench(t *testing.T, events int64, test func(t *testing.T, b *bench)) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		b := &bench{Bus: storetest.NewBus(t, server)}
		b.history, b.replays = history.New(b.Store), replay.New(stores.New(b.Store), b.Store)
		b.AddSubscriber(bob, time.Hour, 100_000, widgets)
		require.NoError(t, b.history.Put(t.Context(), widgets, "", history.Limits{Events: events}, storetest.Start))
		test(t, b)
		b.RequireSound()
	})
}

// start begins a replay to alice.
func (b *bench) start(of replay.Range) replay.Replay {
	b.T.Helper()
	started, err := b.replays.Start(b.T.Context(), alice, widgets, of, storetest.Start)
	require.NoError(b.T, err)
	return started
}

func always() bool { return true }

// copy is one run, which has to end by itself. It returns how many events it has copied.
func (b *bench) copy() (events int, ended []replay.Replay) {
	b.T.Helper()
	done, err := b.replays.Copy(b.T.Context(), storetest.After(50_000), always)
	require.NoError(b.T, err)
	return done.Events[alice], done.Ended
}

// only is alice's only replay.
func (b *bench) only() replay.Replay {
	b.T.Helper()
	all, err := b.replays.List(b.T.Context(), alice)
	require.NoError(b.T, err)
	require.Len(b.T, all, 1)
	return all[0]
}

// deliver takes and acknowledges what is instant, so many batches at most, and returns the numbers
// of the events. All have to be of alice and of a replay.
func (b *bench) deliver(id bus.ReplayID, batches int) (numbers []int) {
	b.T.Helper()
	for range batches {
		task := b.Take("worker", 60_000)
		if task == nil {
			break
		}
		require.Equal(b.T, alice, task.Delivery.Subscriber)
		require.NotNil(b.T, task.Delivery.Plan)
		assert.Equal(b.T, id, task.Delivery.Plan.Replay)
		numbers = append(numbers, storetest.Numbers(b.T, task)...)
		require.True(b.T, b.Complete(task, storetest.Done))
	}
	return numbers
}

func upTo(first, last int) (all []int) {
	for i := first; i <= last; i++ {
		all = append(all, i)
	}
	return all
}

// TestReplay replays to alice what only bob has got.
func TestReplay(t *testing.T) {
	eachBench(t, 1000, func(t *testing.T, b *bench) {
		ctx := t.Context()
		b.PublishEvents(widgets, 1, 1000, 10)
		b.PublishEvents(widgets, 1001, 1500, 20)
		b.AddSubscriber(alice, time.Hour, 300, widgets)
		topic, queued := b.Redis.HGetAll(ctx, "topic:widgets").Val(), b.Redis.HGet(ctx, "batches:gauges:event", string(bob)).Val()

		started := b.start(replay.Range{From: 501, To: 1500})
		assert.Equal(t, []int64{501, 1500}, []int64{started.Next, started.To})
		assert.Equal(t, started, b.only())
		events, ended := b.copy()
		assert.Equal(t, 1000, events)
		done := b.only()
		assert.Equal(t, []replay.Replay{done}, ended)
		assert.Equal(t, replay.Replay{
			ID: started.ID, Subscriber: alice, Topic: widgets, Next: 1501, To: 1500, Copied: 1000, State: replay.Done,
			CreatedAt: storetest.Start, Asked: started.Asked,
		}, done)
		assert.EqualValues(t, 501, done.From())

		b.RequireSound()
		assert.Equal(t, upTo(501, 1500), b.deliver(started.ID, 100), "once each, and in order")
		assert.Equal(t, topic, b.Redis.HGetAll(ctx, "topic:widgets").Val())
		assert.Equal(t, queued, b.Redis.HGet(ctx, "batches:gauges:event", string(bob)).Val())

		b.copy()
		assert.Equal(t, done, b.only(), "it is kept")
		for _, key := range []string{"replay:" + string(done.ID), "replays:of:" + string(alice)} {
			assert.Equal(t, 24*time.Hour, b.Redis.TTL(ctx, key).Val(), key)
		}
		assert.Empty(t, b.Redis.Keys(ctx, "replays:running*").Val())
		assert.Empty(t, b.Redis.Keys(ctx, "replays:batches:*").Val())
		assert.False(t, b.Redis.HExists(ctx, "delivery:"+string(alice), "plan").Val(), "it costs deliveries nothing more")
	})
}

func TestRange(t *testing.T) {
	eachBench(t, 100, func(t *testing.T, b *bench) {
		b.AddSubscriber(alice, time.Hour, 100, widgets)
		for i := 1; i <= 120; i++ {
			b.PublishEvents(widgets, i, i, 10*i) // 21 to 120 are left
		}
		at := func(event int) time.Time { return storetest.After(10 * event) }
		for name, c := range map[string]struct {
			of       replay.Range
			from, to int64
		}{
			"from":             {replay.Range{From: 50}, 50, 120},
			"before the first": {replay.Range{From: 1}, 21, 120},
			"to":               {replay.Range{From: 50, To: 60}, 50, 60},
			"beyond the last":  {replay.Range{From: 120, To: 1000}, 120, 120},
			"since":            {replay.Range{Since: at(70)}, 70, 120},
			"a moment after":   {replay.Range{Since: at(70).Add(time.Millisecond)}, 71, 120},
			"until":            {replay.Range{Since: at(1), Until: at(80)}, 21, 80},
			"a moment before":  {replay.Range{From: 70, Until: at(80).Add(-time.Millisecond)}, 70, 79},
			"later":            {replay.Range{Since: at(100), Until: at(900)}, 100, 120},
		} {
			started := b.start(c.of)
			assert.Equal(t, []int64{c.from, c.to}, []int64{started.Next, started.To}, name)
			_, err := b.replays.Cancel(t.Context(), alice, started.ID)
			require.NoError(t, err)
		}
		for _, of := range []replay.Range{{From: 121}, {From: 50, To: 49}, {From: 1, To: 20}, {Since: at(121)}, {From: 30, Until: at(20)}} {
			_, err := b.replays.Start(t.Context(), alice, widgets, of, storetest.Start)
			require.ErrorIs(t, err, replay.ErrNothing, "%v", of)
		}
	})
}

func TestStartIsRefused(t *testing.T) {
	eachBench(t, 100, func(t *testing.T, b *bench) {
		ctx := t.Context()
		b.PublishEvents(widgets, 1, 10, 0)
		b.PublishEvents("gadgets", 1, 10, 0)
		b.AddSubscriber(alice, time.Hour, 100, "gadgets")
		start := func(topic bus.TopicName) error {
			_, err := b.replays.Start(ctx, alice, topic, replay.Range{From: 1}, storetest.Start)
			return err
		}
		require.ErrorIs(t, start("things"), bus.ErrTopicUnknown)
		require.ErrorIs(t, start("gadgets"), replay.ErrNoHistory)
		require.ErrorIs(t, start(widgets), replay.ErrNotSubscribed)
		b.AddSubscriber(alice, time.Hour, 100, "gadgets", widgets)
		first := b.start(replay.Range{From: 1})
		require.ErrorIs(t, start(widgets), replay.ErrRunning)

		_, err := b.replays.Cancel(ctx, bob, first.ID)
		require.ErrorIs(t, err, replay.ErrUnknown, "it is another's")
		_, err = b.replays.Cancel(ctx, alice, "x")
		require.ErrorIs(t, err, replay.ErrUnknown)
		for _, want := range []bool{true, false} {
			ran, err := b.replays.Cancel(ctx, alice, first.ID)
			require.NoError(t, err)
			assert.Equal(t, want, ran)
		}
		require.NoError(t, start(widgets))
	})
}

// TestOldReplaysGo begins more replays than are kept.
func TestOldReplaysGo(t *testing.T) {
	eachBench(t, 100, func(t *testing.T, b *bench) {
		ctx := t.Context()
		b.PublishEvents(widgets, 1, 1, 0)
		b.AddSubscriber(alice, time.Hour, 100, widgets)
		begin := func(i int) (replay.Replay, error) {
			return b.replays.Start(ctx, alice, widgets, replay.Range{From: 1}, storetest.After(i))
		}
		for i := range replay.MaxKept {
			started, err := begin(i)
			require.NoError(t, err)
			_, err = b.replays.Cancel(ctx, alice, started.ID)
			require.NoError(t, err)
		}
		_, err := begin(replay.MaxKept)
		require.ErrorIs(t, err, replay.ErrTooMany, "none is closed")
		b.copy()
		_, err = begin(replay.MaxKept)
		require.NoError(t, err)
		all, err := b.replays.List(ctx, alice)
		require.NoError(t, err)
		require.Len(t, all, replay.MaxKept)
		assert.Equal(t, storetest.After(replay.MaxKept), all[0].CreatedAt)
		assert.Equal(t, storetest.After(1), all[len(all)-1].CreatedAt, "the oldest is gone")

		// Those that have expired leave the set when another begins.
		for _, one := range all[1:] {
			require.NoError(t, b.Redis.Del(ctx, "replay:"+string(one.ID)).Err())
		}
		_, err = b.replays.Cancel(ctx, alice, all[0].ID)
		require.NoError(t, err)
		_, err = begin(1000)
		require.NoError(t, err)
		assert.EqualValues(t, 2, b.Redis.SCard(ctx, "replays:of:"+string(alice)).Val())
	})
}
