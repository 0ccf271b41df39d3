package inspect_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/inspect"
	"routemaster/internal/layout"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store"
	"routemaster/internal/store/storetest"
)

func TestMain(m *testing.M) { rdbtest.Main(m) }

const (
	alice = storetest.Alice
	bob   = storetest.Bob
	aUID  = bus.BatchID("AAAABBBBCCCCDDDDEEEE")
)

var keys = layout.Keys{}

// fixture is a bus, and an inspector of it.
type fixture struct {
	*storetest.Bus
	*inspect.Inspector
}

// each runs a test on both engines.
func each(t *testing.T, test func(f *fixture)) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) { test(newFixture(t, server)) })
}

func newFixture(t *testing.T, server *rdbtest.Server) *fixture {
	b := storetest.NewBus(t, server)
	return &fixture{b, inspect.Of(b.Store)}
}

// batches lists all batches of a client, in pages of two.
func (f *fixture) batches(token bus.Token, ms int) (all []inspect.Batch) {
	f.T.Helper()
	for after := ""; ; {
		some, next, err := f.Batches(f.T.Context(), token, inspect.Page{After: after, Limit: 2}, storetest.After(ms))
		require.NoError(f.T, err)
		require.LessOrEqual(f.T, len(some), 2)
		all = append(all, some...)
		if after = next; after == "" {
			return all
		}
	}
}

// lines are batches as a line each: creation, attempts, events, state and next time (ms).
func lines(batches []inspect.Batch) (all []string) {
	ms := func(at time.Time) int64 { return at.Sub(storetest.Start).Milliseconds() }
	for _, b := range batches {
		next := "-"
		if !b.NextAt.IsZero() {
			next = fmt.Sprint(ms(b.NextAt))
		}
		all = append(all, fmt.Sprintf("%d: %d %d %s %s", ms(b.CreatedAt), b.Attempts, b.Events, b.State, next))
	}
	return all
}

// TestBatchesOnTheirWay follows batches of two events each from publishing to the end.
func TestBatchesOnTheirWay(t *testing.T) {
	each(t, func(f *fixture) {
		f.AddSubscriber(alice, 500*time.Millisecond, 2, "widgets")
		f.AddSubscriber(bob, 500*time.Millisecond, 10, "widgets")
		require.Empty(f.T, f.batches(alice, 0))
		for n := range 5 {
			f.PublishEvents("widgets", n+1, n+1, 10*n)
		}
		assert.Equal(f.T, []string{"0: 0 2 waiting 50", "20: 0 2 waiting 50", "40: 0 1 current 540"}, lines(f.batches(alice, 50)))
		assert.Equal(f.T, []string{"0: 0 5 current 500"}, lines(f.batches(bob, 50)))

		f.MakeInstant(50)
		task := f.Take("w1", 60)
		require.Nil(f.T, f.Take("w2", 60), "one of a subscriber at a time")
		assert.Equal(f.T, []string{"0: 1 2 delivering -", "20: 0 2 waiting -", "40: 0 1 current 540"}, lines(f.batches(alice, 60)))
		require.True(f.T, f.Complete(task, storetest.Result{
			RetryAt: storetest.After(1000), ThrottledUntil: storetest.After(3000), Failure: bus.EndpointFailure,
		}))
		assert.Equal(f.T, []string{"0: 1 2 retrying 3000", "20: 0 2 waiting 3000", "40: 0 1 current 3000"}, lines(f.batches(alice, 70)),
			"they wait for the throttle")

		ctx, key := f.T.Context(), keys.Delivery(alice)
		require.NoError(f.T, f.Redis.HSet(ctx, key, "paced_until", fmt.Sprintf("%d.250", storetest.After(4000).UnixMilli())).Err())
		assert.Equal(f.T, "0: 1 2 retrying 4001", lines(f.batches(alice, 70))[0])
		require.NoError(f.T, f.Redis.HSet(ctx, key, "paused_until", storetest.After(9000).UnixMilli()).Err())
		assert.Equal(f.T, "0: 1 2 retrying 9000", lines(f.batches(alice, 70))[0])
		require.NoError(f.T, f.Redis.HSet(ctx, key, "paused_until", "253402300799999").Err())
		assert.Equal(f.T, "0: 1 2 retrying -", lines(f.batches(alice, 70))[0])

		_, _, err := f.Batches(ctx, alice, inspect.Page{After: "12-x", Limit: 3}, storetest.Start)
		assert.ErrorAs(f.T, err, new(*bus.Invalid))
	})
}

