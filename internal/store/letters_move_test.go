package store_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/layout"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store"
	"routemaster/internal/store/storetest"
)

var all = store.LetterSelection{}

// TestRedeliver puts letters back into a queue with batches: they come behind these, oldest first,
// as batches that were tried once.
func TestRedeliver(t *testing.T) {
	eachLetterBench(t, func(t *testing.T, b *letterBench) {
		ctx := t.Context()
		b.PublishEvents("widgets", 100, 100, 0)
		b.PublishEvents("widgets", 101, 101, 0)
		b.Bury(storetest.DeadLetter{Number: 1, Token: alice, Reason: bus.DiedOfAge, Created: 7, DiedAt: 50, Events: []int{1, 2, 3}})
		b.Bury(storetest.DeadLetter{Number: 2, Token: alice, Reason: bus.DiedOfAge, Created: 3, DiedAt: 60, Events: []int{4}})
		moved, err := b.letters.Redeliver(ctx, alice, all)
		require.NoError(t, err)
		assert.Equal(t, store.MovedLetters{Letters: 2, Events: 4}, moved)
		assert.Empty(t, b.Redis.Keys(ctx, "deadletter*").Val(), "nothing is left of a letter")
		assert.Equal(t, "6", b.Redis.HGet(ctx, "batches:gauges:event", string(alice)).Val())
		b.RequireSound()

		for _, want := range [][]int{{100, 101}, {1, 2, 3}, {4}} {
			task := b.Take("worker", 100)
			assert.Equal(t, want, storetest.Numbers(t, task))
			if want[0] == 1 {
				assert.Equal(t, storetest.LetterID(1), task.Delivery.Batch)
				assert.Equal(t, storetest.After(7), task.Delivery.CreatedAt, "the batch's")
				assert.Equal(t, 2, task.Delivery.Attempts, "it was tried before")
			}
			require.True(t, b.Complete(task, storetest.Result{Delivered: len(want)}))
		}
		assert.Nil(t, b.Take("worker", 100))
		assert.Empty(t, b.Redis.Keys(ctx, "batches:state:*").Val())
		assert.Empty(t, b.Redis.HGet(ctx, "delivery:"+string(alice), "plan").Val(), "there was no need of a plan")
	})
}

// TestRedeliveredBatchesKeepTheirIdentity redelivers a letter whose content had a webhook-id other
// than its UID: the batch keeps that, and its subscriber has an options version, so that it is
// read.
func TestRedeliveredBatchesKeepTheirIdentity(t *testing.T) {
	eachLetterBench(t, func(t *testing.T, b *letterBench) {
		ctx := t.Context()
		id := b.Bury(storetest.DeadLetter{Number: 1, Token: alice, Events: []int{1}, Revision: 3, WebhookID: "other-3-1"})
		own := b.Bury(storetest.DeadLetter{Number: 2, Token: alice, Events: []int{2}, WebhookID: string(storetest.LetterID(2))})
		_, err := b.letters.Redeliver(ctx, alice, all)
		require.NoError(t, err)
		assert.Equal(t, map[string]string{"revision": "3", "webhook_id": "other-3-1"}, b.Redis.HGetAll(ctx, "batches:state:"+string(id)).Val())
		assert.Empty(t, b.Redis.HGetAll(ctx, "batches:state:"+string(own)).Val())
		plan := b.Redis.HGet(ctx, "delivery:"+string(alice), "plan").Val()
		assert.Len(t, plan, 8)
		assert.Equal(t, map[string]string{"plan": plan}, b.Redis.HGetAll(ctx, "options:"+string(alice)).Val())
	})
}

// TestMovesAreBounded moves 250 letters, and then letters of many events.
func TestMovesAreBounded(t *testing.T) {
	eachLetterBench(t, func(t *testing.T, b *letterBench) {
		ctx := t.Context()
		move := func(s store.LetterSelection) (moved []store.MovedLetters) {
			for {
				m, err := b.letters.Redeliver(ctx, alice, s)
				require.NoError(t, err)
				if moved = append(moved, m); m.Remaining == 0 {
					return moved
				}
			}
		}
		b.bury(1, 250)
		aged := store.LetterSelection{LetterFilter: store.LetterFilter{Reason: bus.DiedOfAge}}
		assert.Equal(t, []store.MovedLetters{{100, 100, 25}, {25, 25, 0}}, move(aged), "half of them")
		assert.Len(t, b.left(), 125)
		b.bury(251, 375)
		assert.Equal(t, []store.MovedLetters{{100, 100, 150}, {100, 100, 50}, {50, 50, 0}}, move(all))

		events := make([]int, 4000)
		for i := range 4 {
			b.Bury(storetest.DeadLetter{Number: 1000 + i, Token: alice, DiedAt: i, Events: events})
		}
		b.Bury(storetest.DeadLetter{Number: 2000, Token: alice, DiedAt: 10, Events: make([]int, 12_000)})
		assert.Equal(t, []store.MovedLetters{{2, 8000, 3}, {2, 8000, 1}, {1, 12_000, 0}}, move(all))
	})
}

