package maintenance_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/maintenance"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store"
	"routemaster/internal/store/storetest"
)

// tidy goes over everything once.
func tidy(t *testing.T, tidier *maintenance.Tidier, now time.Time) (all maintenance.Tidied) {
	t.Helper()
	for done := false; !done; {
		var some maintenance.Tidied
		var err error
		some, done, err = tidier.Step(t.Context(), now)
		require.NoError(t, err)
		all.Topics += some.Topics
		all.Counters += some.Counters
	}
	return all
}

func TestAnUnusedTopicGoesAfterADay(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := storetest.NewBus(t, server)
		ctx := t.Context()
		subscribe := func(token bus.Token, topics ...bus.TopicName) {
			t.Helper()
			require.NoError(t, f.Subscribe(ctx, token, bus.Subscription{Topics: topics, Callback: "https://x.example/"}, storetest.Start))
		}
		subscribe(storetest.Bob, "subscribed")
		subscribe(storetest.Alice, append(topicNames("x", 900), "unused", "returning", "published")...)
		f.PublishAs(storetest.Publisher, "published")
		subscribe(storetest.Alice)
		tidier := maintenance.NewTidier(store.NewBus(f.Store), f.Store)
		assert.Zero(t, tidy(t, tidier, storetest.Start))
		subscribe(storetest.Alice, "returning")
		tidy(t, tidier, storetest.Start.Add(12*time.Hour))
		subscribe(storetest.Alice)
		tidy(t, tidier, storetest.Start.Add(13*time.Hour))
		assert.Zero(t, tidy(t, tidier, storetest.Start.Add(24*time.Hour-time.Millisecond)))
		assert.Equal(t, maintenance.Tidied{Topics: 901}, tidy(t, tidier, storetest.Start.Add(24*time.Hour)))
		assert.ElementsMatch(t, []string{"subscribed", "returning", "published"}, f.Redis.SMembers(ctx, "topics").Val())
		assert.Equal(t, map[string]string{"alice": "1", "bob": "1", "publisher": "1"}, f.Redis.HGetAll(ctx, "topic_owners:counts").Val())
		assert.Equal(t, maintenance.Tidied{Topics: 1}, tidy(t, tidier, storetest.Start.Add(37*time.Hour)))
		assert.ElementsMatch(t, []string{"subscribed", "published"}, f.Redis.SMembers(ctx, "topics").Val())

		// The Ruby original removes these, but not our records of them.
		f.Redis.SRem(ctx, "topics", "published")
		f.Redis.Del(ctx, "topic:published")
		tidy(t, tidier, storetest.Start.Add(37*time.Hour))
		assert.Equal(t, map[string]string{"bob": "1"}, f.Redis.HGetAll(ctx, "topic_owners:counts").Val())
		assert.Zero(t, f.Redis.Exists(ctx, "topic_owners:unused").Val())
		f.RequireSound()
	})
}

