package store_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store"
	"routemaster/internal/store/storetest"
)

const alice, bob = storetest.Alice, storetest.Bob

// letterBench is a bus whose subscribers are alice and bob, with its dead letters.
type letterBench struct {
	*storetest.Bus
	letters *store.Letters
}

func eachLetterBench(t *testing.T, test func(t *testing.T, b *letterBench)) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		b := &letterBench{Bus: storetest.NewBus(t, server)}
		b.letters = store.NewLetters(b.Store)
		b.AddSubscriber(alice, 0, 100, "widgets")
		b.AddSubscriber(bob, 0, 100, "gadgets")
		test(t, b)
		b.RequireSound()
		b.requireSums()
	})
}

// requireSums requires that the sums match the letters.
func (b *letterBench) requireSums() {
	b.T.Helper()
	ctx := b.T.Context()
	for _, token := range []bus.Token{alice, bob} {
		all, next, err := b.letters.List(ctx, token, store.LetterFilter{}, store.LetterPage{Limit: 1000})
		require.NoError(b.T, err)
		require.Empty(b.T, next)
		events, bytes := 0, 0
		for _, letter := range all {
			events, bytes = events+letter.Events, bytes+letter.Bytes
		}
		for key, want := range map[string]int{"deadletters:events": events, "deadletters:bytes": bytes} {
			sum, _ := b.Redis.HGet(ctx, key, string(token)).Int() // an error is that there is none
			assert.Equal(b.T, want, sum, "%s of %s", key, token)
			if want == 0 {
				assert.False(b.T, b.Redis.HExists(ctx, key, string(token)).Val(), "no zeros")
			}
		}
	}
}

// bury writes letters of alice with these numbers: a letter's time of death (s) and its only event
// are its number. Odd ones died of age, others were refused.
func (b *letterBench) bury(first, last int) {
	b.T.Helper()
	for i := first; i <= last; i++ {
		reason := bus.DiedRefused
		if i%2 == 1 {
			reason = bus.DiedOfAge
		}
		b.Bury(storetest.DeadLetter{
			Number: i, Token: alice, Reason: reason, Status: []int{-1, 400, 503}[i%3], Created: i, DiedAt: 1000 * i, Events: []int{i},
		})
	}
}

// letterNumbers returns the numbers of letters.
func letterNumbers(t *testing.T, letters []store.Letter) (found []int) {
	t.Helper()
	for _, letter := range letters {
		var n int
		_, err := fmt.Sscanf(string(letter.ID), "letter%d", &n)
		require.NoError(t, err)
		found = append(found, n)
	}
	return found
}

// left are the numbers of alice's letters, newest first.
func (b *letterBench) left() []int {
	b.T.Helper()
	all, _, err := b.letters.List(b.T.Context(), alice, store.LetterFilter{}, store.LetterPage{Limit: 1000})
	require.NoError(b.T, err)
	return letterNumbers(b.T.(*testing.T), all)
}

func TestList(t *testing.T) {
	eachLetterBench(t, func(t *testing.T, b *letterBench) {
		b.bury(1, 7)
		at := func(second int) time.Time { return storetest.After(1000 * second) }
		for name, c := range map[string]struct {
			filter store.LetterFilter
			want   []int
		}{
			"all":      {store.LetterFilter{}, []int{7, 6, 5, 4, 3, 2, 1}},
			"a reason": {store.LetterFilter{Reason: bus.DiedOfAge}, []int{7, 5, 3, 1}},
			"another":  {store.LetterFilter{Reason: bus.DiedRemoved}, nil},
			"a status": {store.LetterFilter{Status: 503}, []int{5, 2}},
			"none":     {store.LetterFilter{Status: store.NoAnswer}, []int{6, 3}},
			"since":    {store.LetterFilter{Since: at(5)}, []int{7, 6, 5}},
			"before":   {store.LetterFilter{Before: at(3)}, []int{2, 1}},
			"both":     {store.LetterFilter{Since: at(2), Before: at(6), Reason: bus.DiedRefused}, []int{4, 2}},
			"three":    {store.LetterFilter{Since: at(2), Status: 400, Reason: bus.DiedOfAge}, []int{7}},
		} {
			for limit := 1; limit <= 8; limit++ {
				var found []store.Letter
				page := store.LetterPage{Limit: limit}
				for {
					some, next, err := b.letters.List(t.Context(), alice, c.filter, page)
					require.NoError(t, err)
					require.LessOrEqual(t, len(some), limit)
					found = append(found, some...)
					if page.After = next; next == "" {
						break
					}
				}
				assert.Equal(t, c.want, letterNumbers(t, found), "%s, %d a page", name, limit)
			}
		}
		others, _, err := b.letters.List(t.Context(), bob, store.LetterFilter{}, store.LetterPage{Limit: 10})
		require.NoError(t, err)
		assert.Empty(t, others)
		for _, after := range []string{"x", "1700000000000", "-letter00000000000001", "1-2", "x-letter00000000000001"} {
			_, _, err := b.letters.List(t.Context(), alice, store.LetterFilter{}, store.LetterPage{After: after, Limit: 1})
			require.ErrorAs(t, err, new(*bus.Invalid), after)
		}
	})
}

