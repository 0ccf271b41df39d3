package store_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/layout"
	"routemaster/internal/maintenance"
	"routemaster/internal/rdb"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store"
	"routemaster/internal/store/storetest"
)

func eachBus(t *testing.T, test func(t *testing.T, p *storetest.Partitions)) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) { test(t, storetest.NewPartitions(t, server.Open(t))) })
}

// relayAll runs the relays of all partitions until every outbox is empty.
func relayAll(p *storetest.Partitions) {
	p.T.Helper()
	for range 3 { // one that finds an outbox empty ends its job
		for number := range p.All {
			p.Relay(rdb.Number(number))
		}
		p.MS += 20
	}
}

// subscription is one to topics.
func subscription(topics ...bus.TopicName) bus.Subscription {
	timeout := time.Hour
	return bus.Subscription{Topics: topics, Callback: "https://reader.example/", Timeout: &timeout}
}

func TestOneStoreIsAll(t *testing.T) {
	st := storetest.Open(t, rdbtest.Embedded(t))
	all := store.NewBus(st)
	assert.Equal(t, []*store.Store{st}, all.All())
	for _, got := range []*store.Store{all.First(), all.Home("widgets"), all.Of("reader--1")} {
		assert.Same(t, st, got)
	}
}

// TestEveryTopicReachesEverySubscriber has a topic and a subscriber in each partition.
func TestEveryTopicReachesEverySubscriber(t *testing.T) {
	eachBus(t, func(t *testing.T, p *storetest.Partitions) {
		topics := []bus.TopicName{p.TopicIn(0, 0), p.TopicIn(1, 0), p.TopicIn(2, 0)}
		for i := range p.All {
			p.AddSubscriber(rdb.Number(i), 100, topics...)
			assert.Same(t, p.Data[i], p.Home(topics[i]))
			assert.Same(t, p.Data[i], p.Of(p.TokenIn(rdb.Number(i))))
		}
		for _, topic := range topics {
			p.PublishEvents(topic, 1, 5)
		}
		relayAll(p)
		for i := range p.All {
			number := rdb.Number(i)
			for _, topic := range topics {
				assert.Equal(t, storetest.UpTo(1, 5), p.Received(number, p.TokenIn(number), topic), "%s in %d", topic, i)
			}
		}
		p.RequireNothingLeft()
	})
}

// TestASubscriptionIsRepeated because the home of its topic is away at first.
func TestASubscriptionIsRepeated(t *testing.T) {
	eachBus(t, func(t *testing.T, p *storetest.Partitions) {
		ctx, topic, token := t.Context(), p.TopicIn(0, 0), p.TokenIn(1)
		require.NoError(t, p.PutToken(ctx, token, "reader"))
		_, err := p.All[0].Hold(ctx, 0)
		require.NoError(t, err)
		require.ErrorIs(t, p.Subscribe(ctx, token, subscription(topic), p.Now()), bus.ErrUnavailable)
		require.NoError(t, p.All[0].Release(ctx))
		require.NoError(t, p.Subscribe(ctx, token, subscription(topic), p.Now()))
		other := p.TopicIn(2, 0)
		require.NoError(t, p.PatchSubscriber(ctx, token, bus.Subscription{Topics: []bus.TopicName{topic, other}}, p.Now()))
		p.PublishEvents(topic, 1, 1)
		p.PublishEvents(other, 1, 1)
		relayAll(p)
		assert.Equal(t, []int{1}, p.Received(1, token, topic))
		assert.Equal(t, []int{1}, p.Received(1, token, other))
	})
}

func TestWhatIsWrongWithASubscription(t *testing.T) {
	eachBus(t, func(t *testing.T, p *storetest.Partitions) {
		ctx, topic := t.Context(), p.TopicIn(0, 0)
		require.ErrorIs(t, p.Subscribe(ctx, p.TokenIn(1), subscription(topic), p.Now()), bus.ErrTokenUnknown)
		token := p.AddSubscriber(1, 1, p.TopicIn(1, 0))
		require.ErrorIs(t, p.Unsubscribe(ctx, token, topic), bus.ErrTopicUnknown)
		p.PublishEvents(topic, 1, 1)
		require.ErrorIs(t, p.Unsubscribe(ctx, token, topic), bus.ErrNotSubscribed, "the topic is known elsewhere")
		require.ErrorIs(t, p.Unsubscribe(ctx, token, "nowhere"), bus.ErrTopicUnknown)
		assert.Zero(t, p.Relay(0))
	})
}

