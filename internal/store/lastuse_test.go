package store_test

import (
	"fmt"
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

func TestTheLatestUseOfATokenIsNoted(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, redis *rdbtest.Server) {
		ctx, st := t.Context(), storetest.Open(t, redis)
		require.NoError(t, st.PutToken(ctx, "shop--1", "shop"))
		require.NoError(t, st.PutToken(ctx, "search--1", "search"))
		at := func(ms int64) time.Time { return time.UnixMilli(1_790_000_000_000 + ms) }
		for _, used := range []map[bus.Token]time.Time{
			{"shop--1": at(2000), "nobody--1": at(1)}, {"shop--1": at(1000), "search--1": at(3)}, nil,
		} {
			require.NoError(t, store.NoteTokensUsed(ctx, st, used))
		}
		got, err := store.TokensUsed(ctx, st)
		require.NoError(t, err)
		assert.Equal(t, map[bus.Token]time.Time{"shop--1": at(2000), "search--1": at(3)}, got)

		require.NoError(t, st.DeleteToken(ctx, "search--1"))
		require.NoError(t, store.NoteTokensUsed(ctx, st, map[bus.Token]time.Time{"search--1": at(4)}))
		got, err = store.TokensUsed(ctx, st)
		require.NoError(t, err)
		assert.Equal(t, map[bus.Token]time.Time{"shop--1": at(2000)}, got)
		storetest.RequireSound(t, st)
	})
}

func TestManyUsesAreNotedInSteps(t *testing.T) {
	ctx, st := t.Context(), storetest.Open(t, rdbtest.Embedded(t))
	used := map[bus.Token]time.Time{}
	for i := range 501 {
		token := bus.Token(fmt.Sprintf("client-%d", i))
		require.NoError(t, st.PutToken(ctx, token, "client"))
		used[token] = time.UnixMilli(int64(i + 1))
	}
	require.NoError(t, store.NoteTokensUsed(ctx, st, used))
	got, err := store.TokensUsed(ctx, st)
	require.NoError(t, err)
	assert.Equal(t, used, got)
}

func TestAKeyOfAnotherTypeHarmsNothingElse(t *testing.T) {
	redis := rdbtest.Embedded(t)
	ctx, st := t.Context(), storetest.Open(t, redis)
	require.NoError(t, redis.Raw.Set(ctx, layout.Keys{}.TokensUsed(), "no hash", 0).Err())
	assert.Error(t, store.NoteTokensUsed(ctx, st, map[bus.Token]time.Time{"shop--1": time.Now()}))
	got, err := store.TokensUsed(ctx, st)
	assert.NoError(t, err)
	assert.Empty(t, got)
	assert.NoError(t, st.DeleteToken(ctx, "shop--1"))
}