func TestMovingByID(t *testing.T) {
	eachLetterBench(t, func(t *testing.T, b *letterBench) {
		ctx := t.Context()
		b.bury(1, 5)
		ids := func(numbers ...int) (s store.LetterSelection) {
			s.IDs = []bus.BatchID{}
			for _, n := range numbers {
				s.IDs = append(s.IDs, storetest.LetterID(n))
			}
			return s
		}
		none, err := b.letters.Redeliver(ctx, bob, ids(1, 2))
		require.NoError(t, err)
		assert.Zero(t, none, "they are another's")
		moved, err := b.letters.Redeliver(ctx, alice, ids(4, 9, 2, 4))
		require.NoError(t, err)
		assert.Equal(t, store.MovedLetters{Letters: 2, Events: 2}, moved)
		assert.Equal(t, []int{2}, storetest.Numbers(t, b.Take("worker", 0)), "the older one is first")
		moved, err = b.letters.Discard(ctx, alice, ids(1, 2, 5))
		require.NoError(t, err)
		assert.Equal(t, store.MovedLetters{Letters: 2, Events: 2}, moved)
		assert.Equal(t, []int{3}, b.left())
		moved, err = b.letters.Discard(ctx, alice, store.LetterSelection{IDs: []bus.BatchID{}})
		require.NoError(t, err)
		assert.Zero(t, moved, "no ids are not all")
		moved, err = b.letters.Discard(ctx, alice, all)
		require.NoError(t, err)
		assert.Equal(t, store.MovedLetters{Letters: 1, Events: 1}, moved)
	})
}

// TestRedeliveryAfterARotation redelivers a letter that died before its subscriber's token changed.
func TestRedeliveryAfterARotation(t *testing.T) {
	eachLetterBench(t, func(t *testing.T, b *letterBench) {
		ctx := t.Context()
		b.bury(1, 2)
		fresh, _, err := b.RotateToken(ctx, alice, "alice--new")
		require.NoError(t, err)
		assert.Empty(t, b.left())
		moved, err := b.letters.Redeliver(ctx, fresh, all)
		require.NoError(t, err)
		assert.Equal(t, store.MovedLetters{Letters: 2, Events: 2}, moved)
		require.NoError(t, b.FinishRotation(ctx, alice))
		task := b.Take("worker", 0)
		assert.Equal(t, []int{1}, storetest.Numbers(t, task))
		assert.Equal(t, fresh, task.Delivery.Subscriber)
		assert.Empty(t, b.Redis.Keys(ctx, "deadletter*").Val())
	})
}

func TestRedeliveryNeedsASubscriber(t *testing.T) {
	eachLetterBench(t, func(t *testing.T, b *letterBench) {
		ctx := t.Context()
		b.bury(1, 1)
		require.NoError(t, b.DeleteSubscriber(ctx, alice))
		_, err := b.letters.Redeliver(ctx, alice, all)
		require.ErrorIs(t, err, bus.ErrNotSubscribed)
		assert.Equal(t, []int{1}, b.left())
	})
}

// TestDamagedLetters moves letters with keys that were removed or overwritten by hand.
func TestDamagedLetters(t *testing.T) {
	eachLetterBench(t, func(t *testing.T, b *letterBench) {
		ctx := t.Context()
		b.bury(1, 4)
		key := func(n int) string { return "deadletter:" + string(storetest.LetterID(n)) }
		require.NoError(t, b.Redis.Del(ctx, key(1)).Err())
		require.NoError(t, b.Redis.Set(ctx, key(2), "x", 0).Err())
		require.NoError(t, b.Redis.Set(ctx, "deadletter:why:"+string(storetest.LetterID(3)), "x", 0).Err())
		assert.Equal(t, []int{4, 3}, b.left())
		_, _, err := b.letters.Show(ctx, alice, storetest.LetterID(2), 0)
		require.ErrorIs(t, err, store.ErrLetterUnknown)
		moved, err := b.letters.Redeliver(ctx, alice, all)
		require.NoError(t, err)
		assert.Equal(t, store.MovedLetters{Letters: 2, Events: 2}, moved)
		assert.Empty(t, b.Redis.Keys(ctx, "deadletter*").Val())
		assert.Equal(t, []int{3}, storetest.Numbers(t, b.Take("worker", 0)))
	})
}

