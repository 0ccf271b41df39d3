package stores_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/rdb"
	"routemaster/internal/store"
	"routemaster/internal/store/storetest"
)

// deleteTopic deletes a topic while workers run the relays of its home.
func deleteTopic(p *storetest.Partitions, topic bus.TopicName, by bus.Token) error {
	p.T.Helper()
	deleted := make(chan error, 1)
	go func() { deleted <- p.DeleteTopic(p.T.Context(), topic, by) }()
	for {
		select {
		case err := <-deleted:
			return err
		default:
			p.Relay(p.HomeOf(topic))
			p.MS += 20
		}
	}
}

// TestADeletedTopicIsGoneEverywhere but for what was published before, also where that is still on
// its way.
func TestADeletedTopicIsGoneEverywhere(t *testing.T) {
	each(t, func(t *testing.T, p *storetest.Partitions) {
		ctx, topic, other := t.Context(), p.TopicIn(0, 0), p.TopicIn(0, 1)
		for i := range p.All {
			p.AddSubscriber(rdb.Number(i), 100, topic, other)
		}
		p.PublishEvents(topic, 1, 3)
		p.PublishEvents(other, 1, 1)
		require.ErrorIs(t, deleteTopic(p, topic, p.TokenIn(1)), bus.ErrTopicClaimed)
		require.ErrorIs(t, p.Home(topic).DeleteTopic(ctx, topic, ""), store.ErrRelayed)
		p.PublishEvents(topic, 4, 4)
		require.NoError(t, deleteTopic(p, topic, storetest.Publisher))
		require.ErrorIs(t, deleteTopic(p, topic, ""), bus.ErrTopicUnknown)
		for i := range p.All {
			known, err := p.All[i].SIsMember(ctx, p.All[i].Namespace()+"topics", string(topic)).Result()
			require.NoError(t, err)
			assert.False(t, known)
		}
		p.PublishEvents(topic, 5, 5) // it is another topic
		p.PublishEvents(other, 2, 2)
		relayAll(p)
		for i := range p.All {
			number := rdb.Number(i)
			assert.Equal(t, storetest.UpTo(1, 4), p.Received(number, p.TokenIn(number), topic))
			assert.Equal(t, storetest.UpTo(1, 2), p.Received(number, p.TokenIn(number), other))
		}
		p.RequireNothingLeft()
	})
}

// TestATopicWhoseEventsCannotBeRelayed is not deleted: they would be lost.
func TestATopicWhoseEventsCannotBeRelayed(t *testing.T) {
	each(t, func(t *testing.T, p *storetest.Partitions) {
		ctx, topic := t.Context(), p.TopicIn(0, 0)
		token := p.AddSubscriber(1, 100, topic)
		p.PublishEvents(topic, 1, 3)
		_, err := p.All[1].Hold(ctx, 0)
		require.NoError(t, err)
		require.ErrorIs(t, deleteTopic(p, topic, storetest.Publisher), bus.ErrUnavailable)
		require.NoError(t, p.All[1].Release(ctx))
		p.MS += 1000
		require.NoError(t, deleteTopic(p, topic, storetest.Publisher))
		assert.Equal(t, storetest.UpTo(1, 3), p.Received(1, token, topic))
		p.RequireNothingLeft()
	})
}

// TestSubscribingWhileATopicIsDeleted leaves nobody subscribed to a topic that is not relayed.
func TestSubscribingWhileATopicIsDeleted(t *testing.T) {
	each(t, func(t *testing.T, p *storetest.Partitions) {
		ctx, topic := t.Context(), p.TopicIn(0, 0)
		token := p.AddSubscriber(1, 100, p.TopicIn(1, 0))
		p.PublishEvents(topic, 1, 1)
		far, err := p.Relays[0].End(ctx, topic, storetest.Publisher)
		require.NoError(t, err)
		assert.Empty(t, far)
		require.NoError(t, p.Subscribe(ctx, token, subscription(topic), p.Now())) // in the middle
		require.ErrorIs(t, p.Home(topic).DeleteTopic(ctx, topic, storetest.Publisher), store.ErrRelayed)
		require.NoError(t, p.DeleteTopic(ctx, topic, storetest.Publisher))
		topics, err := p.All[1].SMembers(ctx, store.Keys{Namespace: p.All[1].Namespace()}.SubscriberTopics(token)).Result()
		require.NoError(t, err)
		assert.Empty(t, topics)
		require.NoError(t, p.Subscribe(ctx, token, subscription(topic), p.Now()))
		p.PublishEvents(topic, 2, 2)
		relayAll(p)
		assert.Equal(t, []int{2}, p.Received(1, token, topic))
	})
}
