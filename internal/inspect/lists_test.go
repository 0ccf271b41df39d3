package inspect_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/inspect"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store/storetest"
)

func TestListsComeInPages(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := storetest.NewBus(t, server)
		ctx := t.Context()
		var members []any
		var want []string
		for i := range 25_000 { // more than two windows
			members = append(members, fmt.Sprintf("t%05d", i))
			want = append(want, fmt.Sprintf("t%05d", i))
		}
		require.NoError(t, f.Redis.SAdd(ctx, "topics", members...).Err())
		list := func(p inspect.Page) (names []string) {
			_, err := f.EachTopics(ctx, p, func(topics []bus.Topic) error {
				for _, topic := range topics {
					names = append(names, string(topic.Name))
				}
				return nil
			})
			require.NoError(t, err)
			return names
		}
		assert.Equal(t, want, list(inspect.Page{}))
		assert.Equal(t, want[:3], list(inspect.Page{Limit: 3}))
		assert.Equal(t, want[3:7], list(inspect.Page{Limit: 4, After: want[2]}))
		assert.Equal(t, want[24_990:], list(inspect.Page{Limit: 100, After: want[24_989]}))
		assert.Equal(t, want[5_000:], list(inspect.Page{After: "t04999x"}), "a name that is none")
		assert.Equal(t, want[:15_000], list(inspect.Page{Limit: 15_000}))
		assert.Empty(t, list(inspect.Page{After: "u"}))
	})
}

func TestSubscribersOfOneNameAreOnOnePage(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := storetest.NewBus(t, server)
		ctx := t.Context()
		require.NoError(t, f.PutToken(ctx, "zz", "alice"))
		require.NoError(t, f.PutToken(ctx, "aa", "carol"))
		for _, token := range []bus.Token{"zz", "aa", storetest.Bob, storetest.Alice} {
			f.AddSubscriber(token, time.Hour, 100, "widgets", "gadgets")
		}
		f.PublishEvents("widgets", 1, 1, 7)
		list := func(p inspect.Page) (tokens []bus.Token) {
			_, err := f.EachSubscribers(ctx, p, func(subscribers []bus.Subscriber) error {
				for _, sub := range subscribers {
					tokens = append(tokens, sub.Token)
					assert.Equal(t, []bus.TopicName{"gadgets", "widgets"}, sub.Topics)
					assert.Equal(t, storetest.After(7), sub.OldestAt)
				}
				return nil
			})
			require.NoError(t, err)
			return tokens
		}
		assert.Equal(t, []bus.Token{storetest.Alice, "zz"}, list(inspect.Page{Limit: 1}))
		assert.Equal(t, []bus.Token{storetest.Bob, "aa"}, list(inspect.Page{Limit: 2, After: "alice"}))
		assert.Equal(t, []bus.Token{"aa"}, list(inspect.Page{Limit: 2, After: "bob"}))
		assert.Equal(t, []bus.Token{storetest.Alice, "zz", storetest.Bob, "aa"}, list(inspect.Page{}))
	})
}

// TestListsAskRedisForLittleAtOnce checks how much each command returns for a list of 100,000
// topics and of subscribers to 1,000.
func TestListsAskRedisForLittleAtOnce(t *testing.T) {
	rdbtest.OneGoroutine(t)
	server := rdbtest.Real(t)
	f := storetest.NewBus(t, server)
	ctx := t.Context()
	names := make([]any, 100_000)
	for i := range names {
		names[i] = "t" + strconv.Itoa(i)
	}
	pipe := f.Redis.Pipeline()
	pipe.SAdd(ctx, "topics", names...)
	for i := range 60 {
		f.Redis.HSet(ctx, "subscriber:s"+strconv.Itoa(i), "callback", "https://x.example/")
		pipe.SAdd(ctx, "subscribers", "s"+strconv.Itoa(i))
		pipe.SAdd(ctx, "topics:s"+strconv.Itoa(i), names[:1000]...)
	}
	_, err := pipe.Exec(ctx)
	require.NoError(t, err)
	require.NoError(t, f.Redis.ConfigResetStat(ctx).Err())
	topics, _, err := storetest.Topics(ctx, f.Inspector)
	require.NoError(t, err)
	assert.Len(t, topics, 100_000)
	subscribers, _, err := storetest.Subscribers(ctx, f.Inspector)
	require.NoError(t, err)
	require.Len(t, subscribers, 60)
	for _, sub := range subscribers {
		assert.Len(t, sub.Topics, 1000)
	}
	stats := f.Redis.InfoMap(ctx, "commandstats").Val()["Commandstats"]
	for _, command := range []string{"smembers", "hkeys", "sort", "eval", "evalsha"} {
		assert.Empty(t, stats["cmdstat_"+command], "it takes as long as there is much")
	}
	var calls, usec int
	_, err = fmt.Sscanf(stats["cmdstat_sscan"], "calls=%d,usec=%d", &calls, &usec)
	require.NoError(t, err)
	t.Logf("%d calls of SSCAN, of %d µs each", calls, usec/calls)
	assert.GreaterOrEqual(t, calls, 300)
	assert.Less(t, usec/calls, 5000)
}

func TestSubscribersReportTheirOldestEvent(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := storetest.NewBus(t, server)
		f.AddSubscriber(storetest.Alice, time.Hour, 1, "widgets")
		f.PublishEvents("widgets", 1, 600, 0) // more batches than one trip looks at
		f.AddSubscriber(storetest.Bob, time.Hour, 100, "gadgets")
		f.PublishEvents("gadgets", 1, 3, 700)
		f.PublishEvents("gadgets", 4, 5, 800)
		f.AddSubscriber(storetest.Publisher, time.Hour, 100, "gadgets")
		subscribers, _, err := storetest.Subscribers(t.Context(), f.Inspector)
		require.NoError(t, err)
		var oldest []time.Time
		for _, sub := range subscribers {
			oldest = append(oldest, sub.OldestAt)
		}
		assert.Equal(t, []time.Time{storetest.After(0), storetest.After(700), {}}, oldest)
	})
}

func TestListingManySubscribersIsQuick(t *testing.T) {
	f := storetest.NewBus(t, rdbtest.Real(t))
	for i := range 1000 {
		token := bus.Token(fmt.Sprintf("s%d", i))
		require.NoError(t, f.PutToken(t.Context(), token, "s"))
		f.AddSubscriber(token, time.Hour, 100, "widgets", "gadgets")
	}
	f.PublishEvents("widgets", 1, 2, 0)
	quickest := time.Hour
	for range 10 {
		began := time.Now()
		subscribers, _, err := storetest.Subscribers(t.Context(), f.Inspector)
		require.NoError(t, err)
		require.Len(t, subscribers, 1000)
		assert.Equal(t, storetest.After(0), subscribers[999].OldestAt)
		quickest = min(quickest, time.Since(began))
	}
	t.Logf("listed 1,000 subscribers in %v", quickest)
	within := 100 * time.Millisecond
	if rdbtest.RaceDetector {
		within *= 10 // that is how much it slows programs down
	}
	assert.Less(t, quickest, within)
}