// TestBatchesInLanes changes the lanes while batches wait.
func TestBatchesInLanes(t *testing.T) {
	each(t, func(f *fixture) {
		f.AddSubscriber(alice, 500*time.Millisecond, 1, "widgets")
		f.SetOption(alice, "lanes", "4")
		publish := func(lane, ms int) {
			number := f.NumberIn(alice, "widgets", lane)
			f.PublishEvents("widgets", number, number, ms)
		}
		publish(3, 0)
		publish(3, 10)
		require.NotNil(f.T, f.Take("w1", 20))
		require.Nil(f.T, f.Take("w2", 20), "one of a lane at a time")
		f.SetOption(alice, "lanes", "2")
		require.NoError(f.T, f.PatchSubscriber(f.T.Context(), alice, bus.Subscription{MaxEvents: new(2)}, storetest.Start))
		publish(1, 30)
		assert.Equal(f.T, []string{"0: 1 1 delivering -", "10: 0 1 waiting -", "30: 0 1 current 530"}, lines(f.batches(alice, 40)))
		for n, lane := range []int{3, 3, 1} {
			assert.Equal(f.T, lane, f.batches(alice, 40)[n].Lane)
		}
		f.SetOption(alice, "lanes", "1")
		assert.Equal(f.T, "30: 0 1 current 500", lines(f.batches(alice, 40))[2], "in the lane that is no more")
	})
}

// TestManyBatches has a backlog of others in front, opened in the same millisecond.
func TestManyBatches(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		f.AddSubscriber(bob, time.Hour, 1, "gadgets")
		f.AddSubscriber(alice, time.Hour, 1, "widgets")
		f.PublishEvents("gadgets", 1, 1200, 0)
		f.PublishEvents("widgets", 1, 3, 0)
		f.PublishEvents("gadgets", 1, 700, 0)
		f.PublishEvents("widgets", 4, 5, 1)
		batches := f.batches(alice, 1)
		require.Len(f.T, batches, 5)
		assert.Equal(f.T, storetest.After(1), batches[4].CreatedAt)
		assert.Len(f.T, f.batches(bob, 1), 1900)
	})
}

// TestBatchesBehindThoseOfOthers has more batches of others in front than are ever looked at.
func TestBatchesBehindThoseOfOthers(t *testing.T) {
	f := newFixture(t, rdbtest.Real(t)) // the embedded engine takes seconds for so many
	f.AddSubscriber(alice, 500*time.Millisecond, 2, "widgets")
	ctx, others := f.T.Context(), make([]redis.Z, 20_000)
	for n := range others {
		others[n] = redis.Z{Member: strconv.Itoa(n)}
	}
	require.NoError(f.T, f.Redis.ZAdd(ctx, keys.BatchesIndex(), others...).Err())
	f.PublishEvents("widgets", 1, 1, 0)
	assert.Equal(f.T, []string{"0: 0 1 current 500"}, lines(f.batches(alice, 10)))
	f.PublishEvents("widgets", 2, 3, 10)
	assert.Empty(f.T, f.batches(alice, 20), "no worker has seen that one of them is due")
	f.MakeInstant(20)
	require.NotNil(f.T, f.Take("w1", 20))
	assert.Equal(f.T, []string{"0: 1 2 delivering -", "10: 0 1 current 510"}, lines(f.batches(alice, 30)))
}

// TestAPageOfBatchesIsFull lists batches that stand in a queue and have another token, as during a
// rotation.
func TestAPageOfBatchesIsFull(t *testing.T) {
	each(t, func(f *fixture) {
		f.AddSubscriber(alice, time.Second, 1, "widgets")
		f.PublishEvents("widgets", 1, 6, 0)
		require.NotNil(f.T, f.Take("w1", 2000))
		require.Nil(f.T, f.Take("w2", 2000), "the others stand in the lane")
		all := f.batches(alice, 2000)
		require.Len(f.T, all, 6)
		for _, b := range all[1:4] {
			require.NoError(f.T, f.Redis.LSet(f.T.Context(), keys.Batch(b.ID), 0, string(bob)).Err())
		}
		first, next, err := f.Batches(f.T.Context(), alice, inspect.Page{Limit: 2}, storetest.After(2000))
		require.NoError(f.T, err)
		assert.Equal(f.T, []inspect.Batch{all[0], all[4]}, first)
		last, end, err := f.Batches(f.T.Context(), alice, inspect.Page{After: next, Limit: 2}, storetest.After(2000))
		require.NoError(f.T, err)
		assert.Equal(f.T, []inspect.Batch{all[5]}, last)
		assert.Empty(f.T, end)
	})
}

