package store_test

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store"
	"routemaster/internal/store/storetest"
	"routemaster/internal/wire"
)

// TestATokenIsOfOneClient: several clients ask for one token at the same time.
func TestATokenIsOfOneClient(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		st := storetest.Open(t, server)
		ctx := t.Context()
		clients := []bus.ClientName{"a", "b", "c", "d", "e", "f", "g", "h"}
		for _, token := range []bus.Token{"one", "two", "three"} {
			var asking sync.WaitGroup
			var got atomic.Value
			var refused atomic.Int32
			for _, name := range clients {
				asking.Go(func() {
					if err := st.PutToken(ctx, token, name); err != nil {
						assert.ErrorIs(t, err, bus.ErrTokenTaken)
						refused.Add(1)
						return
					}
					got.Store(name)
				})
			}
			asking.Wait()
			assert.Equal(t, len(clients)-1, int(refused.Load()))
			name, err := st.ClientName(ctx, token)
			require.NoError(t, err)
			assert.Equal(t, got.Load(), name)
			require.NoError(t, st.PutToken(ctx, token, name), "it has it already")
			require.NoError(t, st.DeleteToken(ctx, token))
			require.NoError(t, st.PutToken(ctx, token, "other"))
		}
	})
}

func TestTokens(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		ctx := t.Context()
		require.NoError(t, f.AddToken(ctx, storetest.Alice, "other"))
		require.NoError(t, f.AddToken(ctx, "carol--3", "carol"))
		names, err := f.Tokens(ctx)
		require.NoError(t, err)
		assert.Equal(t, map[bus.Token]bus.ClientName{storetest.Publisher: "publisher", storetest.Alice: "alice", storetest.Bob: "bob", "carol--3": "carol"}, names)
		name, err := f.ClientName(ctx, storetest.Bob)
		require.NoError(t, err)
		assert.Equal(t, bus.ClientName("bob"), name)
		require.NoError(t, f.DeleteToken(ctx, storetest.Bob))
		require.NoError(t, f.DeleteToken(ctx, storetest.Bob), "there is nothing to delete")
		name, err = f.ClientName(ctx, storetest.Bob)
		require.NoError(t, err)
		assert.Empty(t, name)
	})
}

func TestARemovedTokenCanNeitherPublishNorSubscribe(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		ctx := t.Context()
		require.NoError(t, f.DeleteToken(ctx, storetest.Alice))
		before := rdbtest.Dump(t, f.Redis)
		require.ErrorIs(t, f.Subscribe(ctx, storetest.Alice, bus.Subscription{Topics: []bus.TopicName{"a"}, Callback: "https://a.example/"}, storetest.Start), bus.ErrTokenUnknown)
		require.ErrorIs(t, f.Publish(ctx, store.Publication{Topic: "a", Publisher: storetest.Alice, Events: []wire.PackedEvent{storetest.Packed(t, "a", 1)}}), bus.ErrTokenUnknown)
		assert.Equal(t, before, rdbtest.Dump(t, f.Redis))
	})
}
