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
	"routemaster/internal/store/storetest"
	"routemaster/internal/wire"
)

// try publishes an event and returns the error.
func (f *fixture) try(token bus.Token, topic bus.TopicName) error {
	f.T.Helper()
	return f.Publish(f.T.Context(), store.Publication{
		Topic: topic, Publisher: token, Events: []wire.PackedEvent{storetest.Packed(f.T, topic, 1)}, ReceivedAt: storetest.Start.UnixMilli(),
	})
}

// owned are the numbers of topics of clients.
func (f *fixture) owned() map[string]string {
	return f.Redis.HGetAll(f.T.Context(), "topic_owners:counts").Val()
}

func TestATopicBelongsToTheClientOfATokenThatIsGone(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		ctx := t.Context()
		f.PublishAs(storetest.Alice, "widgets")
		f.PublishAs(storetest.Alice, "gadgets")
		require.NoError(t, f.DeleteToken(ctx, storetest.Alice))
		require.ErrorIs(t, f.try(storetest.Bob, "widgets"), bus.ErrTopicClaimed, "it is still the client's")
		require.ErrorIs(t, f.DeleteTopic(ctx, "gadgets", storetest.Bob), bus.ErrTopicClaimed)

		require.NoError(t, f.PutToken(ctx, "alice--2", "alice"))
		require.NoError(t, f.try("alice--2", "widgets"))
		require.NoError(t, f.DeleteTopic(ctx, "gadgets", "alice--2"))
		assert.Equal(t, "alice--2", f.Redis.HGet(ctx, "topic:widgets", "publisher").Val(), "the founding field is the token")
		assert.Equal(t, map[string]string{"alice": "1"}, f.owned())
		require.ErrorIs(t, f.try(storetest.Bob, "widgets"), bus.ErrTopicClaimed)
		f.RequireSound()
	})
}

// TestATopicOfOldDataKeepsItsOwner uses topics that were claimed before owners were noted.
func TestATopicOfOldDataKeepsItsOwner(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		ctx := t.Context()
		for _, topic := range []bus.TopicName{"widgets", "gadgets"} {
			f.PublishAs(storetest.Alice, topic)
		}
		forget := func() { f.Redis.Del(ctx, "topic_owners", "topic_owners:counts") }
		forget()
		require.ErrorIs(t, f.try(storetest.Bob, "widgets"), bus.ErrTopicClaimed)
		require.NoError(t, f.try(storetest.Alice, "widgets"))
		require.NoError(t, f.DeleteToken(ctx, storetest.Alice), "then it is noted whose they are")
		require.ErrorIs(t, f.try(storetest.Bob, "widgets"), bus.ErrTopicClaimed)
		require.NoError(t, f.PutToken(ctx, "alice--2", "alice"))
		require.NoError(t, f.try("alice--2", "widgets"))
		require.NoError(t, f.try("alice--2", "gadgets"))
		assert.Equal(t, map[string]string{"alice": "2"}, f.owned())

		forget()
		f.Redis.HDel(ctx, "api_tokens:by_token", "alice--2")
		require.NoError(t, f.PutToken(ctx, "alice--3", "alice"))
		require.ErrorIs(t, f.try("alice--3", "widgets"), bus.ErrTopicClaimed, "nothing says whose it was")
	})
}

// TestAnOwnerThatIsNotedWronglyGivesNothingAway: the Ruby original, which does not know the notes,
// gives a topic to another client.
func TestAnOwnerThatIsNotedWronglyGivesNothingAway(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		f.PublishAs(storetest.Alice, "widgets")
		f.Redis.HSet(t.Context(), "topic:widgets", "publisher", string(storetest.Bob))
		require.ErrorIs(t, f.try(storetest.Alice, "widgets"), bus.ErrTopicClaimed)
		require.NoError(t, f.try(storetest.Bob, "widgets"))
	})
}

// TestAnOrdinaryPublishLooksUpNoOwner counts the commands of a publish to a topic of the same
// token.
func TestAnOrdinaryPublishLooksUpNoOwner(t *testing.T) {
	server := rdbtest.Real(t)
	f := newFixture(t, server)
	ctx := t.Context()
	f.PublishAs(storetest.Alice, "widgets")
	f.Redis.Del(ctx, "topic_owners", "topic_owners:counts")
	require.NoError(t, f.Redis.ConfigResetStat(ctx).Err())
	f.PublishAs(storetest.Alice, "widgets")
	stats := f.Redis.InfoMap(ctx, "commandstats").Val()["Commandstats"]
	calls := func(command string) (n int) {
		_, err := fmt.Sscanf(stats["cmdstat_"+command], "calls=%d", &n)
		require.NoError(t, err, command)
		return n
	}
	assert.Equal(t, 2, calls("hget"), "the token's name, and the topic's publisher")
	assert.Zero(t, f.Redis.Exists(ctx, "topic_owners").Val())
}

