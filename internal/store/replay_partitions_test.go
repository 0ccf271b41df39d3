package store_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store"
	"routemaster/internal/store/storetest"
)

// TestAReplayOfATopicOfAnotherPartition copies from the topic's home to the subscriber's queue.
func TestAReplayOfATopicOfAnotherPartition(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		ctx := t.Context()
		p := storetest.NewPartitions(t, server.Open(t))
		topic := p.TopicIn(0, 0)
		p.PublishEvents(topic, 1, 1)
		require.NoError(t, store.NewHistory(p.Home(topic)).Put(ctx, topic, "", store.HistoryLimits{Events: 100}, p.Now()))
		p.PublishEvents(topic, 2, 8)
		token := p.AddSubscriber(1, 3, topic)
		replays := store.NewReplays(p.Bus, p.Of(token))
		_, err := replays.Start(ctx, token, topic, store.ReplayRange{From: 4}, p.Now())
		require.NoError(t, err)
		done, err := replays.Copy(ctx, p.Now(), always)
		require.NoError(t, err)
		assert.Equal(t, 5, done.Events[token])
		assert.Equal(t, storetest.UpTo(4, 8), p.Received(1, token, topic))

		require.NoError(t, store.NewHistory(p.Home(topic)).Delete(ctx, topic, ""))
		_, err = replays.Start(ctx, token, topic, store.ReplayRange{From: 4}, p.Now())
		require.ErrorIs(t, err, store.ErrReplayNoHistory)
		p.RequireNothingLeft()
	})
}
