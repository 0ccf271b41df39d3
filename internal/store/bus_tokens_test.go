package store_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/inspect"
	"routemaster/internal/rdb"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store"
	"routemaster/internal/store/storetest"
)

func TestTokensAreFoundWherePartitionsAreThere(t *testing.T) {
	data, servers := storetest.Apart(t, 3)
	all, ctx := store.NewBus(data...), t.Context()
	require.NoError(t, all.PutToken(ctx, "reader--1", "reader"))
	require.ErrorIs(t, all.PutToken(ctx, "reader--1", "another"), bus.ErrTokenTaken)
	servers[0].Freeze(t)
	servers[2].Kill(t)
	rdbtest.Promptly(t, 2*time.Second, func() time.Duration {
		return rdbtest.Took(func() {
			for range 5 { // in any order
				names, err := all.FindTokens(ctx, []bus.Token{"unknown", "reader--1"})
				require.NoError(t, err)
				assert.Equal(t, map[bus.Token]bus.ClientName{"reader--1": "reader"}, names)
			}
		})
	})
	names, err := all.Tokens(ctx)
	require.NoError(t, err)
	assert.Equal(t, map[bus.Token]bus.ClientName{"reader--1": "reader"}, names)
	servers[0].Thaw(t)
	require.ErrorIs(t, all.PutToken(ctx, "reader--2", "reader"), bus.ErrUnavailable)
	servers[2].Restart(t) // without its keys
	require.ErrorIs(t, all.PutToken(ctx, "reader--2", "reader"), bus.ErrUnavailable)
	for range 5 {
		name, err := all.ClientName(ctx, "reader--1")
		require.NoError(t, err)
		assert.Equal(t, bus.ClientName("reader"), name, "the empty one is not asked")
	}
	require.NoError(t, all.All()[2].Partition().Release(ctx))
	require.NoError(t, all.PutToken(ctx, "reader--2", "reader"))
	for _, st := range all.All() {
		name, err := st.ClientName(ctx, "reader--2")
		require.NoError(t, err)
		assert.Equal(t, bus.ClientName("reader"), name)
	}
	for _, server := range servers {
		server.Kill(t)
	}
	_, err = all.Tokens(ctx)
	require.ErrorIs(t, err, bus.ErrUnavailable)
}

// TestARotationStaysInItsPartition with all that is queued, and leaves no partition with the old
// token.
func TestARotationStaysInItsPartition(t *testing.T) {
	eachBus(t, func(t *testing.T, p *storetest.Partitions) {
		ctx, topic := t.Context(), p.TopicIn(0, 0)
		old := p.AddSubscriber(1, 100, topic)
		own := p.TopicIn(2, 0)
		publication := storetest.Publication(t, own, 1, 1, 0)
		publication.Publisher = old
		require.NoError(t, storetest.Publish(ctx, p.Home(own), publication))
		p.PublishEvents(topic, 1, 3)
		relayAll(p)
		fresh, name, err := p.RotateToken(ctx, old)
		require.NoError(t, err)
		assert.Equal(t, bus.ClientName("reader"), name)
		again, _, err := p.RotateToken(ctx, old)
		require.NoError(t, err)
		assert.Equal(t, fresh, again, "it goes on with the one that was begun")
		assert.Equal(t, rdb.Number(1), p.Of(fresh).Partition().Number())
		p.PublishEvents(topic, 4, 4)
		relayAll(p)
		_, done, err := p.Of(old).Relabel(ctx, old, store.BeginRelabelling(), time.Minute)
		for ; err == nil && !done; _, done, err = p.Of(old).Relabel(ctx, old, store.BeginRelabelling(), time.Minute) {
		}
		require.NoError(t, err)
		require.NoError(t, p.FinishRotation(ctx, old))
		require.NoError(t, p.FinishRotation(ctx, old), "it can be repeated")
		for _, st := range p.Data {
			names, err := st.Tokens(ctx)
			require.NoError(t, err)
			assert.Equal(t, map[bus.Token]bus.ClientName{storetest.Publisher: "publisher", fresh: "reader"}, names)
		}
		assert.Equal(t, storetest.UpTo(1, 4), p.Received(1, fresh, topic))
		publication.Publisher = fresh
		require.NoError(t, storetest.Publish(ctx, p.Home(own), publication), "the client's topic is still its own")
	})
}

