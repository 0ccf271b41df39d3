package move_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/move"
	"routemaster/internal/signature"
	"routemaster/internal/store"
	"routemaster/internal/store/storetest"
)

const alice, bob = storetest.Alice, storetest.Bob

// fill gives a bus a publisher, two subscribers and events that wait.
func (s *side) fill() {
	s.register(storetest.Publisher)
	s.subscribe(alice, "widgets", "gadgets")
	s.subscribe(bob, "widgets")
	require.NoError(s.t, s.publish("widgets", 1, 5))
	require.NoError(s.t, s.publish("gadgets", 1, 1))
}

func TestABusIsMoved(t *testing.T) {
	eachLayout(t, func(t *testing.T, from, to *side) {
		from.fill()
		for range 2 {
			report := requireRun(from, to, move.Copied)
			assert.Equal(t, [...]int{3, 2, 2}, [...]int{report.Tokens, report.Topics, report.Subscribers})
		}
		assert.Zero(t, requireRun(from, to, move.Copied).Changed, "all is there")
		requireSound(from, to)
		require.NoError(t, from.publish("widgets", 6, 6), "the old bus goes on")
		require.ErrorIs(t, to.publish("widgets", 7, 7), bus.ErrMoving)
		require.NoError(t, from.RequireServing(t.Context()))
		require.ErrorIs(t, to.RequireServing(t.Context()), bus.ErrMoving)

		report := requireRun(from, to, move.Draining, doSwitch)
		assert.Len(t, report.Waiting, 2)
		require.ErrorIs(t, from.publish("widgets", 7, 7), bus.ErrMoving)
		require.ErrorIs(t, from.RequireServing(t.Context()), bus.ErrMoving)
		require.NoError(t, to.publish("widgets", 7, 9))
		assert.Empty(t, to.deliverAll(t.Context()), "they are held")
		requireSound(from, to)
		requireRun(from, to, move.Draining)
		assert.Empty(t, to.deliverAll(t.Context()), "events wait on the old bus")

		assert.Equal(t, storetest.UpTo(1, 6), from.deliver(alice, "widgets"))
		report = requireRun(from, to, move.Over)
		assert.Equal(t, 2, report.Released)
		assert.Empty(t, report.Waiting)
		assert.Equal(t, storetest.UpTo(7, 9), to.deliver(alice, "widgets"))
		requireRun(from, to, move.Over)
		requireSound(from, to)
		_, topics, subscribers := to.shown()
		assert.Equal(t, []bus.Topic{
			{Name: "gadgets", Publisher: storetest.Publisher, Owner: "publisher", Events: 1},
			{Name: "widgets", Publisher: storetest.Publisher, Owner: "publisher", Events: 9},
		}, topics)
		assert.Equal(t, int64(10), subscribers[0].Sent, "7 of them by the old bus")
		for _, p := range to.partitions {
			assert.Zero(t, p.Exists(t.Context(), p.Namespace()+"plans").Val(), "nothing is left of the move")
		}
	})
}

// TestWhatASubscriberIsIsMoved: its subscription, options, secrets, health and pause.
func TestWhatASubscriberIsIsMoved(t *testing.T) {
	eachOf(t, 3, 5, func(t *testing.T, from, to *side) {
		ctx := t.Context()
		from.fill()
		require.NoError(t, from.PatchSubscriber(ctx, alice, bus.Subscription{Options: map[string]string{
			"lanes": "4", "max_bytes": "2000", "keep_age": "3600000", "dead_letters": `{"attempts":3}`,
		}}, from.now))
		require.NoError(t, store.NewSecrets(from.Of(alice)).Add(ctx, alice, signature.Stored{ID: "one", Type: "v1"}, time.Time{}, from.now))
		require.NoError(t, from.Of(bob).Pause(ctx, bob, bus.Forever))
		from.deliver(alice, "widgets")
		tokens, topics, subscribers := from.shown()
		requireRun(from, to, move.Copied)
		tokensThere, topicsThere, subscribersThere := to.shown()
		assert.Equal(t, tokens, tokensThere)
		assert.Equal(t, topics, topicsThere)
		for i := range subscribers {
			subscribers[i].Queued, subscribers[i].OldestAt = 0, time.Time{}
		}
		assert.Equal(t, subscribers, subscribersThere)
		before, err := from.Of(alice).Options(ctx, alice)
		require.NoError(t, err)
		after, err := to.Of(alice).Options(ctx, alice)
		require.NoError(t, err)
		assert.Equal(t, before.Options, after.Options)
		assert.Equal(t, before.Secrets, after.Secrets)
		requireSound(to)

		report := requireRun(from, to, move.Draining, doSwitch)
		require.Len(t, report.Waiting, 1)
		assert.Equal(t, bus.ClientName("bob"), report.Waiting[0].Name)
		assert.True(t, report.Waiting[0].Paused)
		require.NoError(t, to.publish("widgets", 6, 6))
		assert.Equal(t, []int{6}, to.deliver(alice, "widgets"), "nothing waited for it")
		require.NoError(t, to.Of(bob).Resume(ctx, bob))
		assert.Empty(t, to.deliver(bob, "widgets"), "it is held all the same")
		requireRun(from, to, move.Draining)
		assert.Equal(t, storetest.UpTo(1, 5), from.deliver(bob, "widgets"), "it goes on there")
		require.NoError(t, to.Of(bob).Pause(ctx, bob, bus.Forever))
		requireRun(from, to, move.Over)
		assert.Empty(t, to.deliver(bob, "widgets"), "it is paused")
		require.NoError(t, to.Of(bob).Resume(ctx, bob))
		assert.Equal(t, []int{6}, to.deliver(bob, "widgets"))
		requireSound(from, to)
	})
}