func TestTopicsAreLimited(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server, func(o *store.Options) { o.MaxClientTopics, o.MaxTopics = 1000, 1500 })
		ctx := t.Context()
		requireRefused := func(err error, want bus.TopicLimitError, before map[string]string) {
			t.Helper()
			var refused *bus.TopicLimitError
			require.ErrorAs(t, err, &refused)
			assert.Equal(t, want, *refused)
			assert.Equal(t, before, rdbtest.Dump(t, f.Redis), "a refused request changes nothing")
		}
		subscribe := func(token bus.Token, topics ...bus.TopicName) error {
			return f.Subscribe(ctx, token, bus.Subscription{Topics: topics, Callback: "https://x.example/"}, storetest.Start)
		}
		require.NoError(t, subscribe(storetest.Alice, topicNames("a", 999)...))
		before := rdbtest.Dump(t, f.Redis)
		requireRefused(subscribe(storetest.Alice, "b", "c"), bus.TopicLimitError{Limit: 1000}, before)
		require.NoError(t, subscribe(storetest.Alice, "b", "b"), "a topic counts once")
		assert.Equal(t, map[string]string{"alice": "1000"}, f.owned())
		before = rdbtest.Dump(t, f.Redis)
		requireRefused(f.try(storetest.Alice, "c"), bus.TopicLimitError{Limit: 1000}, before)
		requireRefused(subscribe(storetest.Alice, "b", "c"), bus.TopicLimitError{Limit: 1000}, before)
		require.NoError(t, f.try(storetest.Alice, "b"), "which it has named")
		require.NoError(t, f.try(storetest.Alice, "b"))

		require.NoError(t, subscribe(storetest.Bob, append(topicNames("a", 999), topicNames("d", 500)...)...), "those of others do not count")
		assert.Equal(t, map[string]string{"alice": "1000", "bob": "500"}, f.owned())
		before = rdbtest.Dump(t, f.Redis)
		requireRefused(subscribe(storetest.Bob, "e"), bus.TopicLimitError{Limit: 1500, OfBus: true}, before)
		requireRefused(f.try(storetest.Bob, "e"), bus.TopicLimitError{Limit: 1500, OfBus: true}, before)

		f.PublishAs(storetest.Bob, "aaaa")
		assert.Equal(t, map[string]string{"alice": "999", "bob": "501"}, f.owned(), "who publishes takes it over")
		require.NoError(t, f.DeleteTopic(ctx, "b", storetest.Alice))
		assert.Equal(t, map[string]string{"alice": "998", "bob": "501"}, f.owned())
		require.NoError(t, f.try(storetest.Alice, "c"))
		f.RequireSound()
	})
}

// topicNames are names of topics: the prefix and three letters.
func topicNames(prefix string, n int) (names []bus.TopicName) {
	for i := range n {
		names = append(names, bus.TopicName(prefix+string(rune('a'+i/26%26))+string(rune('a'+i%26))+string(rune('a'+i/676))))
	}
	return names
}

func TestATopicBelongsToItsFirstPublisher(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		f.AddSubscriber(storetest.Alice, 0, 1, "widgets")
		f.PublishEvents("widgets", 1, 1, 0)
		before := rdbtest.Dump(t, f.Redis)
		err := f.Publish(t.Context(), store.Publication{
			Topic: "widgets", Publisher: storetest.Bob, Events: []wire.PackedEvent{storetest.Packed(t, "widgets", 2)}, ReceivedAt: 1,
		})
		require.ErrorIs(t, err, bus.ErrTopicClaimed)
		assert.Equal(t, before, rdbtest.Dump(t, f.Redis), "a refused publish changes nothing")

		topics, _, err := storetest.Topics(t.Context(), f.Inspector)
		require.NoError(t, err)
		assert.Equal(t, []bus.Topic{{Name: "widgets", Publisher: storetest.Publisher, Owner: "publisher", Events: 1}}, topics)
	})
}

func TestDeleteTopic(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		ctx := t.Context()
		f.AddSubscriber(storetest.Alice, time.Second, 100, "widgets", "gadgets")
		f.PublishEvents("widgets", 1, 1, 0)
		require.ErrorIs(t, f.DeleteTopic(ctx, "nowhere", storetest.Publisher), bus.ErrTopicUnknown)
		require.ErrorIs(t, f.DeleteTopic(ctx, "widgets", storetest.Bob), bus.ErrTopicClaimed)
		require.ErrorIs(t, f.DeleteTopic(ctx, "gadgets", storetest.Bob), bus.ErrTopicClaimed, "nobody's is not bob's either")
		require.NoError(t, f.DeleteTopic(ctx, "gadgets", ""))
		require.NoError(t, f.DeleteTopic(ctx, "widgets", storetest.Publisher))
		f.RequireSound()
		assert.Empty(t, f.Redis.Keys(ctx, "topic*").Val())
		f.MakeInstant(1000)
		assert.Equal(t, []int{1}, storetest.Numbers(t, f.Take("w1", 1000)), "queued events stay")
	})
}

func TestATopicBelongsToAllTokensOfItsPublisher(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		ctx := t.Context()
		f.PublishEvents("widgets", 1, 1, 0)
		require.NoError(t, f.PutToken(ctx, "publisher--2", "publisher"))
		p := store.Publication{Topic: "widgets", Publisher: "publisher--2", Events: []wire.PackedEvent{storetest.Packed(t, "widgets", 2)}}
		require.NoError(t, f.Publish(ctx, p))
		require.NoError(t, f.DeleteToken(ctx, storetest.Publisher), "the old token goes")
		require.NoError(t, f.Publish(ctx, p))
		f.PublishAs("publisher--2", "quiet")
		require.NoError(t, f.PutToken(ctx, "publisher--3", "publisher"))
		require.NoError(t, f.DeleteToken(ctx, "publisher--2"))
		f.PublishAs("publisher--3", "quiet")
		require.NoError(t, f.DeleteTopic(ctx, "widgets", "publisher--3"), "which nobody has published to since")
	})
}
