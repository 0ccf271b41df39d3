package store_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/store"
	"routemaster/internal/store/storetest"
)

func always() bool { return true }

// keep sets a subscriber's limits.
func (b *letterBench) keep(token bus.Token, members string) {
	b.T.Helper()
	b.SetOption(token, "dead_letters", "{"+members+"}")
}

// trim trims at a time in s after [storetest.Start], and returns how many letters went.
func (b *letterBench) trim(second int) int {
	b.T.Helper()
	dropped, err := b.letters.Trim(b.T.Context(), storetest.After(1000*second), always)
	require.NoError(b.T, err)
	return dropped.Letters
}

func TestTrimByEvents(t *testing.T) {
	eachLetterBench(t, func(t *testing.T, b *letterBench) {
		b.keep(alice, `"keep_events":10`)
		b.bury(1, 12)
		b.Bury(storetest.DeadLetter{Number: 99, Token: bob, DiedAt: 1, Events: []int{1, 2, 3}})
		dropped, err := b.letters.Trim(t.Context(), storetest.After(12_000), always)
		require.NoError(t, err)
		assert.Equal(t, 2, dropped.Letters)
		assert.Equal(t, 2, dropped.Events[alice])
		assert.Zero(t, dropped.Events[bob])
		assert.Equal(t, []int{12, 11, 10, 9, 8, 7, 6, 5, 4, 3}, b.left(), "the newest")
		assert.Zero(t, b.trim(12))
	})
}

// TestTrimmedLettersAreAGap trims letters, one of them a gap notice that has died.
func TestTrimmedLettersAreAGap(t *testing.T) {
	eachLetterBench(t, func(t *testing.T, b *letterBench) {
		b.keep(alice, `"keep_events":10`)
		b.SetOption(alice, "gap_notices", "true")
		b.bury(1, 12)
		assert.Equal(t, 2, b.trim(12))
		notice := b.Take("w1", 12_000)
		told, _ := storetest.GapIn(t, notice)
		assert.Equal(t, "2 events in 2 batches, 1 to 2: dead_letters", told)

		b.Complete(notice, storetest.Result{Slice: &store.SliceResult{Letters: []store.DeadLetter{
			{ID: notice.Delivery.Batch, Reason: bus.DiedOfAge},
		}}})
		_, err := b.letters.Discard(t.Context(), alice, store.LetterSelection{LetterFilter: store.LetterFilter{Before: storetest.Start.Add(time.Hour)}})
		require.NoError(t, err)
		require.Nil(t, b.Take("w1", 12_001), "what a client discards is no gap")
		b.Bury(storetest.DeadLetter{Number: 20, Token: alice, DiedAt: 1, Created: 7, Events: []int{1, 2}})
		_, err = b.letters.DropOldest(t.Context(), storetest.After(12_002))
		require.NoError(t, err)
		told, _ = storetest.GapIn(t, b.Take("w1", 12_003))
		assert.Equal(t, "2 events in 1 batches, 7 to 7: dead_letters", told)
	})
}

func TestTrimByBytes(t *testing.T) {
	eachLetterBench(t, func(t *testing.T, b *letterBench) {
		b.bury(1, 40)
		bytes, err := b.Redis.HGet(t.Context(), "deadletters:bytes", string(alice)).Int()
		require.NoError(t, err)
		require.Greater(t, bytes, 2000)
		b.keep(alice, `"keep_bytes":`+strconv.Itoa(bytes-1))
		assert.Equal(t, 1, b.trim(40))
		assert.NotContains(t, b.left(), 1)
	})
}

// TestALargeLetterIsKeptAlone trims a letter that is larger than the limit: it goes only when there
// is a newer one.
func TestALargeLetterIsKeptAlone(t *testing.T) {
	eachLetterBench(t, func(t *testing.T, b *letterBench) {
		b.keep(alice, `"keep_events":2`)
		b.Bury(storetest.DeadLetter{Number: 1, Token: alice, DiedAt: 1, Events: []int{1, 2, 3}})
		assert.Zero(t, b.trim(1))
		b.Bury(storetest.DeadLetter{Number: 2, Token: alice, DiedAt: 2, Events: []int{1, 2, 3, 4}})
		assert.Equal(t, 1, b.trim(1))
		assert.Equal(t, []int{2}, b.left())
	})
}

// TestTrimByAge has letters of a subscriber that has set an age, and of one that has switched dead
// letters off, which age out after a week.
func TestTrimByAge(t *testing.T) {
	eachLetterBench(t, func(t *testing.T, b *letterBench) {
		b.keep(alice, `"keep_age":60000`)
		b.bury(1, 150)
		b.Bury(storetest.DeadLetter{Number: 999, Token: bob, DiedAt: 1000, Events: []int{1}})
		assert.Zero(t, b.trim(61), "a minute is not more than a minute")
		assert.Equal(t, 1, b.trim(62))
		assert.Equal(t, 149, b.trim(1000), "in steps, the last one too")
		const week = 7 * 24 * 3600
		assert.Zero(t, b.trim(week+1))
		assert.Equal(t, 1, b.trim(week+2))
	})
}