// TestAnEmptyQueueIsNotSearchedFor: the bus has a queue, but the subscriber has none.
func TestAnEmptyQueueIsNotSearchedFor(t *testing.T) {
	f := newFixture(t, rdbtest.Real(t)) // the embedded engine does not count commands
	f.AddSubscriber(alice, time.Hour, 1, "widgets")
	f.AddSubscriber(bob, time.Hour, 1, "gadgets")
	f.PublishEvents("gadgets", 1, 3, 0)
	require.NoError(t, f.Redis.ConfigResetStat(t.Context()).Err())
	assert.Empty(t, f.batches(alice, 10))
	assert.NotContains(t, f.Redis.Info(t.Context(), "commandstats").Val(), "cmdstat_lindex", "whose batches those of the bus are")
	assert.Len(t, f.batches(bob, 10), 3)
}

// TestBatchesAreListedWithoutTheirGauge has due batches that no worker has seen, which are found
// only by the index of the bus, since they stand nowhere else.
func TestBatchesAreListedWithoutTheirGauge(t *testing.T) {
	each(t, func(f *fixture) {
		f.AddSubscriber(alice, 0, 1, "widgets")
		f.PublishEvents("widgets", 1, 2, 0)
		ctx, gauge := f.T.Context(), keys.BatchGauge()
		assert.Len(f.T, f.batches(alice, 10), 2)
		require.NoError(f.T, f.Redis.HSet(ctx, gauge, string(alice), 0).Err())
		assert.Len(f.T, f.batches(alice, 10), 2, "0")
		require.NoError(f.T, f.Redis.Del(ctx, gauge).Err())
		assert.Len(f.T, f.batches(alice, 10), 2, "none")
		require.NoError(f.T, f.Redis.Set(ctx, gauge, "x", 0).Err())
		assert.Len(f.T, f.batches(alice, 10), 2, "of another type")
	})
}

func TestABatchIsShown(t *testing.T) {
	each(t, func(f *fixture) {
		f.AddSubscriber(alice, time.Hour, 1500, "widgets")
		f.PublishEvents("widgets", 1, 1200, 0)
		id := f.batches(alice, 0)[0].ID
		ctx := f.T.Context()
		require.NoError(f.T, f.Redis.LSet(ctx, keys.Batch(id), 5, "\x91").Err())

		batch, events, err := f.Batch(ctx, alice, id, 0, storetest.Start)
		require.NoError(f.T, err)
		assert.Equal(f.T, 1200, batch.Events)
		assert.Equal(f.T, inspect.Current, batch.State)
		require.Len(f.T, events, inspect.EventsPerPage)
		assert.JSONEq(f.T, `{"topic":"widgets","type":"update","url":"https://x.example/1","t":1}`, string(events[0]))
		assert.JSONEq(f.T, `{"unreadable":true}`, string(events[2]))
		_, events, err = f.Batch(ctx, alice, id, 1000, storetest.Start)
		require.NoError(f.T, err)
		require.Len(f.T, events, 200)
		assert.True(f.T, strings.Contains(string(events[0]), "/1001"))

		_, _, err = f.Batch(ctx, bob, id, 0, storetest.Start)
		require.ErrorIs(f.T, err, inspect.ErrUnknownBatch)
		_, _, err = f.Batch(ctx, alice, aUID, 0, storetest.Start)
		require.ErrorIs(f.T, err, inspect.ErrUnknownBatch)
	})
}

