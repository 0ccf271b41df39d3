package samples

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/overview"
	"routemaster/internal/rdb"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store"
	"routemaster/internal/store/storetest"
)

// TestASampleIsOfAllPartitions has a topic and a subscriber in each, and one client in two.
func TestASampleIsOfAllPartitions(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		ctx := t.Context()
		p := storetest.NewPartitions(t, f.server.Open(t))
		topics := []bus.TopicName{p.TopicIn(0, 0), p.TopicIn(1, 0), p.TopicIn(2, 0)}
		for i, name := range []bus.ClientName{"one", "both", "both"} {
			token := p.TokenIn(rdb.Number(i))
			require.NoError(t, p.PutToken(ctx, token, name))
			require.NoError(t, p.Subscribe(ctx, token, bus.Subscription{Topics: topics[i:], Callback: "https://x.example/"}, p.Now()))
		}
		for i, topic := range topics {
			p.PublishEvents(topic, 1, i+1)
		}
		for number := range p.All {
			p.Relay(rdb.Number(number))
		}
		sample := f.collectorOf(p.Data...).Collect(ctx, Look)
		assert.Empty(t, sample.Redis)
		assert.Empty(t, sample.Unread)
		assert.Empty(t, sample.Damaged)
		var shown []string
		for _, topic := range sample.Topics {
			shown = append(shown, fmt.Sprint(topic.Name, " ", topic.Events))
		}
		assert.ElementsMatch(t, []string{fmt.Sprint(topics[0], " 1"), fmt.Sprint(topics[1], " 2"), fmt.Sprint(topics[2], " 3")}, shown)
		require.Len(t, sample.Subscribers, 2)
		both, one := sample.Subscribers[0], sample.Subscribers[1]
		assert.Equal(t, "both 8 2, one 6 3", fmt.Sprint(both.Name, " ", both.Queued, " ", len(both.Topics), ", ", one.Name, " ", one.Queued, " ", len(one.Topics)))
		assert.Equal(t, p.Now().UnixMilli(), both.OldestAt.UnixMilli())
		for _, q := range sample.Queues {
			if q.Name == string(bus.QueueMain) {
				assert.Equal(t, int64(3), q.Instant+q.Scheduled)
			}
		}
		assert.Len(t, sample.JobTypes, 1)
	})
}

// TestAPartitionThatIsAwayIsUnread has three, each on a Redis of its own.
func TestAPartitionThatIsAwayIsUnread(t *testing.T) {
	f := newFixture(t, rdbtest.Embedded(t))
	all, servers := storetest.Apart(t, 3)
	c, b := f.collectorOf(all...), store.NewBus(all...)
	for i := range 12 {
		token := bus.Token(fmt.Sprintf("client-%d--1", i))
		require.NoError(t, b.PutToken(t.Context(), token, bus.ClientName(fmt.Sprintf("client-%d", i))))
		require.NoError(t, b.Subscribe(t.Context(), token, bus.Subscription{Topics: []bus.TopicName{"widgets"}, Callback: "https://x.example/"}, f.at))
	}
	sample := c.Collect(t.Context(), Look)
	assert.Empty(t, sample.Unread)
	assert.Len(t, sample.Subscribers, 12)
	require.NotNil(t, sample.Memory)

	servers[1].Kill(t)
	sample = c.Collect(t.Context(), Look)
	assert.Empty(t, sample.Redis)
	const why = "Redis is unavailable, or refuses calls"
	assert.Equal(t, []overview.Unread{{Part: "partition 01", Why: why}}, sample.Unread)
	assert.Equal(t, []int{1}, sample.Away)
	left := len(sample.Subscribers)
	assert.Greater(t, left, 0)
	assert.Less(t, left, 12)

	servers[0].Kill(t) // the first has the data that exists once
	sample = c.Collect(t.Context(), Look)
	assert.Empty(t, sample.Redis)
	for _, part := range []string{"partition 00", "partition 01", overview.PartCounters, overview.PartProcesses} {
		assert.True(t, sample.Lacks(part), part)
	}
	assert.Less(t, len(sample.Subscribers), left)
	assert.Equal(t, []int{0, 1}, sample.Away)
	assert.Empty(t, sample.Held)

	servers[2].Kill(t)
	assert.Equal(t, why, c.Collect(t.Context(), Look).Redis)
}