func TestADeletedTokenIsGoneEverywhere(t *testing.T) {
	eachBus(t, func(t *testing.T, p *storetest.Partitions) {
		ctx, topic := t.Context(), p.TopicIn(0, 0)
		token := p.AddSubscriber(1, 100, topic)
		require.NoError(t, p.AddToken(ctx, token, "another"), "it is registered already")
		name, err := p.ClientName(ctx, token)
		require.NoError(t, err)
		assert.Equal(t, bus.ClientName("reader"), name)
		for range 2 { // it can be repeated
			require.NoError(t, p.DeleteToken(ctx, token))
		}
		for _, st := range p.Data {
			name, err := st.ClientName(ctx, token)
			require.NoError(t, err)
			assert.Empty(t, name)
		}
		subscribers := 0
		_, err = inspect.OfBus(p.Bus).EachSubscribers(ctx, inspect.Page{}, func(some []bus.Subscriber) error {
			subscribers += len(some)
			return nil
		})
		require.NoError(t, err)
		assert.Zero(t, subscribers)
		_, _, err = p.RotateToken(ctx, token)
		require.ErrorIs(t, err, bus.ErrTokenUnknown)
	})
}

// TestATokenIsNeverTwoClients though it was given in a part of the partitions only.
func TestATokenIsNeverTwoClients(t *testing.T) {
	eachBus(t, func(t *testing.T, p *storetest.Partitions) {
		ctx, token := t.Context(), p.TokenIn(1)
		everywhere := func(want bus.ClientName) {
			t.Helper()
			for _, st := range p.Data {
				name, err := st.ClientName(ctx, token)
				require.NoError(t, err)
				assert.Equal(t, want, name)
			}
		}
		_, err := p.All[2].Hold(ctx, 0)
		require.NoError(t, err)
		require.ErrorIs(t, p.PutToken(ctx, token, "alice"), bus.ErrUnavailable)
		require.ErrorIs(t, p.PutToken(ctx, token, "bob"), bus.ErrTokenTaken)
		require.NoError(t, p.All[2].Release(ctx))
		require.ErrorIs(t, p.PutToken(ctx, token, "bob"), bus.ErrTokenTaken)
		require.NoError(t, p.AddToken(ctx, token, "bob"), "it is registered")
		everywhere("alice")

		_, err = p.All[1].Hold(ctx, 0)
		require.NoError(t, err)
		require.ErrorIs(t, p.DeleteToken(ctx, token), bus.ErrUnavailable)
		require.NoError(t, p.All[1].Release(ctx))
		name, err := p.ClientName(ctx, token)
		require.NoError(t, err)
		assert.Equal(t, bus.ClientName("alice"), name, "its own partition decides")
		require.NoError(t, p.DeleteToken(ctx, token))
		require.NoError(t, p.Data[2].PutToken(ctx, token, "alice")) // as a deletion that broke off would leave it
		require.NoError(t, p.PutToken(ctx, token, "bob"))
		everywhere("bob")
	})
}

// TestATokenThatIsRotatedIsNotGivenAway while its own partition knows of that.
func TestATokenThatIsRotatedIsNotGivenAway(t *testing.T) {
	eachBus(t, func(t *testing.T, p *storetest.Partitions) {
		ctx, old := t.Context(), p.TokenIn(1)
		require.NoError(t, p.PutToken(ctx, old, "alice"))
		_, _, err := p.RotateToken(ctx, old)
		require.NoError(t, err)
		require.NoError(t, p.DeleteToken(ctx, old))
		require.ErrorIs(t, p.PutToken(ctx, old, "mallory"), bus.ErrTokenTaken)
		for _, st := range p.Data {
			name, err := st.ClientName(ctx, old)
			require.NoError(t, err)
			assert.Empty(t, name)
		}
	})
}

// TestOtherPartitionsFollowAToken after interrupted changes: its own partition decides, unless it
// is held.
func TestOtherPartitionsFollowAToken(t *testing.T) {
	eachBus(t, func(t *testing.T, p *storetest.Partitions) {
		ctx, token := t.Context(), p.TokenIn(1)
		names := func() (names [storetest.PartitionCount]bus.ClientName) {
			for i, st := range p.Data {
				name, err := st.ClientName(ctx, token)
				require.NoError(t, err)
				names[i] = name
			}
			return names
		}
		require.NoError(t, p.Data[1].PutToken(ctx, token, "reader"))
		require.NoError(t, p.Data[2].PutToken(ctx, token, "another"))
		_, err := p.All[1].Hold(ctx, 0)
		require.NoError(t, err)
		require.ErrorIs(t, p.SyncToken(ctx, token), bus.ErrUnavailable)
		assert.Equal(t, [...]bus.ClientName{"", "reader", "another"}, names())
		require.NoError(t, p.All[1].Release(ctx))
		for range 2 { // it can be repeated
			require.NoError(t, p.SyncToken(ctx, token))
			assert.Equal(t, [...]bus.ClientName{"reader", "reader", "reader"}, names())
		}
		require.NoError(t, p.Data[1].DeleteToken(ctx, token))
		require.NoError(t, p.SyncToken(ctx, token))
		assert.Equal(t, [...]bus.ClientName{"reader", "", "reader"}, names(), "it may have been lost")
	})
}