// TestARedeliveryThatIsCutOff ends requests at any moment, as when web is killed: each letter is a
// letter or a batch, and is delivered once.
func TestARedeliveryThatIsCutOff(t *testing.T) {
	eachLetterBench(t, func(t *testing.T, b *letterBench) {
		const letters = 50
		b.bury(1, letters)
		requirePlaces := func() {
			reads := b.Redis.TxPipeline()
			dead, queued := reads.Keys(t.Context(), "deadletter:letter*"), reads.Keys(t.Context(), "batch:letter*")
			_, err := reads.Exec(t.Context())
			require.NoError(t, err)
			require.Equal(t, letters, len(dead.Val())+len(queued.Val()))
		}
		random := rand.New(rand.NewPCG(1, 1))
		for i := 1; i <= letters; i++ {
			ctx, end := context.WithTimeout(t.Context(), time.Duration(random.IntN(600))*time.Microsecond)
			_, _ = b.letters.Redeliver(ctx, alice, store.LetterSelection{IDs: []bus.BatchID{storetest.LetterID(i)}})
			end()
			requirePlaces()
		}
		_, err := b.letters.Redeliver(t.Context(), alice, all)
		require.NoError(t, err)
		var delivered []int
		for task := b.Take("worker", 0); task != nil; task = b.Take("worker", 0) {
			delivered = append(delivered, storetest.Numbers(t, task)...)
			require.True(t, b.Complete(task, storetest.Done))
		}
		slices.Sort(delivered)
		for i, number := range delivered {
			require.Equal(t, i+1, number)
		}
		assert.Len(t, delivered, letters)
	})
}

// TestMovingInAFullRedis redelivers and discards where Redis takes no more.
func TestMovingInAFullRedis(t *testing.T) {
	server := rdbtest.Real(t)
	b := &letterBench{Bus: storetest.NewBus(t, server)}
	b.letters = store.NewLetters(b.Store)
	b.AddSubscriber(alice, 0, 100, "widgets")
	b.bury(1, 3)
	require.NoError(t, server.Raw.ConfigSet(t.Context(), "maxmemory", "1").Err())
	first := store.LetterSelection{IDs: []bus.BatchID{storetest.LetterID(1)}}
	moved, err := b.letters.Redeliver(t.Context(), alice, first)
	require.NoError(t, err)
	assert.Equal(t, 1, moved.Letters)
	moved, err = b.letters.Discard(t.Context(), alice, all)
	require.NoError(t, err)
	assert.Equal(t, 2, moved.Letters)
	require.NoError(t, server.Raw.ConfigSet(t.Context(), "maxmemory", "0").Err())
	assert.Equal(t, []int{1}, storetest.Numbers(t, b.Take("worker", 0)))
	b.RequireSound()
}

// TestALetterComesBackInItsLane kills events of both lanes: a letter goes back to the lane of its
// events, if that still exists.
func TestALetterComesBackInItsLane(t *testing.T) {
	eachLetterBench(t, func(t *testing.T, b *letterBench) {
		ctx := t.Context()
		b.AddSubscriber(alice, 0, 1, "widgets")
		b.SetOption(alice, "lanes", "2")
		lanes, err := b.Lanes(ctx, alice)
		require.NoError(t, err)
		of := map[int]int{} // the number of an event, of each lane
		for i := 1; len(of) < 2; i++ {
			of[lanes.Of(storetest.Packed(t, "widgets", i))] = i
		}
		dies := func(number int) bus.BatchID {
			b.PublishEvents("widgets", number, number, 0)
			task := b.Take("worker", 0)
			require.True(t, b.Complete(task, storetest.Result{Slice: &store.SliceResult{
				Letters: []store.DeadLetter{{ID: task.Delivery.Batch, Reason: bus.DiedRejected}},
			}}))
			return task.Delivery.Batch
		}
		lane := func(id bus.BatchID) string { return b.Redis.HGet(ctx, layout.Keys{}.BatchState(id), "lane").Val() }

		first, second, third := dies(of[0]), dies(of[1]), dies(of[1])
		for _, id := range []bus.BatchID{first, second} {
			_, err = b.letters.Redeliver(ctx, alice, store.LetterSelection{IDs: []bus.BatchID{id}})
			require.NoError(t, err)
		}
		assert.Empty(t, lane(first))
		assert.Equal(t, "1", lane(second))
		b.SetOption(alice, "lanes", "1")
		_, err = b.letters.Redeliver(ctx, alice, store.LetterSelection{IDs: []bus.BatchID{third}})
		require.NoError(t, err)
		assert.Empty(t, lane(third), "there is no such lane any more")
		b.RequireSound()
	})
}

func TestLettersAreCounted(t *testing.T) {
	eachLetterBench(t, func(t *testing.T, b *letterBench) {
		b.bury(1, 7)
		at := func(second int) time.Time { return storetest.After(1000 * second) }
		for name, c := range map[string]struct {
			filter store.LetterFilter
			want   int
		}{
			"all":      {store.LetterFilter{}, 7},
			"a reason": {store.LetterFilter{Reason: bus.DiedOfAge}, 4},
			"another":  {store.LetterFilter{Reason: bus.DiedRemoved}, 0},
			"a status": {store.LetterFilter{Status: 503}, 2},
			"none":     {store.LetterFilter{Status: store.NoAnswer}, 2},
			"some":     {store.LetterFilter{Since: at(2), Before: at(6)}, 4},
			"both":     {store.LetterFilter{Since: at(2), Before: at(6), Reason: bus.DiedRefused}, 2},
		} {
			letters, more, err := b.letters.Count(t.Context(), alice, c.filter)
			require.NoError(t, err)
			assert.Equal(t, c.want, letters, name)
			assert.False(t, more, name)
		}
	})
}