// TestTrimSweepsWhoIsGone trims after a subscriber and its token have gone.
func TestTrimSweepsWhoIsGone(t *testing.T) {
	eachLetterBench(t, func(t *testing.T, b *letterBench) {
		ctx := t.Context()
		b.bury(1, 250)
		b.Bury(storetest.DeadLetter{Number: 999, Token: bob, Events: []int{1}})
		require.NoError(t, b.DeleteToken(ctx, alice))
		calls := 0
		dropped, err := b.letters.Trim(ctx, storetest.Start, func() bool { calls++; return calls <= 2 })
		require.NoError(t, err)
		assert.Equal(t, store.DroppedLetters{Gone: 200}, dropped, "two steps")
		dropped, err = b.letters.Trim(ctx, storetest.Start, always)
		require.NoError(t, err)
		assert.Equal(t, store.DroppedLetters{Gone: 50}, dropped)
		assert.Empty(t, b.Redis.Exists(ctx, "deadletters:index:"+string(alice)).Val())
		assert.EqualValues(t, 1, b.Redis.ZCard(ctx, "deadletters:index:"+string(bob)).Val())
	})
}

// TestTrimGoesOnAfterDamage trims where one subscriber's index is not of its type, and another's
// is gone.
func TestTrimGoesOnAfterDamage(t *testing.T) {
	eachLetterBench(t, func(t *testing.T, b *letterBench) {
		ctx := t.Context()
		b.bury(1, 3)
		b.keep(alice, `"keep_events":1`)
		require.NoError(t, b.Redis.HSet(ctx, "deadletters:events", string(bob), 5, "gone--1", 7).Err())
		require.NoError(t, b.Redis.Set(ctx, "deadletters:index:"+string(bob), "x", 0).Err())
		assert.Equal(t, 2, b.trim(3))
		assert.Equal(t, map[string]string{string(alice): "1", string(bob): "5"}, b.Redis.HGetAll(ctx, "deadletters:events").Val())
		require.NoError(t, b.Redis.Del(ctx, "deadletters:index:"+string(bob)).Err())
		assert.Zero(t, b.trim(3))
	})
}

func TestDropOldestLetters(t *testing.T) {
	eachLetterBench(t, func(t *testing.T, b *letterBench) {
		ctx := t.Context()
		none, err := b.letters.DropOldest(ctx, storetest.Start)
		require.NoError(t, err)
		assert.Zero(t, none.Letters)
		b.bury(1, 150)
		for i := 1; i <= 50; i++ { // between alice's
			b.Bury(storetest.DeadLetter{Number: 1000 + i, Token: bob, DiedAt: 2000*i + 1, Events: []int{1, 2}})
		}
		dropped, err := b.letters.DropOldest(ctx, storetest.Start)
		require.NoError(t, err)
		assert.Equal(t, store.DroppedLetters{Letters: 100, Events: map[bus.Token]int{alice: 67, bob: 66}}, dropped)
		assert.Equal(t, 68, b.left()[len(b.left())-1])
		total := dropped.Letters
		for dropped.Letters > 0 {
			dropped, err = b.letters.DropOldest(ctx, storetest.Start)
			require.NoError(t, err)
			total += dropped.Letters
		}
		assert.Equal(t, 200, total)
		assert.Empty(t, b.Redis.Keys(ctx, "deadletter*").Val())
	})
}

// TestDropOldestOfMany has so many subscribers that only a part of each index is read, and still
// drops in the order of the times.
func TestDropOldestOfMany(t *testing.T) {
	eachLetterBench(t, func(t *testing.T, b *letterBench) {
		ctx := t.Context()
		b.bury(1, 30) // s
		for i := range 400 {
			b.Bury(storetest.DeadLetter{Number: 1000 + i, Token: bus.Token("s" + strconv.Itoa(i) + "--1"), DiedAt: 3500 + i, Events: []int{1}})
		}
		var gone []time.Time
		for {
			before := b.left()
			dropped, err := b.letters.DropOldest(ctx, storetest.Start)
			require.NoError(t, err)
			if dropped.Letters == 0 {
				break
			}
			if alices := dropped.Events[alice]; alices > 0 && len(before) == 30 {
				assert.LessOrEqual(t, alices, 3, "those before the others'")
			}
			gone = append(gone, time.Now())
		}
		assert.Empty(t, b.Redis.Keys(ctx, "deadletter*").Val())
		assert.GreaterOrEqual(t, len(gone), 5, "a hundred a call")
	})
}