// TestListOfOneMoment lists letters that died in the same step, and discards some of them between
// two pages.
func TestListOfOneMoment(t *testing.T) {
	eachLetterBench(t, func(t *testing.T, b *letterBench) {
		for i := range 250 {
			b.Bury(storetest.DeadLetter{Number: i, Token: alice, Reason: bus.DiedRejected, Events: []int{i}})
		}
		var found []int
		for page := (store.LetterPage{Limit: 40}); ; {
			some, next, err := b.letters.List(t.Context(), alice, store.LetterFilter{}, page)
			require.NoError(t, err)
			found = append(found, letterNumbers(t, some)...)
			if page.After = next; next == "" {
				break
			}
			last := some[len(some)-1].ID
			_, err = b.letters.Discard(t.Context(), alice, store.LetterSelection{IDs: []bus.BatchID{last}})
			require.NoError(t, err)
		}
		require.Len(t, found, 250)
		for i, n := range found {
			require.Equal(t, 249-i, n, "each once")
		}
	})
}

// TestListIsBounded looks for a reason that no letter has.
func TestListIsBounded(t *testing.T) {
	eachLetterBench(t, func(t *testing.T, b *letterBench) {
		b.bury(1, 1001)
		absent := store.LetterFilter{Reason: bus.DiedRemoved}
		some, next, err := b.letters.List(t.Context(), alice, absent, store.LetterPage{Limit: 10})
		require.NoError(t, err)
		assert.Empty(t, some)
		require.NotEmpty(t, next, "one call looks at a thousand")
		_, next, err = b.letters.List(t.Context(), alice, absent, store.LetterPage{After: next, Limit: 10})
		require.NoError(t, err)
		assert.Empty(t, next)
		_, err = b.letters.Discard(t.Context(), alice, store.LetterSelection{LetterFilter: store.LetterFilter{Before: storetest.After(1_001_000)}})
		require.NoError(t, err)
	})
}

func TestShow(t *testing.T) {
	eachLetterBench(t, func(t *testing.T, b *letterBench) {
		ctx := t.Context()
		var events []int
		for i := range 1003 {
			events = append(events, i)
		}
		id := b.Bury(storetest.DeadLetter{
			Number: 1, Token: alice, Reason: bus.DiedOfAttempts, Created: 5, DiedAt: 70, Events: events, Revision: 2, WebhookID: "w-2-1003",
		})
		require.NoError(t, b.Redis.LSet(ctx, "deadletter:"+string(id), 3+1, "\xc1").Err())
		letter, shown, err := b.letters.Show(ctx, alice, id, 0)
		require.NoError(t, err)
		assert.Equal(t, store.Letter{
			ID: id, DiedAt: storetest.After(70), CreatedAt: storetest.After(5), Reason: bus.DiedOfAttempts,
			Status: 400, Attempts: 3, Events: 1003, Bytes: letter.Bytes, WebhookID: "w-2-1003",
		}, letter)
		assert.Positive(t, letter.Bytes)
		require.Len(t, shown, 1000)
		assert.JSONEq(t, `{"topic":"widgets","type":"update","url":"https://x.example/0","t":1}`, string(shown[0]))
		assert.Equal(t, json.RawMessage(`{"unreadable":true}`), shown[1])
		_, shown, err = b.letters.Show(ctx, alice, id, 1000)
		require.NoError(t, err)
		require.Len(t, shown, 3)
		assert.Contains(t, string(shown[2]), "x.example/1002")
		_, shown, err = b.letters.Show(ctx, alice, id, 5000)
		require.NoError(t, err)
		assert.Empty(t, shown)

		for _, unknown := range []bus.BatchID{storetest.LetterID(2), "x", ""} {
			_, _, err = b.letters.Show(ctx, alice, unknown, 0)
			require.ErrorIs(t, err, store.ErrLetterUnknown)
		}
		_, _, err = b.letters.Show(ctx, bob, id, 0)
		require.ErrorIs(t, err, store.ErrLetterUnknown, "it is another's")
	})
}
