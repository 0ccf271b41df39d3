package inspect_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/inspect"
	"routemaster/internal/layout"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store/storetest"
)

// eachBus runs a test on a bus with partitions, on each engine.
func eachBus(t *testing.T, test func(t *testing.T, p *storetest.Partitions)) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) { test(t, storetest.NewPartitions(t, server.Open(t))) })
}

// pages reads a list in pages of a size, and returns the names on each.
func pages[T any](
	t *testing.T, size int, name func(T) string, list func(p inspect.Page, each func([]T) error) (damaged []string, err error),
) (all [][]string) {
	t.Helper()
	for after := ""; ; {
		var page []string
		damaged, err := list(inspect.Page{After: after, Limit: size}, func(some []T) error {
			for _, item := range some {
				page = append(page, name(item))
			}
			return nil
		})
		require.NoError(t, err)
		require.Empty(t, damaged)
		if len(page) == 0 {
			return all
		}
		all, after = append(all, page), page[len(page)-1]
		if size == 0 {
			return all
		}
	}
}

func TestTopicsAreListedOnce(t *testing.T) {
	eachBus(t, func(t *testing.T, p *storetest.Partitions) {
		var topics []bus.TopicName
		var want []string
		for i := range 250 {
			name := fmt.Sprintf("topic_%c%c", 'a'+i/26, 'a'+i%26)
			topics, want = append(topics, bus.TopicName(name)), append(want, name)
		}
		for i := range p.Data {
			p.AddSubscriber(p.All[i].Number(), 1, topics...) // each partition knows all
		}
		p.PublishEvents(topics[7], 1, 3)
		list := func(page inspect.Page, each func([]bus.Topic) error) ([]string, error) {
			return inspect.OfBus(p.Bus).EachTopics(t.Context(), page, each)
		}
		name := func(topic bus.Topic) string { return string(topic.Name) }
		for _, size := range []int{0, 1, 7, 250, 1000} {
			got := pages(t, size, name, list)
			assert.Equal(t, want, slices.Concat(got...), "pages of %d", size)
			for _, page := range got[:len(got)-1] {
				assert.Len(t, page, size)
			}
		}
		_, err := inspect.OfBus(p.Bus).EachTopics(t.Context(), inspect.Page{After: want[6], Limit: 1}, func(some []bus.Topic) error {
			assert.Equal(t, []bus.Topic{{Name: topics[7], Publisher: storetest.Publisher, Owner: "publisher", Events: 3}}, some)
			return nil
		})
		require.NoError(t, err)
	})
}

func TestSubscribersAreListedByName(t *testing.T) {
	eachBus(t, func(t *testing.T, p *storetest.Partitions) {
		var want []string
		for i := range 60 { // three of each name, in any partition
			token, name := bus.Token(fmt.Sprintf("token--%d", i)), fmt.Sprintf("client-%02d", i/3)
			require.NoError(t, p.PutToken(t.Context(), token, bus.ClientName(name)))
			require.NoError(t, p.Subscribe(t.Context(), token, bus.Subscription{Topics: []bus.TopicName{"widgets"}, Callback: "https://x.example/"}, p.Now()))
			want = append(want, name)
		}
		names, err := p.Tokens(t.Context())
		require.NoError(t, err)
		list := func(page inspect.Page, each func([]bus.Subscriber) error) ([]string, error) {
			return inspect.OfBus(p.Bus).EachSubscribers(t.Context(), page, each)
		}
		name := func(sub bus.Subscriber) string { return string(names[sub.Token]) }
		for _, size := range []int{0, 1, 3, 4, 10, 60} {
			got := pages(t, size, name, list)
			assert.Equal(t, want, slices.Concat(got...), "pages of %d", size)
		}
		assert.Len(t, pages(t, 1, name, list), 20, "those of one name are on one page")

		detail, damaged, err := inspect.OfBus(p.Bus).TopicDetail(t.Context(), "widgets")
		require.NoError(t, err)
		assert.Empty(t, damaged)
		var followers []string
		for _, sub := range detail.Subscribers {
			followers = append(followers, name(sub))
		}
		assert.Equal(t, want, followers)
		_, _, err = inspect.OfBus(p.Bus).TopicDetail(t.Context(), "nowhere")
		require.ErrorIs(t, err, bus.ErrTopicUnknown)
	})
}

// TestAListOfWhichAPartIsMissing fails, and names the damaged keys.
func TestAListOfWhichAPartIsMissing(t *testing.T) {
	eachBus(t, func(t *testing.T, p *storetest.Partitions) {
		ctx := t.Context()
		p.AddSubscriber(0, 1, p.TopicIn(0, 0), p.TopicIn(1, 0), p.TopicIn(2, 0))
		enough := errors.New("enough")
		_, err := inspect.OfBus(p.Bus).EachTopics(ctx, inspect.Page{}, func([]bus.Topic) error { return enough })
		require.ErrorIs(t, err, enough)
		keys := layout.Keys{Namespace: p.All[1].Namespace()}
		require.NoError(t, p.All[1].Set(ctx, keys.Topic(p.TopicIn(1, 0)), "text", 0).Err())
		damaged, err := inspect.OfBus(p.Bus).EachTopics(ctx, inspect.Page{}, func(some []bus.Topic) error {
			assert.Len(t, some, 2)
			return nil
		})
		require.NoError(t, err)
		assert.Equal(t, []string{"topic:" + string(p.TopicIn(1, 0))}, damaged)
		require.NoError(t, p.All[2].Del(ctx, keys.Topics()).Err())
		require.NoError(t, p.All[2].Set(ctx, layout.Keys{Namespace: p.All[2].Namespace()}.Topics(), "text", 0).Err())
		_, err = inspect.OfBus(p.Bus).EachTopics(ctx, inspect.Page{}, func([]bus.Topic) error { return nil })
		require.ErrorContains(t, err, "WRONGTYPE")
	})
}