// TestCountersGoWithTheirTopicsAndClients has many counters, few of them for existing topics and
// clients.
func TestCountersGoWithTheirTopicsAndClients(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := storetest.NewBus(t, server)
		ctx := t.Context()
		tag := func(name, value string) bus.Tag { return bus.Tag{Name: name, Value: value} }
		f.PublishAs(storetest.Alice, "widgets")
		kept := map[bus.Counter]int64{
			bus.NewCounter("events.published", tag("topic", "widgets"), tag("publisher", "alice")): 1,
			bus.NewCounter("events.published", tag("topic", "widgets"), tag("publisher", "null")):  2,
			bus.NewCounter("delivery.events", tag("queue", "bob"), tag("status", "success")):       3,
			bus.NewCounter("process", tag("type", "web"), tag("status", "start")):                  4,
			bus.NewCounter("jobs.scrubbed"): 5,
		}
		gone := map[bus.Counter]int64{}
		for i := range 3000 {
			gone[bus.NewCounter("events.published", tag("topic", fmt.Sprintf("t%d", i)), tag("publisher", "alice"))] = 1
			gone[bus.NewCounter("delivery.events", tag("queue", fmt.Sprintf("c%d", i)), tag("status", "success"))] = 1
		}
		gone[bus.NewCounter("events.bytes", tag("topic", "widgets"), tag("publisher", "carol"))] = 1
		add := func(counters map[bus.Counter]int64) {
			t.Helper()
			increments := map[bus.Counter]int64{}
			for c, n := range counters {
				increments[c] = n
			}
			require.NoError(t, f.AddCounters(ctx, increments))
		}
		require.NoError(t, f.PutToken(ctx, "carol--1", "carol"))
		add(kept)
		add(gone)
		counters, err := f.Counters(ctx)
		require.NoError(t, err)
		_, err = f.SwapMonitored(ctx, counters)
		require.NoError(t, err)
		f.Redis.HSet(ctx, "counters", "what is no counter", "1")
		require.NoError(t, f.DeleteToken(ctx, "carol--1"))

		tidier := maintenance.NewTidier(store.NewBus(f.Store), f.Store)
		assert.Equal(t, maintenance.Tidied{Counters: 2 * len(gone)}, tidy(t, tidier, storetest.Start))
		for range 2 {
			left, err := f.Counters(ctx)
			require.NoError(t, err)
			assert.Equal(t, kept, left)
			assert.Equal(t, int64(len(kept)+1), f.Redis.HLen(ctx, "counters").Val(), "what cannot be read stays")
			assert.Equal(t, int64(len(kept)), f.Redis.HLen(ctx, "counters:monitored").Val())
			add(gone) // by a process that had counted them before
			assert.Equal(t, maintenance.Tidied{Counters: len(gone)}, tidy(t, tidier, storetest.Start))
		}

		require.NoError(t, f.PutToken(ctx, "carol--1", "carol"))
		back := map[bus.Counter]int64{bus.NewCounter("events.bytes", tag("topic", "widgets"), tag("publisher", "carol")): 1}
		add(back)
		assert.Zero(t, tidy(t, tidier, storetest.Start), "a client that has come back counts anew")
		require.NoError(t, f.DeleteToken(ctx, "carol--1"))
		assert.Equal(t, maintenance.Tidied{Counters: 1}, tidy(t, tidier, storetest.Start), "nothing else has gone")
		require.NoError(t, f.DeleteTopic(ctx, "widgets", ""))
		assert.Equal(t, maintenance.Tidied{Counters: 4}, tidy(t, tidier, storetest.Start))
		for field := range f.Redis.HGetAll(ctx, "counters").Val() {
			assert.False(t, strings.Contains(field, "widgets"), field)
		}
	})
}

// TestCountersOfOthersGoWithTheirNames has two counters by another package's tag, one of them for
// an existing name.
func TestCountersOfOthersGoWithTheirNames(t *testing.T) {
	f := storetest.NewBus(t, rdbtest.Embedded(t))
	ctx, reads := t.Context(), 0
	there := map[string]bool{"ship": true}
	tidier := maintenance.NewTidier(store.NewBus(f.Store), f.Store)
	tidier.Add(maintenance.Named{Tag: "job_type", Names: func(context.Context) (map[string]bool, error) {
		reads++
		return there, nil
	}})
	ended := func(name string) bus.Counter {
		return bus.NewCounter("jobs.ended", bus.Tag{Name: "job_type", Value: name})
	}
	gone := bus.NewCounter("events.added", bus.Tag{Name: "queue", Value: "nobody"})
	require.NoError(t, f.AddCounters(ctx, map[bus.Counter]int64{gone: 1}))
	assert.Equal(t, maintenance.Tidied{Counters: 1}, tidy(t, tidier, storetest.Start))
	assert.Zero(t, reads, "nothing is counted by that tag")

	require.NoError(t, f.AddCounters(ctx, map[bus.Counter]int64{ended("ship"): 1, ended("pay"): 2}))
	assert.Equal(t, maintenance.Tidied{Counters: 1}, tidy(t, tidier, storetest.Start))
	left, err := f.Counters(ctx)
	require.NoError(t, err)
	assert.Equal(t, map[bus.Counter]int64{ended("ship"): 1}, left)
	there = nil
	assert.Equal(t, maintenance.Tidied{Counters: 1}, tidy(t, tidier, storetest.Start))
}

// topicNames are names of topics: the prefix and three letters.
func topicNames(prefix string, n int) (names []bus.TopicName) {
	for i := range n {
		names = append(names, bus.TopicName(prefix+string(rune('a'+i/26%26))+string(rune('a'+i%26))+string(rune('a'+i/676))))
	}
	return names
}