// TestChangesBeforeTheSwitchAreCopied with the next run: those of the old bus decide.
func TestChangesBeforeTheSwitchAreCopied(t *testing.T) {
	eachLayout(t, func(t *testing.T, from, to *side) {
		ctx := t.Context()
		from.fill()
		from.subscribe("carol--1", "gizmos")
		requireRun(from, to, move.Copied)
		require.NoError(t, from.DeleteToken(ctx, "carol--1"))
		require.NoError(t, from.Of(bob).DeleteSubscriber(ctx, bob))
		require.NoError(t, from.Unsubscribe(ctx, alice, "gadgets"))
		from.subscribe("dave--1", "widgets", "doodads")
		from.deliverAll(ctx)
		require.NoError(t, from.DeleteTopic(ctx, "gadgets", ""))
		require.NoError(t, from.DeleteTopic(ctx, "gizmos", ""))
		report := requireRun(from, to, move.Over, doSwitch)
		assert.Equal(t, 2, report.Released)
		tokens, topics, subscribers := from.shown()
		tokensThere, topicsThere, subscribersThere := to.shown()
		assert.Equal(t, tokens, tokensThere)
		assert.Equal(t, topics, topicsThere)
		assert.Equal(t, subscribers, subscribersThere)
		require.NoError(t, to.publish("widgets", 6, 6))
		assert.Equal(t, []int{6}, to.deliver("dave--1", "widgets"))
		requireSound(from, to)
	})
}

// TestAClosedBusRefusesChanges of clients, also the old one for good.
func TestAClosedBusRefusesChanges(t *testing.T) {
	eachLayout(t, func(t *testing.T, from, to *side) {
		ctx := t.Context()
		from.fill()
		refused := func(s *side) {
			t.Helper()
			_, _, rotating := s.RotateToken(ctx, alice)
			for what, err := range map[string]error{
				"token put": s.PutToken(ctx, "new--1", "new"), "token add": s.AddToken(ctx, "new--1", "new"),
				"token delete": s.DeleteToken(ctx, alice), "token rotate": rotating,
				"subscribe":   s.Subscribe(ctx, alice, subscription(alice, "widgets"), s.now),
				"patch":       s.PatchSubscriber(ctx, alice, bus.Subscription{}, s.now),
				"unsubscribe": s.Unsubscribe(ctx, alice, "widgets"), "leave": s.Of(alice).DeleteSubscriber(ctx, alice),
				"pause": s.Of(alice).Pause(ctx, alice, bus.Forever), "resume": s.Of(alice).Resume(ctx, alice),
				"topic": s.DeleteTopic(ctx, "widgets", ""), "publish": s.publish("widgets", 6, 6),
				"secret":  store.NewSecrets(s.Of(alice)).Add(ctx, alice, signature.Stored{ID: "one"}, time.Time{}, s.now),
				"history": store.NewHistory(s.Home("widgets")).Put(ctx, "widgets", "", store.HistoryLimits{Events: 5}, s.now),
				"forget":  store.NewHistory(s.Home("widgets")).Delete(ctx, "widgets", ""),
			} {
				require.ErrorIs(t, err, bus.ErrMoving, what)
				require.ErrorIs(t, err, bus.ErrUnavailable, what)
			}
		}
		requireRun(from, to, move.Copied)
		refused(to)
		requireRun(from, to, move.Draining, doSwitch)
		refused(from)
		_, _, err := to.RotateToken(ctx, alice)
		require.ErrorIs(t, err, bus.ErrHeld)
		from.deliverAll(ctx)
		requireRun(from, to, move.Over)
		refused(from)
		_, _, err = to.RotateToken(ctx, alice)
		require.NoError(t, err)
		requireSound(from)
	})
}

// TestChangesAfterTheSwitch hold for what waits on the old bus, too.
func TestChangesAfterTheSwitch(t *testing.T) {
	eachOf(t, 3, 5, func(t *testing.T, from, to *side) {
		ctx := t.Context()
		from.fill()
		requireRun(from, to, move.Draining, doSwitch)
		moved := subscription(alice, "widgets")
		moved.Callback = "https://elsewhere.example/"
		require.NoError(t, to.Subscribe(ctx, alice, moved, to.now))
		require.NoError(t, to.Of(bob).DeleteSubscriber(ctx, bob))
		require.NoError(t, to.Subscribe(ctx, bob, subscription(bob, "widgets"), to.now))
		require.NoError(t, to.publish("widgets", 6, 6))
		assert.Empty(t, to.deliver(bob, "widgets"), "events from before wait for it")
		require.NoError(t, to.Of(bob).DeleteSubscriber(ctx, bob))
		requireRun(from, to, move.Draining)
		_, _, subscribers := from.shown()
		require.Len(t, subscribers, 1, "bob has gone")
		assert.Equal(t, moved.Callback, subscribers[0].Callback)
		assert.Equal(t, storetest.UpTo(1, 5), from.deliver(alice, "widgets"))
		requireRun(from, to, move.Over)
		assert.Equal(t, []int{6}, to.deliver(alice, "widgets"))
		requireSound(from, to)
	})
}