// TestRelaysEndWithTheLastSubscription of a partition, as it gets an event in vain.
func TestRelaysEndWithTheLastSubscription(t *testing.T) {
	eachBus(t, func(t *testing.T, p *storetest.Partitions) {
		ctx, topic := t.Context(), p.TopicIn(0, 0)
		token := p.AddSubscriber(1, 100, topic, p.TopicIn(0, 1))
		require.NoError(t, p.Unsubscribe(ctx, token, topic))
		p.PublishEvents(topic, 1, 1)
		assert.Equal(t, 1, p.Relay(0), "nobody has said so yet")
		relayAll(p)
		p.PublishEvents(topic, 2, 2)
		assert.Zero(t, p.Relay(0))
		p.PublishEvents(p.TopicIn(0, 1), 1, 1)
		assert.Equal(t, 1, p.Relay(0), "another topic is still relayed")
		relayAll(p)

		require.NoError(t, p.Subscribe(ctx, token, subscription(topic), p.Now()))
		require.NoError(t, p.Of(token).DeleteSubscriber(ctx, token))
		p.PublishEvents(topic, 3, 3)
		require.NoError(t, p.Subscribe(ctx, token, subscription(topic), p.Now())) // while it is on its way
		relayAll(p)
		p.PublishEvents(topic, 4, 4)
		relayAll(p)
		assert.Contains(t, p.Received(1, token, topic), 4)
		p.RequireNothingLeft()
	})
}

// TestAnEarlierSubscriptionInAPartition leaves nothing to the next of its token.
func TestAnEarlierSubscriptionInAPartition(t *testing.T) {
	eachBus(t, func(t *testing.T, p *storetest.Partitions) {
		ctx, own, other := t.Context(), p.TopicIn(1, 0), p.TopicIn(0, 0)
		token := p.AddSubscriber(1, 2, own, other)
		p.PublishEvents(own, 1, 15)
		p.PublishEvents(other, 1, 15)
		relayAll(p)
		require.NoError(t, p.Of(token).DeleteSubscriber(ctx, token))
		p.RequireSound()
		require.NoError(t, p.Subscribe(ctx, token, subscription(own, other), p.Now()))
		p.RequireSound()
		p.PublishEvents(own, 16, 18)
		p.PublishEvents(other, 16, 18)
		relayAll(p)
		assert.Equal(t, []int{16, 17, 18}, p.Received(1, token, own))
		assert.Equal(t, []int{16, 17, 18}, p.Received(1, token, other))
		p.RequireNothingLeft()
	})
}

// TestSubscribingWhileRelaysEnd lets two subscribers of a partition come and go, while relays end
// as they carry unwanted events. A subscriber gets all events published from its subscription on.
func TestSubscribingWhileRelaysEnd(t *testing.T) {
	eachBus(t, func(t *testing.T, p *storetest.Partitions) {
		ctx, topic, published := t.Context(), p.TopicIn(0, 0), 0
		token := p.AddSubscriber(1, 100, topic)
		for range rdbtest.Fewer(60) {
			require.NoError(t, p.Unsubscribe(ctx, token, topic))
			published++
			p.PublishEvents(topic, published, published)
			subscribed := make(chan error)
			go func() { subscribed <- p.Subscribe(context.WithoutCancel(ctx), token, subscription(topic), p.Now()) }()
			task := p.TakeRelay(0, "worker")
			require.NotNil(t, task)
			_, err := p.Queues[0].Complete(ctx, task, p.Relayer.Relay(ctx, task), p.Now())
			require.NoError(t, err)
			require.NoError(t, <-subscribed)
			p.MS += 20
			published++
			p.PublishEvents(topic, published, published)
			relayAll(p)
			require.Contains(t, p.Received(1, token, topic), published)
		}
	})
}

