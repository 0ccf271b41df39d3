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

// TestATokenIsOfOneClient has several clients ask for one token at the same time.
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
		require.NoError(t, f.AddToken(ctx, alice, "other"))
		require.NoError(t, f.AddToken(ctx, "carol--3", "carol"))
		names, err := f.Tokens(ctx)
		require.NoError(t, err)
		assert.Equal(t, map[bus.Token]bus.ClientName{publisher: "publisher", alice: "alice", bob: "bob", "carol--3": "carol"}, names)
		name, err := f.ClientName(ctx, bob)
		require.NoError(t, err)
		assert.Equal(t, bus.ClientName("bob"), name)
		require.NoError(t, f.DeleteToken(ctx, bob))
		require.NoError(t, f.DeleteToken(ctx, bob), "there is nothing to delete")
		name, err = f.ClientName(ctx, bob)
		require.NoError(t, err)
		assert.Empty(t, name)
	})
}

func TestARemovedTokenCanNeitherPublishNorSubscribe(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		ctx := t.Context()
		require.NoError(t, f.DeleteToken(ctx, alice))
		before := dump(t, f.Redis)
		require.ErrorIs(t, f.Subscribe(ctx, alice, bus.Subscription{Topics: []bus.TopicName{"a"}, Callback: "https://a.example/"}, start), bus.ErrTokenUnknown)
		require.ErrorIs(t, f.Publish(ctx, store.Publication{Topic: "a", Publisher: alice, Events: []wire.PackedEvent{packed(t, "a", 1)}}), bus.ErrTokenUnknown)
		assert.Equal(t, before, dump(t, f.Redis))
	})
}