// TestAPartitionThatIsHeld is read all the same, but the figures have a problem. So it is with one
// that has come back without its keys.
func TestAPartitionThatIsHeld(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		p := storetest.NewPartitions(t, f.server.Open(t))
		token := p.TokenIn(1)
		require.NoError(t, p.PutToken(t.Context(), token, "shop"))
		require.NoError(t, p.Subscribe(t.Context(), token, bus.Subscription{Topics: []bus.TopicName{"widgets"}, Callback: "https://x.example/"}, p.Now()))
		live := NewLive(f.collectorOf(p.Data...))
		problems := func() (titles []string) {
			f.at = f.at.Add(knownTTL)
			figures := live.Figures(t.Context())
			assert.Empty(t, figures.Unread)
			for _, p := range figures.Problems {
				if strings.HasPrefix(p.Rule, "partition-") {
					titles = append(titles, p.Rule+": "+p.Title)
				}
			}
			return titles
		}
		assert.Empty(t, problems())
		_, err := p.All[1].Hold(t.Context(), 0)
		require.NoError(t, err)
		assert.Equal(t, []string{"partition-held: Partition 1 is held."}, problems())
		assert.Len(t, live.Figures(t.Context()).Subscribers, 1)
		require.NoError(t, f.server.Raw.FlushAll(t.Context()).Err())
		assert.Equal(t, []string{"partition-held: Partitions 0, 1, 2 are held."}, problems())
		for _, one := range p.All {
			require.NoError(t, one.Release(t.Context()))
		}
		assert.Empty(t, problems())

		sole := f.server.Open(t).Partitions("sole:", 1)[0]
		assert.Equal(t, []int{0}, f.collectorOf(storetest.OpenOn(sole)).Collect(t.Context(), Look).Held)
	})
}

// TestTheFullestNode is the one nearest to its high mark. A node that is away has no memory.
func TestTheFullestNode(t *testing.T) {
	of := func(node string, used, high int64) *draft {
		return &draft{node: node, Sample: overview.Sample{Memory: &overview.Memory{Used: used, High: high}}}
	}
	none := func() *draft { return &draft{} }
	for _, c := range []struct {
		drafts []*draft
		want   overview.Memory
	}{
		{[]*draft{of("a", 5, 10)}, overview.Memory{Used: 5, High: 10}},
		{[]*draft{of("a", 5, 10), of("a", 6, 10)}, overview.Memory{Used: 6, High: 10}},
		{[]*draft{of("a", 5, 10), of("b", 6, 10), of("a", 5, 10)}, overview.Memory{Used: 6, High: 10, Node: "b", Nodes: 2}},
		{[]*draft{none(), of("a", 5, 10), of("b", 6, 100), of("c", 4, 10)}, overview.Memory{Used: 5, High: 10, Node: "a", Nodes: 3}},
	} {
		assert.Equal(t, c.want, *merge(c.drafts).Memory)
	}
	assert.Nil(t, merge([]*draft{none(), none()}).Memory)
}

// TestAPanicIsThatOfTheSample though each partition is read beside the others.
func TestAPanicIsThatOfTheSample(t *testing.T) {
	f := newFixture(t, rdbtest.Embedded(t))
	all, _ := storetest.Apart(t, 3)
	for _, c := range []*Collector{f.Collector, f.collectorOf(all...)} {
		c.clock = func(time.Time) time.Time { panic("no time") }
		assert.PanicsWithValue(t, "no time", func() { c.Collect(t.Context(), Look) })
	}
}