// TestBatchesAreRemoved removes batches in each state.
func TestBatchesAreRemoved(t *testing.T) {
	each(t, func(f *fixture) {
		ctx := f.T.Context()
		f.AddSubscriber(alice, 500*time.Millisecond, 2, "widgets")
		f.PublishEvents("widgets", 1, 7, 0)
		task := f.Take("w1", 10)
		require.Nil(f.T, f.Take("w2", 10), "one of a subscriber at a time")
		batches := f.batches(alice, 10)
		require.Equal(f.T, []string{"0: 1 2 delivering -", "0: 0 2 waiting -", "0: 0 2 waiting -", "0: 0 1 current 500"}, lines(batches))
		remove := func(n int, token bus.Token) (inspect.Removed, error) {
			return f.Remove(ctx, token, batches[n].ID, storetest.After(20))
		}

		_, err := remove(0, alice)
		require.ErrorIs(f.T, err, inspect.ErrInFlight)
		_, err = remove(1, bob)
		require.ErrorIs(f.T, err, inspect.ErrUnknownBatch)
		for n, events := range map[int]int{1: 2, 3: 1} {
			removed, err := remove(n, alice)
			require.NoError(f.T, err)
			assert.Equal(f.T, inspect.Removed{Events: events, Lost: events}, removed)
			_, err = remove(n, alice)
			require.ErrorIs(f.T, err, inspect.ErrUnknownBatch)
		}
		f.RequireSound()
		f.PublishEvents("widgets", 8, 8, 30)
		require.True(f.T, f.Complete(task, storetest.Result{RetryAt: storetest.After(40), Failure: bus.BatchFailure}))
		_, err = remove(0, alice)
		require.NoError(f.T, err)
		assert.Equal(f.T, []string{"0: 0 2 waiting 50", "30: 0 1 current 530"}, lines(f.batches(alice, 50)))
		f.RequireSound()
		assert.Equal(f.T, []int{5, 6}, storetest.Numbers(f.T, f.Take("w1", 60)), "the next was woken")
	})
}

// TestARemovedNoticeComesAgain removes a batch of a subscriber that is told of gaps, and the notice
// of that.
func TestARemovedNoticeComesAgain(t *testing.T) {
	each(t, func(f *fixture) {
		ctx := f.T.Context()
		f.AddSubscriber(alice, time.Hour, 2, "widgets")
		f.SetOption(alice, "gap_notices", "true")
		f.PublishEvents("widgets", 1, 2, 3)
		for n, want := range []inspect.Removed{{Events: 2, Lost: 2}, {Events: 1}} {
			removed, err := f.Remove(ctx, alice, f.batches(alice, 5)[0].ID, storetest.After(5+n))
			require.NoError(f.T, err)
			assert.Equal(f.T, want, removed)
			f.RequireSound()
		}
		f.SetOption(alice, "dead_letters", "{}")
		f.PublishEvents("widgets", 3, 4, 7)
		told, at := storetest.GapIn(f.T, f.Take("w1", 7))
		assert.Equal(f.T, "2 events in 1 batches, 3 to 3: removed", told)
		assert.Equal(f.T, int64(6), at)
		require.Nil(f.T, f.Take("w2", 8))
	})
}

// TestARemovedBatchBecomesALetter removes batches of a subscriber that keeps dead letters: one as
// it was closed, one that was partly acknowledged, and a test event.
func TestARemovedBatchBecomesALetter(t *testing.T) {
	each(t, func(f *fixture) {
		ctx := f.T.Context()
		f.AddSubscriber(alice, time.Hour, 2, "widgets")
		require.NoError(f.T, f.PatchSubscriber(ctx, alice, bus.Subscription{Options: map[string]string{"dead_letters": `{"attempts":3}`}}, storetest.Start))
		f.PublishEvents("widgets", 1, 4, 0)
		batches := f.batches(alice, 0)
		require.NoError(f.T, f.Redis.HSet(ctx, keys.BatchState(batches[1].ID), "revision", 2).Err())
		for n, id := range map[int]string{0: string(batches[0].ID), 1: string(batches[1].ID) + "-2-2"} {
			removed, err := f.Remove(ctx, alice, batches[n].ID, storetest.After(20))
			require.NoError(f.T, err)
			assert.Equal(f.T, inspect.Removed{Events: 2, Letter: true}, removed)
			cause := f.Redis.HGetAll(ctx, keys.DeadLetterCause(batches[n].ID)).Val()
			assert.Equal(f.T, []string{"removed", fmt.Sprint(storetest.After(20).UnixMilli()), id}, []string{cause["reason"], cause["died_at"], cause["webhook_id"]})
			assert.EqualValues(f.T, store.BatchHeader+2, f.Redis.LLen(ctx, keys.DeadLetter(batches[n].ID)).Val())
		}
		test, err := f.TestEvent(ctx, alice, storetest.Start)
		require.NoError(f.T, err)
		removed, err := f.Remove(ctx, alice, test, storetest.After(20))
		require.NoError(f.T, err)
		assert.Equal(f.T, inspect.Removed{Events: 1}, removed)
		assert.Empty(f.T, f.batches(alice, 20))
		f.RequireSound()
	})
}
