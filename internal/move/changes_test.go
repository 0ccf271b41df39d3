package move_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/move"
	"routemaster/internal/store"
	"routemaster/internal/store/storetest"
)

// TestATokenThatBecomesAnotherClients between the two copies of a switch keeps its subscriber.
func TestATokenThatBecomesAnotherClients(t *testing.T) {
	for _, of := range layouts {
		from, to := embedded(t, of.from), embedded(t, of.to)
		from.fill()
		requireRun(from, to, move.Copied)
		from.subscribe("carol--1", "gadgets") // so that the first copy has a step
		isRenamed := false
		requireRun(from, to, move.Draining, doSwitch, func(o *move.Options) {
			o.AtSteps(func(step string) {
				if step != "copied" || isRenamed {
					return
				}
				isRenamed = true
				for _, token := range []bus.Token{alice, storetest.Publisher} {
					require.NoError(t, from.DeleteToken(t.Context(), token))
					require.NoError(t, from.PutToken(t.Context(), token, "another"))
				}
				require.NoError(t, from.Subscribe(t.Context(), alice, subscription(alice, "widgets", "gadgets"), from.now))
			})
		})
		_, topics, _ := from.shown()
		_, topicsThere, subscribers := to.shown()
		assert.Equal(t, topics, topicsThere)
		assert.Len(t, subscribers, 3)
		requireSound(from, to)
	}
}

// resubscribe has a client that had a uuid leave, and subscribe without one.
func (s *side) resubscribe(token bus.Token) {
	s.t.Helper()
	require.NoError(s.t, s.Of(token).DeleteSubscriber(s.t.Context(), token))
	sub := subscription(token, "widgets")
	sub.UUID = nil
	require.NoError(s.t, s.Subscribe(s.t.Context(), token, sub, s.now))
}

// TestAUUIDThatIsGone is gone from the other bus too, before the switch and after it.
func TestAUUIDThatIsGone(t *testing.T) {
	from, to := embedded(t, 0), embedded(t, 2)
	from.fill()
	requireRun(from, to, move.Copied)
	from.resubscribe(alice)
	requireRun(from, to, move.Copied)
	_, _, subscribers := to.shown()
	assert.Empty(t, subscribers[0].UUID)
	assert.Zero(t, requireRun(from, to, move.Copied).Changed)

	requireRun(from, to, move.Draining, doSwitch)
	to.resubscribe(bob)
	requireRun(from, to, move.Draining)
	_, _, subscribers = from.shown()
	assert.Empty(t, subscribers[1].UUID)
	delivery := "delivery:" + string(bob) // a change that follows has it be tried at once: only once
	require.NoError(t, from.partitions[0].HSet(t.Context(), delivery, "throttled_until", from.now.UnixMilli()+1000).Err())
	requireRun(from, to, move.Draining)
	assert.NotEqual(t, "0", from.partitions[0].HGet(t.Context(), delivery, "throttled_until").Val())
}

// TestASubscriberThatCannotBeFollowed does not hold up the others.
func TestASubscriberThatCannotBeFollowed(t *testing.T) {
	from, to := embedded(t, 0), embedded(t, 2)
	from.fill()
	requireRun(from, to, move.Draining, doSwitch)
	require.NoError(t, to.PatchSubscriber(t.Context(), alice, bus.Subscription{Callback: "https://new.example/"}, to.now))
	retention := from.partitions[0].Namespace() + "retention"
	require.NoError(t, from.partitions[0].Set(t.Context(), retention, "no set", 0).Err())
	from.deliverAll(t.Context())
	report := requireRun(from, to, move.Draining)
	assert.Equal(t, 1, report.Released)
	require.Len(t, report.Waiting, 1)
	assert.Equal(t, bus.ClientName("alice"), report.Waiting[0].Name)
	assert.Contains(t, report.Waiting[0].Error, "WRONGTYPE")
	require.NoError(t, from.partitions[0].Del(t.Context(), retention).Err())
	requireRun(from, to, move.Over)
	requireSound(from, to)
}

// TestHistoriesAreCopiedWithTheirTopics: their limits, as far as they have changed.
func TestHistoriesAreCopiedWithTheirTopics(t *testing.T) {
	from, to := embedded(t, 2), embedded(t, 3)
	from.fill()
	keep := func(topic bus.TopicName, limits store.HistoryLimits) {
		t.Helper()
		require.NoError(t, store.NewHistory(from.Home(topic)).Put(t.Context(), topic, "", limits, from.now))
	}
	limits := store.HistoryLimits{Events: 10, Bytes: 5000}
	keep("widgets", limits)
	keep("gadgets", limits)
	require.NoError(t, from.publish("widgets", 6, 6))
	requireRun(from, to, move.Copied)
	assert.Zero(t, requireRun(from, to, move.Copied).Changed)
	requireSound(to)
	keep("widgets", store.HistoryLimits{Events: 20})
	require.NoError(t, store.NewHistory(from.Home("gadgets")).Delete(t.Context(), "gadgets", ""))
	assert.Equal(t, 2, requireRun(from, to, move.Copied).Changed)
	status, err := store.NewHistory(to.Home("widgets")).Get(t.Context(), "widgets")
	require.NoError(t, err)
	assert.Equal(t, store.HistoryStatus{Limits: store.HistoryLimits{Events: 20}, First: 7, Last: 6}, status)
	_, err = store.NewHistory(to.Home("gadgets")).Get(t.Context(), "gadgets")
	require.ErrorIs(t, err, store.ErrNoHistory)
	requireSound(to)
}
