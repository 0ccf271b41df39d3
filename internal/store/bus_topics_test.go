package store_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/layout"
	"routemaster/internal/rdb"
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

// TestADeletedTopicIsGoneEverywhere except for events published before, even if they are still in
// an outbox.
func TestADeletedTopicIsGoneEverywhere(t *testing.T) {
	eachBus(t, func(t *testing.T, p *storetest.Partitions) {
		ctx, topic, other := t.Context(), p.TopicIn(0, 0), p.TopicIn(0, 1)
		for i := range p.All {
			p.AddSubscriber(rdb.Number(i), 100, topic, other)
		}
		p.PublishEvents(topic, 1, 3)
		p.PublishEvents(other, 1, 1)
		require.ErrorIs(t, deleteTopic(p, topic, p.TokenIn(1)), bus.ErrTopicClaimed)
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
	t.Parallel()
	eachBus(t, func(t *testing.T, p *storetest.Partitions) {
		ctx, topic := t.Context(), p.TopicIn(0, 0)
		token := p.AddSubscriber(1, 100, topic)
		p.PublishEvents(topic, 1, 3)
		_, err := p.All[1].Hold(ctx, 0)
		require.NoError(t, err)
		require.ErrorIs(t, deleteTopic(p, topic, storetest.Publisher), bus.ErrTopicRelayed)
		require.NoError(t, p.All[1].Release(ctx))
		p.MS += 1000
		require.NoError(t, deleteTopic(p, topic, storetest.Publisher))
		relayAll(p) // the deletion may end before the relay that ends its job
		assert.Equal(t, storetest.UpTo(1, 3), p.Received(1, token, topic))
		p.RequireNothingLeft()
	})
}

// TestSubscribingWhileATopicIsDeleted: no client stays subscribed to a topic that is not relayed,
// and no deletion undoes a subscription that came after it.
func TestSubscribingWhileATopicIsDeleted(t *testing.T) {
	eachBus(t, func(t *testing.T, p *storetest.Partitions) {
		ctx, topic := t.Context(), p.TopicIn(0, 0)
		token := p.AddSubscriber(1, 100, p.TopicIn(1, 0))
		p.PublishEvents(topic, 1, 1)
		d, err := p.Relays[0].BeginDeletion(ctx, topic, storetest.Publisher)
		require.NoError(t, err)
		require.NoError(t, p.Subscribe(ctx, token, subscription(topic), p.Now())) // in the middle
		require.ErrorIs(t, p.DeleteTopic(ctx, topic, storetest.Publisher), bus.ErrTopicBusy, "one deletes it already")
		removed, err := p.Relays[0].EndDeletion(ctx, d, true)
		require.NoError(t, err)
		assert.False(t, removed, "somebody has subscribed")
		p.PublishEvents(topic, 2, 2)
		relayAll(p)
		assert.Equal(t, []int{2}, p.Received(1, token, topic))

		require.NoError(t, p.DeleteTopic(ctx, topic, storetest.Publisher))
		topics, err := p.All[1].SMembers(ctx, layout.Keys{Namespace: p.All[1].Namespace()}.SubscriberTopics(token)).Result()
		require.NoError(t, err)
		assert.Empty(t, topics)
		require.NoError(t, p.Subscribe(ctx, token, subscription(topic), p.Now()))
		removed, err = p.Relays[0].EndDeletion(ctx, d, true) // its answer was lost
		require.NoError(t, err)
		assert.False(t, removed)
		p.PublishEvents(topic, 3, 3)
		relayAll(p)
		assert.Equal(t, []int{2, 3}, p.Received(1, token, topic))
	})
}

// TestADeletionThatFailsChangesNothing because a partition is away, or its client has gone.
func TestADeletionThatFailsChangesNothing(t *testing.T) {
	eachBus(t, func(t *testing.T, p *storetest.Partitions) {
		ctx, topic := t.Context(), p.TopicIn(0, 0)
		for _, number := range []rdb.Number{1, 2} {
			p.AddSubscriber(number, 100, topic)
		}
		_, err := p.All[2].Hold(ctx, 0)
		require.NoError(t, err)
		require.ErrorIs(t, p.DeleteTopic(ctx, topic, storetest.Publisher), bus.ErrTopicClaimed, "nobody has published to it")
		require.ErrorIs(t, p.DeleteTopic(ctx, topic, ""), bus.ErrUnavailable)
		require.NoError(t, p.All[2].Release(ctx))
		p.PublishEvents(topic, 1, 1)
		impatient, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
		defer cancel()
		require.Error(t, p.DeleteTopic(impatient, topic, ""), "the event is on its way, and no worker runs")
		p.PublishEvents(topic, 2, 2)
		relayAll(p)
		for _, number := range []rdb.Number{1, 2} {
			assert.Equal(t, []int{1, 2}, p.Received(number, p.TokenIn(number), topic))
		}
	})
}

// TestGenerationsAreNeverUsedAgain: otherwise a late close of an outbox would close that of a later
// subscription.
func TestGenerationsAreNeverUsedAgain(t *testing.T) {
	eachBus(t, func(t *testing.T, p *storetest.Partitions) {
		ctx, topic := t.Context(), p.TopicIn(0, 0)
		token := p.AddSubscriber(1, 100, topic)
		generation := func() string {
			return p.All[0].HGet(ctx, layout.Keys{Namespace: p.All[0].Namespace()}.Outboxes(topic), "01").Val()
		}
		late := generation()
		require.NoError(t, p.Unsubscribe(ctx, token, topic))
		require.NoError(t, p.EndUnwantedRelays(ctx, p.Home(topic), []bus.TopicName{topic}))
		assert.Empty(t, generation())
		require.NoError(t, p.Subscribe(ctx, token, subscription(topic), p.Now()))
		closed, err := p.Relays[0].Close(ctx, topic, 1, late)
		require.NoError(t, err)
		assert.False(t, closed)
		require.NoError(t, p.DeleteTopic(ctx, topic, ""))
		require.NoError(t, p.Subscribe(ctx, token, subscription(topic), p.Now()))
		assert.Equal(t, "3", generation())
	})
}

// TestAPartitionThatIsHeldIsNotTakenForEmpty while its keys are moved.
func TestAPartitionThatIsHeldIsNotTakenForEmpty(t *testing.T) {
	eachBus(t, func(t *testing.T, p *storetest.Partitions) {
		ctx, topic := t.Context(), p.TopicIn(0, 0)
		token := p.AddSubscriber(1, 100, topic)
		_, err := p.All[1].Hold(ctx, 0)
		require.NoError(t, err)
		key := layout.Keys{Namespace: p.All[1].Namespace()}.TopicSubscribers(topic)
		require.NoError(t, p.All[1].Rename(ctx, key, key+" aside").Err())
		require.ErrorIs(t, p.EndUnwantedRelays(ctx, p.Home(topic), []bus.TopicName{topic}), bus.ErrUnavailable)
		require.NoError(t, p.All[1].Rename(ctx, key+" aside", key).Err())
		require.NoError(t, p.All[1].Release(ctx))
		p.PublishEvents(topic, 1, 1)
		relayAll(p)
		assert.Equal(t, []int{1}, p.Received(1, token, topic))
	})
}

// markBus marks the bus in a partition, as processes do.
func markBus(p *storetest.Partitions, number rdb.Number, field, value string) {
	p.T.Helper()
	require.NoError(p.T, p.All[number].HSet(p.T.Context(), p.All[number].Namespace()+rdb.IdentityKey, field, value).Err())
}

// TestASubscriptionGetsWhatIsPublishedAfterIt though no relay has run since, and events from before
// are on their way to its partition: for it, if it was deleted meanwhile, and for others.
func TestASubscriptionGetsWhatIsPublishedAfterIt(t *testing.T) {
	eachBus(t, func(t *testing.T, p *storetest.Partitions) {
		ctx, topic, other := t.Context(), p.TopicIn(0, 0), p.TopicIn(0, 1)
		markBus(p, 0, "id", "a")
		token, late := p.AddSubscriber(1, 100, topic, other), p.TokensIn(1, 1)
		require.NoError(t, p.PutToken(ctx, late, "late"))
		subscribe := func(token bus.Token, topics ...bus.TopicName) {
			t.Helper()
			require.NoError(t, p.Subscribe(ctx, token, subscription(topics...), p.Now()))
		}
		p.PublishEvents(topic, 1, 3)
		p.PublishEvents(other, 1, 1)
		require.NoError(t, p.Of(token).DeleteSubscriber(ctx, token))
		subscribe(token, topic, other)
		p.PublishEvents(topic, 4, 9) // one relay has these and those before
		subscribe(late, topic)
		p.PublishEvents(topic, 10, 11)
		subscribe(token, topic, other) // which changes nothing
		subscribe(late, topic, other)
		p.PublishEvents(other, 2, 2)
		for range 6 { // a head that is partly for a subscription is halved
			relayAll(p)
		}
		assert.Equal(t, storetest.UpTo(4, 11), p.Received(1, token, topic))
		assert.Equal(t, []int{2}, p.Received(1, token, other))
		assert.Equal(t, []int{10, 11}, p.Received(1, late, topic))
		assert.Equal(t, []int{2}, p.Received(1, late, other))
		starts := layout.Keys{Namespace: p.All[1].Namespace()}.RelayStarts()
		assert.Zero(t, p.All[1].Exists(ctx, starts).Val(), "all have begun")

		p.PublishEvents(topic, 12, 12)
		require.NoError(t, p.Unsubscribe(ctx, token, topic))
		subscribe(token, topic)
		p.PublishEvents(topic, 13, 13)
		for range 2 {
			relayAll(p)
		}
		assert.Equal(t, 13, last(p.Received(1, token, topic)))
		assert.NotContains(t, p.Received(1, token, topic), 12)
		assert.Equal(t, storetest.UpTo(10, 13), p.Received(1, late, topic))
		p.RequireNothingLeft()
	})
}

func last(numbers []int) int { return numbers[len(numbers)-1] }

// TestAHomeThatHasLostItsCounts starts to count again. A subscription's start in the lost count
// excludes none of the new events.
func TestAHomeThatHasLostItsCounts(t *testing.T) {
	for loss, mark := range map[string][2]string{"empty": {"id", "b"}, "older": {"losses", "1"}} {
		t.Run(loss, func(t *testing.T) { testLostCounts(t, mark[0], mark[1]) })
	}
}

func testLostCounts(t *testing.T, field, changed string) {
	eachBus(t, func(t *testing.T, p *storetest.Partitions) {
		ctx, topic := t.Context(), p.TopicIn(0, 0)
		markBus(p, 0, "id", "a")
		token := p.AddSubscriber(1, 100, topic)
		p.PublishEvents(topic, 1, 3)
		relayAll(p)
		p.PublishEvents(topic, 4, 6)
		require.NoError(t, p.Of(token).DeleteSubscriber(ctx, token))
		require.NoError(t, p.Subscribe(ctx, token, subscription(topic), p.Now()))
		keys := layout.Keys{Namespace: p.All[0].Namespace()}
		require.NoError(t, p.All[0].Del(ctx, keys.RelayCarried(), keys.Outbox(1)).Err())
		markBus(p, 0, field, changed)
		p.PublishEvents(topic, 7, 8)
		relayAll(p)
		assert.Equal(t, []int{7, 8}, p.Received(1, token, topic))
	})
}