// TestAnUnusedTopicThatIsRelayed has subscribers only in another partition.
func TestAnUnusedTopicThatIsRelayed(t *testing.T) {
	eachBus(t, func(t *testing.T, p *storetest.Partitions) {
		ctx, topic := t.Context(), p.TopicIn(0, 0)
		p.AddSubscriber(1, 1, topic)
		for _, day := range []int{0, 2} {
			removed, err := p.Home(topic).SweepTopics(ctx, []string{string(topic)}, p.Now().AddDate(0, 0, day))
			require.NoError(t, err)
			assert.Zero(t, removed)
		}
		require.NoError(t, p.EndUnwantedRelays(ctx, p.Home(topic), []bus.TopicName{topic, "nowhere"}))
		p.PublishEvents(topic, 1, 1)
		relayAll(p)
		assert.Equal(t, []int{1}, p.Received(1, p.TokenIn(1), topic))

		unused := p.TopicIn(0, 1) // never published to
		require.NoError(t, p.Subscribe(ctx, p.TokenIn(1), subscription(topic, unused), p.Now()))
		require.NoError(t, p.Unsubscribe(ctx, p.TokenIn(1), unused))
		tidier := maintenance.NewTidier(p.Bus, p.Home(unused))
		for _, day := range []int{0, 2} {
			for done := false; !done; {
				var err error
				_, done, err = tidier.Step(ctx, p.Now().AddDate(0, 0, day))
				require.NoError(t, err)
			}
		}
		for topic, want := range map[bus.TopicName]bool{topic: true, unused: false} {
			known, err := p.All[0].SIsMember(ctx, layout.Keys{Namespace: p.All[0].Namespace()}.Topics(), string(topic)).Result()
			require.NoError(t, err)
			assert.Equal(t, want, known, topic)
		}
	})
}

// TestTheLimitOfTopicsIsThatOfTheBus wherever the topics and the client are.
func TestTheLimitOfTopicsIsThatOfTheBus(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		p := storetest.NewPartitions(t, server.Open(t), func(o *store.Options) { o.MaxClientTopics, o.MaxTopics = 4, 12 })
		ctx := t.Context()
		var others []bus.TopicName // of a client of each partition
		for i := range p.All {
			for n := range 2 {
				others = append(others, p.TopicIn(rdb.Number(i), n))
			}
		}
		for i := range p.All {
			token, name := p.TokenIn(rdb.Number(i)), bus.ClientName(fmt.Sprintf("client-%d", i))
			require.NoError(t, p.PutToken(ctx, token, name))
			require.NoError(t, p.Subscribe(ctx, token, subscription(others[2*i:2*i+2]...), p.Now()))
		}
		token := p.TokenIn(1)
		require.NoError(t, p.Subscribe(ctx, token, subscription(others...), p.Now()), "they are of others")
		for range 2 { // topics named already count once
			require.NoError(t, p.Subscribe(ctx, token, subscription(append(others, "new_a", "new_b")...), p.Now()))
		}
		var limit *bus.TopicLimitError
		err := p.Subscribe(ctx, token, subscription(append(others, "new_c")...), p.Now())
		require.ErrorAs(t, err, &limit)
		assert.Equal(t, bus.TopicLimitError{Limit: 4}, *limit)
		err = p.PatchSubscriber(ctx, p.TokenIn(2), bus.Subscription{Topics: []bus.TopicName{"new_d", "new_e", "new_f"}}, p.Now())
		require.ErrorAs(t, err, &limit)
		require.NoError(t, p.Subscribe(ctx, p.TokenIn(2), subscription("new_d", "new_e"), p.Now()))
		require.NoError(t, p.Subscribe(ctx, p.TokenIn(0), subscription("new_f", "new_g"), p.Now()))
		require.NoError(t, p.PutToken(ctx, "late--1", "late"))
		require.ErrorAs(t, p.Subscribe(ctx, "late--1", subscription("new_h"), p.Now()), &limit)
		assert.Equal(t, bus.TopicLimitError{Limit: 12, OfBus: true}, *limit)
		for _, st := range p.Data {
			storetest.RequireSound(t, st)
		}
	})
}
