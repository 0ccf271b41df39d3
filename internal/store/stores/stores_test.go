package stores_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/maintenance"
	"routemaster/internal/rdb"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store"
	"routemaster/internal/store/stats"
	"routemaster/internal/store/stores"
	"routemaster/internal/store/storetest"
)

func TestMain(m *testing.M) { rdbtest.Main(m) }

func each(t *testing.T, test func(t *testing.T, p *storetest.Partitions)) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) { test(t, storetest.NewPartitions(t, server.Open(t))) })
}

// relayAll runs the relays of all partitions until all is where it belongs.
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
	all := stores.New(st)
	assert.Equal(t, []*store.Store{st}, all.All())
	for _, got := range []*store.Store{all.First(), all.Home("widgets"), all.Of("reader--1")} {
		assert.Same(t, st, got)
	}
}

// TestEveryTopicReachesEverySubscriber has a topic and a subscriber in each partition.
func TestEveryTopicReachesEverySubscriber(t *testing.T) {
	each(t, func(t *testing.T, p *storetest.Partitions) {
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

// TestASubscriptionIsRepeated has the home of its topic away at first.
func TestASubscriptionIsRepeated(t *testing.T) {
	each(t, func(t *testing.T, p *storetest.Partitions) {
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
	each(t, func(t *testing.T, p *storetest.Partitions) {
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
	each(t, func(t *testing.T, p *storetest.Partitions) {
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

// TestSubscribingWhileRelaysEnd has two subscribers of a partition come and go, while the events
// that nobody gets end their relays. Who is subscribed gets all that is published from then on.
func TestSubscribingWhileRelaysEnd(t *testing.T) {
	each(t, func(t *testing.T, p *storetest.Partitions) {
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

// TestAnUnusedTopicThatIsRelayed has a subscriber elsewhere alone.
func TestAnUnusedTopicThatIsRelayed(t *testing.T) {
	each(t, func(t *testing.T, p *storetest.Partitions) {
		ctx, topic := t.Context(), p.TopicIn(0, 0)
		p.AddSubscriber(1, 1, topic)
		for _, day := range []int{0, 2} {
			removed, err := p.Home(topic).SweepTopics(ctx, []string{string(topic)}, p.Now().AddDate(0, 0, day))
			require.NoError(t, err)
			assert.Zero(t, removed)
		}
		require.NoError(t, p.EndUnwantedRelays(ctx, p.Home(topic), []string{string(topic), "nowhere"}))
		p.PublishEvents(topic, 1, 1)
		relayAll(p)
		assert.Equal(t, []int{1}, p.Received(1, p.TokenIn(1), topic))

		unused := p.TopicIn(0, 1) // nobody has ever published to it
		require.NoError(t, p.Subscribe(ctx, p.TokenIn(1), subscription(topic, unused), p.Now()))
		require.NoError(t, p.Unsubscribe(ctx, p.TokenIn(1), unused))
		tidier := maintenance.NewTidier(p.Stores, p.Home(unused))
		for _, day := range []int{0, 2} {
			for done := false; !done; {
				var err error
				_, done, err = tidier.Step(ctx, p.Now().AddDate(0, 0, day))
				require.NoError(t, err)
			}
		}
		for topic, want := range map[bus.TopicName]bool{topic: true, unused: false} {
			known, err := p.All[0].SIsMember(ctx, store.Keys{Namespace: p.All[0].Namespace()}.Topics(), string(topic)).Result()
			require.NoError(t, err)
			assert.Equal(t, want, known, topic)
		}
	})
}

// apart are the partitions of a bus of which each is on a Redis of its own.
func apart(t *testing.T) (*stores.Stores, []*rdbtest.Server) {
	var all []*store.Store
	var servers []*rdbtest.Server
	for i := range storetest.PartitionCount {
		servers = append(servers, rdbtest.Real(t))
		p := servers[i].Open(t).Partitions("", storetest.PartitionCount)[i]
		require.NoError(t, p.Release(t.Context()))
		all = append(all, storetest.OpenOn(p))
	}
	return stores.New(all...), servers
}

func TestTokensAreFoundWherePartitionsAreThere(t *testing.T) {
	all, servers := apart(t)
	ctx := t.Context()
	require.NoError(t, all.PutToken(ctx, "reader--1", "reader"))
	require.ErrorIs(t, all.PutToken(ctx, "reader--1", "another"), bus.ErrTokenTaken)
	servers[0].Freeze(t)
	servers[2].Kill(t)
	rdbtest.Promptly(t, 2*time.Second, func() time.Duration {
		return rdbtest.Took(func() {
			for range 5 { // in whatever order
				token, name, err := all.FindToken(ctx, []bus.Token{"unknown", "reader--1"})
				require.NoError(t, err)
				assert.Equal(t, "reader--1 reader", fmt.Sprint(token, " ", name))
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
	each(t, func(t *testing.T, p *storetest.Partitions) {
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
	each(t, func(t *testing.T, p *storetest.Partitions) {
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
		_, err = p.EachSubscribers(ctx, stats.Page{}, func(some []bus.Subscriber) error {
			subscribers += len(some)
			return nil
		})
		require.NoError(t, err)
		assert.Zero(t, subscribers)
		_, _, err = p.RotateToken(ctx, token)
		require.ErrorIs(t, err, bus.ErrTokenUnknown)
	})
}
