package store_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store"
)

// TestAPublishThatFailsWritesNothing has each key that a publish writes for all subscribers be of another type, and a publish fail
// that would open a batch, or that would fill one.
func TestAPublishThatFailsWritesNothing(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		for _, key := range []string{"batches:index", "jobs:index:main", "jobs:scheduled:main", "jobs:instant:main", "topics"} {
			for _, batch := range []string{"opened", "filled"} {
				require.NoError(t, server.Raw.FlushAll(t.Context()).Err())
				f := newFixture(t, server)
				ctx := t.Context()
				f.AddSubscriber(alice, 0, 1, "widgets")
				f.AddSubscriber(bob, time.Hour, 3, "widgets")
				if batch == "filled" {
					f.PublishEvents("widgets", 1, 1, 0)
					f.PublishEvents("widgets", 2, 2, 0)
					require.NoError(t, f.Unsubscribe(ctx, alice, "widgets"))
				}
				claims := key == "topics"
				if claims && batch == "filled" {
					continue // the topic is claimed already
				}
				require.NoError(t, f.Redis.Del(ctx, key).Err())
				require.NoError(t, f.Redis.Set(ctx, key, "x", 0).Err())
				before := dump(t, f.Redis)
				p := f.keyed(publisher, "k", "d", time.Hour, 0)
				err := f.Publish(ctx, p)
				require.Error(t, err, "%s, a batch is %s", key, batch)
				assert.ErrorContains(t, err, key)
				assert.NotErrorIs(t, err, bus.ErrUnavailable)
				require.Equal(t, before, dump(t, f.Redis), "%s, a batch is %s", key, batch)

				require.NoError(t, f.Redis.Del(ctx, key).Err())
				require.True(t, f.store(p), "the key is not used up")
			}
		}
	})
}

// TestAPublishOpensSoManyBatchesAtMost counts what a publish would open: 50,000 are stored, one more is refused, and changes
// nothing, even the topic's publisher.
func TestAPublishOpensSoManyBatchesAtMost(t *testing.T) {
	server := rdbtest.Real(t)
	f := newFixture(t, server)
	ctx := t.Context()
	event := packed(t, "widgets", 1)
	publish := func(events int) error {
		p := store.Publication{Topic: "widgets", Publisher: publisher, ReceivedAt: start.UnixMilli()}
		for range events {
			p.Events = append(p.Events, event)
		}
		return f.Publish(ctx, p)
	}
	for n := range 51 {
		token := bus.Token(fmt.Sprintf("s--%d", n))
		require.NoError(t, f.PutToken(ctx, token, "s"))
		f.AddSubscriber(token, time.Hour, 1, "widgets")
	}
	before := dump(t, f.Redis)
	require.ErrorIs(t, publish(1000), bus.ErrTooManyBatches, "51,000")
	assert.Equal(t, before, dump(t, f.Redis))

	require.NoError(t, f.DeleteSubscriber(ctx, "s--50"))
	require.NoError(t, publish(1000), "50,000")
	require.Equal(t, int64(50_000), f.Redis.ZCard(ctx, "batches:index").Val())

	f.AddSubscriber("s--50", time.Hour, 2, "widgets")
	require.ErrorIs(t, publish(1000), bus.ErrTooManyBatches, "50,500")
	require.NoError(t, f.Redis.FlushAll(ctx).Err())
	f.Register()
	for n := range 51 {
		token := bus.Token(fmt.Sprintf("s--%d", n))
		require.NoError(t, f.PutToken(ctx, token, "s"))
		f.AddSubscriber(token, time.Hour, 1000, "widgets")
	}
	require.NoError(t, publish(1000), "51")
	f.RequireSound()
}

// TestWhatFitsIntoOpenBatchesOpensNone publishes where most events have room.
func TestWhatFitsIntoOpenBatchesOpensNone(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		f.AddSubscriber(alice, time.Hour, 5, "widgets")
		next := 1
		for _, events := range []int{3, 1, 1, 6, 4, 5, 11, 2} { // from one state of the open batch to any other
			f.PublishEvents("widgets", next, next+events-1, 0)
			next += events
			assert.Equal(t, int64((next-1+4)/5), f.Redis.ZCard(t.Context(), "batches:index").Val())
			f.RequireSound()
		}
	})
}
